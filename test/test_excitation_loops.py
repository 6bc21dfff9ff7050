"""Excitation search for robots with closed loops: gradients, limits of all joints, simulation."""

import numpy as np
import pytest
import yaml
from synthetic import LWR4

import robodyn_ros as rd
from robodyn_ros.commands.main import main
from robodyn_ros.excitation import Limits
from robodyn_ros.excitation.constraints import Constraints
from robodyn_ros.excitation.fourier import Basis
from robodyn_ros.identification.friction import FrictionShape
from robodyn_ros.identification.linear_model import LinearModel
from robodyn_ros.simulation import Simulation

ROBOTS = LWR4.parent.parent / 'config/robots'
URDF, LOOPS = LWR4.parent / 'five_bar.urdf.xacro', ROBOTS / 'five_bar_loops.yaml'
REACH = 1.5  # rad, of the joints at the ends of bars 1 and 2 in the narrower robot


@pytest.fixture(scope='module')
def numbers(tmp_path_factory):
    """A linkage that is no parallelogram: (numbers, loops) with which its files are read."""
    folder = tmp_path_factory.mktemp('linkage')
    numbers = yaml.safe_load((ROBOTS / 'five_bar.yaml').read_text())
    numbers['link3'].update(length=0.5, com=0.2)
    numbers['link4'].update(length=0.45)
    numbers['passive'].update(lower=-REACH, upper=REACH)
    loops = yaml.safe_load(LOOPS.read_text())
    loops['cuts'][0]['points'] = [[0.5, 0, 0], [0.45, 0, 0]]
    for name, content in (('numbers', numbers), ('loops', loops)):
        (folder / f'{name}.yaml').write_text(yaml.safe_dump(content))
    return folder / 'numbers.yaml', folder / 'loops.yaml'


@pytest.fixture(scope='module')
def linkage(numbers):
    model = rd.load_model(URDF, xacro_arguments={'parameters': str(numbers[0])})
    return rd.ClosedLoopDynamics(model, numbers[1], friction_width=0.02)


@pytest.fixture(scope='module')
def found(linkage):
    return rd.optimise_excitation(linkage, starts=1, budget=3.0, harmonics=3, period=4.0)


def slopes(function, arrays, step=1e-6):
    """Central differences of a sum over the rows of a batch, for each array and column."""
    result = np.zeros((len(arrays), *arrays[0].shape))
    for k, j in np.ndindex(len(arrays), arrays[0].shape[1]):
        change = np.zeros((len(arrays), *arrays[0].shape))
        change[k, :, j] = step
        ahead, behind = (function(*(a + s * c for a, c in zip(arrays, change, strict=True)))
                         for s in (1, -1))
        result[k, :, j] = (ahead - behind) / (2 * step)
    return result


def test_gradients_follow_the_dependent_joints(linkage, rng):
    q = np.array([0.3, 1.6]) + 0.3 * rng.uniform(-1, 1, (4, 2))
    qd, qdd, g = rng.normal(size=(3, 4, 2))
    torque = linkage.inverse_dynamics_pullback(q, qd, qdd, g)
    np.testing.assert_allclose(np.moveaxis(torque, 1, 0), slopes(
        lambda *x: (g * linkage.inverse_dynamics(*x)).sum(axis=1), (q, qd, qdd)), atol=1e-6)
    linear = LinearModel(linkage, friction=FrictionShape('coulomb', 0.05, np.ones(4)))
    weights = rng.normal(size=(4, linear.rows, len(linear.columns)))
    np.testing.assert_allclose(linear.pullback(q, qd, qdd, weights), slopes(
        lambda *x: (weights * linear.regressor(*x)).sum(axis=(1, 2)), (q, qd, qdd)), atol=1e-5)


def test_limits_have_the_slopes_of_their_values(linkage, rng):
    limits, basis = Constraints(linkage, Limits(height=0.1)), Basis(4.0, 3, 60)
    x = 0.05 * rng.normal(size=(1 + basis.free, 2))
    x[0] = 0.3, 1.6
    _, gradient = limits.smooth(basis, basis.motion(x))
    for place in np.ndindex(*x.shape):
        change = np.zeros_like(x)
        change[place] = 1e-6
        ahead, behind = (limits.smooth(basis, basis.motion(x + s * change))[0] for s in (1, -1))
        np.testing.assert_allclose(gradient[:, place[0], place[1]], (ahead - behind) / 2e-6,
                                   atol=1e-5)
    assert {'position of joint3', 'velocity of joint4', 'regularity of joint3',
            'torque of joint1', 'height of tip'} <= limits.worst(basis.motion(x)).keys()
    x[0, 0] = 1e4  # from where no loop is closed
    assert limits.worst(basis.motion(x)) == {'closure of the loops': np.inf}


