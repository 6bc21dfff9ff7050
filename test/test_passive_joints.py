"""Closed loops with joints that no motor drives, against Pinocchio's terms under constraints."""

from pathlib import Path

import numpy as np
import pytest
import yaml
from oracle import Oracle
from robots import joint, link, robot

import robodyn_ros as rd

FOLDER = Path(__file__).parent / 'data/example-parallel-robots'
# motors, links or joints whose frames coincide
MECHANISMS = {
    'robot_delta': (('mot1_rod1', 'mot1_rod2'), (
        ('closedloop1_A', 'closedloop1_B'), ('closedloop2_B', 'closedloop2_A'),
        ('closedloop3_A', 'closedloop3_B'))),
    'cassie_like': (('motor_hip1', 'motor_hip2', 'motor_tigh', 'motor_knee', 'motor_ankle'), (
        ('closedloop1_B', 'closedloop1_A'), ('closedloop2_A', 'closedloop2_B'))),
    'digit_like': (('motor_hip_x', 'motor_hip_y', 'motor_hip_z', 'motor_knee', 'motor_shin1',
                    'motor_shin2'), (
        ('closedloop1_B', 'closedloop1_A'), ('closedloop2_B', 'closedloop2_A'),
        ('closedloop3_B', 'closedloop3_A')))}


def loops_of(name):
    """The loops in our own words, and in those of the files for Pinocchio."""
    motors, pairs = MECHANISMS[name]
    if name == 'robot_delta':
        return {'name_mot': list(motors), 'type': ['6d'] * len(pairs),
                'closed_loop': [list(pair) for pair in pairs]}
    return {'driven': list(motors),
            'cuts': [{'links': list(pair), 'frames': True} for pair in pairs]}


@pytest.fixture(scope='module', params=MECHANISMS)
def mechanism(request):
    text = (FOLDER / f'{request.param}.urdf').read_text()
    model = rd.load_model(text).without_friction()
    return rd.ClosedLoopDynamics(model, loops_of(request.param)), text, request.param


def constrained(dynamics, text, q, qd, tau):
    """Accelerations of all joints by Gauss' principle with Pinocchio's terms."""
    oracle = Oracle(dynamics.model, text)
    jacobian, drift = oracle.constraints(q, qd, [(*cut.links, 6) for cut in dynamics.cuts])
    assert np.abs(jacobian @ qd).max() < 1e-9  # the velocities keep the loops closed
    return oracle.constrained(q, qd, tau, jacobian, drift)


def test_passive_joints_complete_the_freedom(mechanism):
    dynamics, _, name = mechanism
    motors = MECHANISMS[name][0]
    assert set(dynamics.driven_names) == set(motors)
    assert dynamics.n == {'robot_delta': 5, 'cassie_like': 7, 'digit_like': 9}[name]
    assert len(dynamics.passive_names) == dynamics.n - len(motors)
    assert set(dynamics.joint_names) == {*dynamics.driven_names, *dynamics.passive_names}


def test_forward_dynamics_agree_with_pinocchio(mechanism, rng):
    dynamics, text, _ = mechanism
    free = [dynamics.model.joint_names.index(one) for one in dynamics.joint_names]
    q, (qd, tau) = dynamics.home[free], rng.normal(size=(2, dynamics.n))
    torque = np.zeros(dynamics.model.n)
    torque[free] = tau
    motion = dynamics.motion(q, qd, near=dynamics.home)
    expected = constrained(dynamics, text, motion.q, motion.qd, torque)
    found = dynamics.forward_dynamics(q, qd, tau, near=dynamics.home)
    assert np.abs(motion.qdd(found) - expected).max() < 1e-9 * np.abs(expected).max()


def test_motors_alone_move_passive_joints_as_the_dynamics_demand(mechanism, rng):
    dynamics, _, _ = mechanism
    free = [dynamics.model.joint_names.index(one) for one in dynamics.joint_names]
    q, qd = dynamics.home[free], rng.normal(size=dynamics.n)
    driven = [dynamics.joint_names.index(one) for one in dynamics.driven_names]
    wanted = rng.normal(size=len(driven))
    torques, qdd = dynamics.driven_torques(q, qd, wanted, near=dynamics.home)
    np.testing.assert_allclose(qdd[driven], wanted)
    every = np.zeros(dynamics.n)
    every[driven] = torques
    back = dynamics.forward_dynamics(q, qd, every, near=dynamics.home)
    np.testing.assert_allclose(back, qdd, atol=1e-6 * np.abs(qdd).max())


def test_chosen_joints_survive_a_copy(mechanism):
    dynamics, _, _ = mechanism
    kind, arguments = dynamics.__reduce__()
    again = kind(*arguments)
    assert again.joint_names == dynamics.joint_names
    assert again.passive_names == dynamics.passive_names


FOUR_BAR = robot(
    link('base', 1.0), *(link(name, 1.0, (0.1, 0, 0), (0.01, 0, 0, 0.01, 0, 0.01))
                         for name in ('crank', 'rod', 'rocker')),
    joint('a', 'continuous', 'base', 'crank'),
    joint('b', 'continuous', 'crank', 'rod', (0.3, 0, 0)),
    joint('c', 'continuous', 'base', 'rocker', (0.5, 0, 0)))
CUT = {'links': ['rod', 'rocker'], 'points': [[0.5, 0, 0], [0.4, 0, 0]]}