def test_the_motion_keeps_every_limit_in_a_physics_engine(linkage, found):
    """The engine closes the loop by constraints; computed torque and PD follow the motion."""
    model = linkage.model
    engine = Simulation(model.description.urdf, loops=linkage.loops, timestep=1e-3)
    t, motion = found.samples(1000.0)
    torque = linkage.inverse_dynamics(motion.q, motion.qd, motion.qdd)
    engine.reset(motion.q[0], motion.qd[0])
    poses, speeds = [], []
    for k in range(len(t)):
        poses.append(engine._state.qpos[engine._all_q].copy())
        speeds.append(engine._state.qvel[engine._all_v].copy())
        engine.step(torque[k] + 400 * (motion.q[k] - engine.position)
                    + 20 * (motion.qd[k] - engine.velocity))
    assert np.abs(np.array(poses)[:, :2] - motion.q).max() < 5e-3
    for values, lower, upper in ((poses, model.lower, model.upper),
                                 (speeds, -model.velocity_limit, model.velocity_limit)):
        span = 0.01 * (upper - lower)
        assert (np.array(values) > lower - span).all() and (np.array(values) < upper + span).all()
    assert np.abs(torque).max() <= 0.9 * 60.0 and len(t) == 4001
    assert linkage.singularity(motion.q).min() > 0.02


@pytest.fixture(scope='module')
def parallelogram():
    return rd.ClosedLoopDynamics(rd.load_model(URDF), LOOPS)


def test_searches_reject_motions_near_singularities(parallelogram):
    """The sine between bars 3 and 4 has to be above 0.1; searches accept no sine below 0.05."""
    loops = Constraints(parallelogram, Limits()).loops
    for apart, accepted in ((1.3, True), (0.07, True), (0.03, False)):
        pose = np.array([[0.3, 0.3 + apart]])
        assert loops.close(pose) and loops.stay(pose) == accepted
        assert loops.stay(np.vstack([[0.3, 1.6], pose[0]])) == accepted


def test_the_search_improves_its_start_beside_singularities(parallelogram):
    """The best of 1326 random motions of this linkage has the condition number 49."""
    def enough(state):
        if state.evaluations > 150:
            raise KeyboardInterrupt

    found = rd.optimise_excitation(parallelogram, period=5.0, harmonics=4, scaling='none',
                                   budget=600.0, progress=enough)
    assert found.facts['condition'] < 45


def test_limits_of_dependent_joints_shape_the_motion(linkage, found, numbers, tmp_path):
    """Without the limits of the dependent joints, the best motion leaves them."""
    full = linkage.positions(found.samples(200.0)[1].q)
    assert np.abs(full[:, 2:]).max() < REACH and np.ptp(full, axis=0).min() > 0.3
    wide = yaml.safe_load(numbers[0].read_text())
    wide['passive'].update(lower=-3.1, upper=3.1)
    (tmp_path / 'wide.yaml').write_text(yaml.safe_dump(wide))
    out = tmp_path / 'motion.yaml'
    assert main(['excite', str(URDF), f'parameters:={tmp_path / "wide.yaml"}', '--loops',
                 str(numbers[1]), '-o', str(out), '--budget', '3', '--harmonics', '3',
                 '--period', '4']) == 0
    free = rd.Excitation.from_yaml(out)
    assert free.joint_names == ('joint1', 'joint2')
    assert np.abs(linkage.positions(free.samples(200.0)[1].q)[:, 2:]).max() > REACH


def test_passive_joints_cannot_follow_an_excitation(linkage):
    loops = {'independent': ['joint1', 'joint2'], 'driven': ['joint1'], 'cuts': [
        {'links': ['link3', 'link4'], 'points': [[0.5, 0, 0], [0.45, 0, 0]]}],
        'start': {'joint1': 0.3, 'joint2': 1.6, 'joint3': -1.3, 'joint4': 1.3}}
    with pytest.raises(rd.ValueRangeError, match='passive joints is joint2; valid: none'):
        rd.optimise_excitation(rd.ClosedLoopDynamics(linkage.model, loops))