@pytest.mark.parametrize(('loops', 'why'), [
    ({'independent': ['a', 'b', 'c'], 'cuts': [CUT]}, 'fewer than 3'),
    ({'independent': ['a', 'b'], 'cuts': [CUT], 'start': {'a': 1.0, 'b': -0.6, 'c': 1.9}},
     'independent joints is 2; valid: 1'),
    ({'driven': ['a', 'c'], 'cuts': [CUT], 'start': {'a': 1.0, 'b': -0.6, 'c': 1.9}},
     'a, c.*1 degrees of freedom'),
    ({'independent': ['a'], 'driven': ['b'], 'cuts': [CUT]}, "unknown driven joint.*'b'"),
    ({'cuts': [CUT]}, "'driven'"),
    ({'independent': ['a', 'b'], 'cuts': [CUT]}, 'independent joints is 2; valid: 1'),
    ({'driven': ['a', 'b', 'c'], 'cuts': [CUT], 'start': {'a': 1.0, 'b': -0.6, 'c': 1.9}},
     'driven joints is a, b, c'),
    ({'independent': ['a'], 'cuts': [{'links': ['rod', 'rod']}]}, "names 'rod' twice"),
    ({'independent': ['a'], 'cuts': [CUT], 'start': {'a': 0.0}},
     'not closed; valid: one nearer .*example a -0.33'),
    ({'closed_loop': [['rod', 'rocker']], 'type': ['7d'], 'name_mot': ['a']}, "'7d'.*3d or 6d"),
    ({'closed_loop': [['rod']], 'type': ['3d'], 'name_mot': ['a']}, 'no pair of names'),
    ({'closed_loop': [['rod', 'rocker']], 'type': [], 'name_mot': ['a']}, 'another number'),
    ({'closed_loop': [['rod', 'rocker']], 'type': ['3d'], 'joint_name': ['b'],
      'joint_type': ['SPHERICAL'], 'name_mot': ['a']}, 'joint_type.*ball joint'),
    # the cut is out of reach, so no pose closes the loop
    ({'driven': ['a'], 'cuts': [CUT | {'points': [[5.0, 0, 0], [0.4, 0, 0]]}]},
     r'the gap between \w+ and \w+ is [\d.]+ m'),
])
def test_wrong_definitions_are_named(loops, why):
    with pytest.raises(rd.RobodynError, match=why):
        rd.ClosedLoopDynamics(rd.load_model(FOUR_BAR), loops)


START = {'start': {'a': 1.0, 'b': -0.6, 'c': 1.9}}


@pytest.mark.parametrize('who', [{'independent': ['a']}, {'driven': ['a']}])
def test_a_start_is_found_where_none_is_given(who):
    """At zero all bars lie in one line, 0.1 m apart: singular, and not closed."""
    four = rd.ClosedLoopDynamics(rd.load_model(FOUR_BAR), who | {'cuts': [CUT]})
    ends = [four.tree.pose(four.home, link) @ [*point, 1.0]
            for link, point in zip(CUT['links'], CUT['points'], strict=True)]
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-9)
    assert four.joint_names == ('a',) and four.singularity(four.home[:1]) > 0.05
    copied = rd.ClosedLoopDynamics(rd.load_model(FOUR_BAR), who | {'cuts': [CUT]})
    np.testing.assert_array_equal(copied.home, four.home)


def test_loops_that_no_pose_closes_are_named():
    far = CUT | {'points': [[5.0, 0, 0], [0.4, 0, 0]]}
    for who in ({'independent': ['a']}, {'driven': ['a']}):
        with pytest.raises(rd.ValueRangeError, match='every pose that was tried.*rod and rocker'):
            rd.ClosedLoopDynamics(rd.load_model(FOUR_BAR), who | {'cuts': [far]})


IN_LINE = CUT | {'points': [[0.6, 0, 0], [0.4, 0, 0]]}  # crank, rod and rocker in one line


@pytest.mark.parametrize('who', [{'independent': ['a']}, {'driven': ['a']}])
def test_a_singular_start_is_called_singular(who):
    """In line, the cut constrains one joint only, to first order; two in other poses."""
    with pytest.raises(rd.RobodynError, match='singular.*constrain 1 of the 3.*and 2 in'):
        rd.ClosedLoopDynamics(rd.load_model(FOUR_BAR), who | {'cuts': [IN_LINE]})


def test_singular_poses_are_called_singular(rng):
    """Where crank and rod are in line, the rocker does not determine them."""
    four = rd.ClosedLoopDynamics(rd.load_model(FOUR_BAR),
                                 {'independent': ['c'], 'cuts': [CUT]} | START)
    dead = np.arccos((0.8**2 - 0.5**2 - 0.4**2) / (2 * 0.5 * 0.4))  # crank and rod stretched
    for q in (np.array([dead]), np.array([[1.9], [dead]])):
        speed = rng.normal(size=q.shape)
        for call in (four.mass_matrix, four.motion_matrix, lambda q, s=speed:
                     four.inverse_dynamics(q, s, s), lambda q, s=speed: four.regressor(q, s, s)):
            with pytest.raises(rd.ValueRangeError, match='pose c 0.9582 is singular'):
                call(q)
    with pytest.raises(rd.ValueRangeError, match=r'gap between rod and rocker at .* 0.\d+ m'):
        four.gravity([dead - 0.2])
    spoilt = four.inverse_dynamics([1.9], [np.nan], [0.0])
    assert np.isnan(spoilt).all()  # NaN in a velocity is no singularity


def test_joints_that_do_not_determine_the_others_are_named():
    """In a parallelogram the coupler's joints turn by the same angle, whatever the cranks do."""
    five = [Path('urdf/five_bar.urdf.xacro'), Path('config/robots/five_bar_loops.yaml')]
    model, loops = (Path(__file__).parent.parent / one for one in five)
    given = dict(yaml.safe_load(loops.read_text()), independent=['joint3', 'joint4'])
    with pytest.raises(rd.RobodynError, match='joint3, joint4; valid: joint2, joint3, for'):
        rd.ClosedLoopDynamics(rd.load_model(model), given)
