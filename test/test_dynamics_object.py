"""`Dynamics` as an object: copies, names, threads, and inputs that are not numbers."""

import copy
import multiprocessing
import pickle
import re
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from robots import PANDA_URDF
from synthetic import LWR4

import robodyn_ros as rd

ROOT = LWR4.parent.parent


@pytest.fixture(scope='module')
def panda():
    return rd.Dynamics(rd.load_model(PANDA_URDF), friction_width=0.1)


@pytest.fixture(scope='module')
def palletiser():
    return rd.ClosedLoopDynamics(rd.load_model(ROOT / 'urdf/palletiser.urdf.xacro'),
                                 ROOT / 'config/robots/palletiser_loops.yaml',
                                 friction_width=0.1)


def calls(dynamics):
    """Every function of state, with its number of arguments."""
    state = {'gravity': 1, 'mass_matrix': 1, 'coriolis': 2, 'coriolis_matrix': 2, 'terms': 2,
             'energy': 2, 'inverse_dynamics': 3, 'forward_dynamics': 3, 'regressor': 3,
             'base_wrench': 3}
    if not dynamics.cuts:
        state |= {'momentum': 2, 'state_space': 2, 'joint_wrenches': 3}
    return [(getattr(dynamics, name), count) for name, count in state.items()]


def flat(result):
    parts = result if isinstance(result, tuple) else (result,)
    return np.concatenate([np.ravel(part) for part in parts])


@pytest.mark.filterwarnings('ignore:invalid value')  # of NumPy, which says so as well
@pytest.mark.parametrize('value', [np.nan, np.inf])
@pytest.mark.parametrize('robot', ['panda', 'palletiser'])
def test_an_input_that_is_not_finite_gives_nan_or_an_error(robot, value, request, rng):
    """Also joint 1 of a Panda, on which gravity, M and C do not depend."""
    dynamics = request.getfixturevalue(robot)
    n = dynamics.n
    for call, count in calls(dynamics):
        for argument in range(count):
            for joint in range(n):
                inputs = list(0.1 * rng.normal(size=(count, n)))
                assert np.isfinite(flat(call(*inputs))).all()
                inputs[argument][joint] = value
                try:
                    result = flat(call(*inputs))
                except (rd.RobodynError, np.linalg.LinAlgError):
                    continue
                finite = np.isfinite(result)
                if call.__name__ == 'state_space':  # has ones, zeros and velocities
                    finite = np.isfinite(call(*inputs)[0][n:])
                assert not finite.any(), (call.__name__, argument, joint)


def test_functions_of_links_and_points_also_give_nan(panda):
    q = np.zeros(8)
    q[0] = np.nan
    link = panda.model.description.links[3].name
    for result in (panda.pose(q, link), panda.jacobian(q, link),
                   panda.jacobian_dot_qd(np.zeros(8), q, link),
                   panda.points(q, ((link, (0.0, 0.0, 0.1)),)), panda.friction(q)):
        assert np.isnan(result).all()


@pytest.mark.filterwarnings('ignore:invalid value')
@pytest.mark.parametrize('value', [np.nan, np.inf])
def test_other_inputs_that_are_not_finite_give_nan_as_well(value, rng):
    """Wrenches, the motion of the base, factors of gradients, weights and measured torques."""
    dynamics = rd.Dynamics(rd.load_model(ROOT / 'urdf/articulated_3r.urdf.xacro'))
    n, link = dynamics.n, dynamics.model.description.links[2].name
    state = list(0.1 * rng.normal(size=(3, n)))

    def base(values):
        return {'base_motion': rd.dynamics.BaseMotion(values[:3], values[3:6],
                                                      specific_force=values[6:])}

    def equations(*inputs):
        found = dynamics.normal_equations(*(x[None] for x in inputs[:4]), columns=range(20),
                                          weights=inputs[4])
        return found.matrix, found.vector, found.square

    calls = [(equations, [*state, np.ones(n), np.ones(n)]),
             (lambda *x: dynamics.regressor(*x[:3], [0, 6], **base(x[3])), [*state, np.ones(9)]),
             (lambda *x: dynamics.regressor_pullback(*x[:3], x[3].reshape(n, 1), [6]),
              [*state, np.ones(n)]),
             (dynamics.inverse_dynamics_pullback, [*state, np.ones(n)]),
             (lambda *x: dynamics.velocity_change(*x[:4], x[4][0]),
              [*state, np.ones(n), np.array([0.01])])]
    for name in ('inverse_dynamics', 'forward_dynamics', 'base_wrench', 'joint_wrenches'):
        method = getattr(dynamics, name)
        calls += [(lambda *x, f=method: f(*x[:3], f_ext={link: x[3]}), [*state, np.ones(6)]),
                  (lambda *x, f=method: f(*x[:3], **base(x[3])), [*state, np.ones(9)])]
    for call, inputs in calls:
        assert np.isfinite(flat(call(*inputs))).all()
        for argument in range(len(inputs)):
            for place in range(len(inputs[argument])):
                changed = [x.copy() for x in inputs]
                changed[argument][place] = value
                assert not np.isfinite(flat(call(*changed))).any(), (argument, place)


@pytest.mark.parametrize('values', [np.full(8, 1j), np.zeros(8, 'datetime64[s]'), ['0'] * 8])
def test_arguments_that_are_not_real_numbers_are_refused(panda, values):
    zero = np.zeros(8)
    for call, count in calls(panda):
        for argument in range(count):
            inputs = [zero] * count
            inputs[argument] = values
            with pytest.raises(rd.ShapeError, match='that are not real numbers'):
                call(*inputs)


@pytest.mark.parametrize('robot', ['panda', 'palletiser'])
def test_copies_and_pickles_compute_the_same(robot, request, rng):
    """Also for an object that was used and holds compiled functions."""
    dynamics = request.getfixturevalue(robot)
    inputs = 0.1 * rng.normal(size=(3, dynamics.n))
    want = dynamics.inverse_dynamics(*inputs), dynamics.coriolis_matrix(*inputs[:2])
    for other in (pickle.loads(pickle.dumps(dynamics)), copy.copy(dynamics),
                  copy.deepcopy(dynamics)):
        assert type(other) is type(dynamics) and other is not dynamics
        assert other.friction_width == 0.1 and other.joint_names == dynamics.joint_names
        np.testing.assert_array_equal(other.inverse_dynamics(*inputs), want[0])
        np.testing.assert_array_equal(other.coriolis_matrix(*inputs[:2]), want[1])
    twice = rd.Dynamics(dynamics.model, threads=2)
    assert pickle.loads(pickle.dumps(twice)).threads == 2


def test_a_used_object_works_in_processes_that_are_spawned(rng):
    """Its methods can be sent to other processes, which compile nothing that is cached."""
    dynamics = rd.Dynamics(rd.load_model(ROOT / 'urdf/articulated_3r.urdf.xacro'), threads=2)
    inputs = rng.normal(size=(3, dynamics.n))
    want = dynamics.inverse_dynamics(*inputs)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context('spawn')) as pool:
        got = pool.submit(dynamics.inverse_dynamics, *inputs).result(timeout=120)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize('robot', ['panda', 'palletiser'])
def test_warm_up_names_unknown_functions(robot, request):
    dynamics = request.getfixturevalue(robot)
    dynamics.warm_up('inverse_dynamics', 'forward_dynamics', 'terms', 'wrenches', 'gravity',
                     'mass_matrix', 'coriolis', 'coriolis_matrix', 'friction', 'energy')
    with pytest.raises(rd.UnknownNameError, match="'gravty'.*did you mean 'gravity'"):
        dynamics.warm_up('gravty')


def test_warm_up_of_links_is_told_apart(panda):
    panda.warm_up('state_space', 'positions')
    with pytest.raises(rd.ValueRangeError, match="warm_up_links.'drift', LINK."):
        panda.warm_up('jacobian_dot_qd')
    with pytest.raises(rd.UnknownNameError, match="kind 'jacobain'.*did you mean 'jacobian'"):
        panda.warm_up_links('jacobain', 'panda_hand')


def test_columns_of_the_regressor_are_those_of_each_call(panda, rng):
    """Also if a list has changed since the last call, or a tuple is passed again."""
    state = rng.normal(size=(3, panda.n))
    whole, columns = panda.regressor(*state), [6, 0]
    for _ in range(2):
        for given in (columns, tuple(columns), np.array(columns), (13, 1), (13, 1), range(4)):
            np.testing.assert_array_equal(panda.regressor(*state, given), whole[:, list(given)])
        np.testing.assert_array_equal(panda.regressor(*state), whole)
        columns[:] = [40, 3, 12]
    for wrong in ([1.5], [-1], [len(panda.model.parameter_names)], [], ['m']):
        with pytest.raises(rd.ShapeError, match='columns has .*whole numbers'):
            panda.regressor(*state, wrong)


def test_inputs_of_a_wrong_kind_are_refused(panda, palletiser):
    still = np.zeros(panda.n)
    masked = np.ma.array(still, mask=np.eye(panda.n)[2])
    for values, why in ((masked, 'masked elements'), ([10**400, *still[1:]], 'not real numbers')):
        with pytest.raises(rd.ShapeError, match=f'q has.*{why}'):
            panda.mass_matrix(values)
    for dynamics in (panda, palletiser, rd.LagrangeEuler(panda.model)):
        rest = np.zeros(dynamics.n)
        with pytest.raises(rd.RobodynError, match='f_ext is .*a mapping of links to wrenches'):
            dynamics.inverse_dynamics(rest, rest, rest, f_ext=[0, 0, 1])
    for threads in ('2', 2.5):
        with pytest.raises(rd.RobodynError, match='threads is .*an integer'):
            rd.Dynamics(panda.model, threads=threads)
    with pytest.raises(rd.ValueRangeError, match='near is .*nan.*finite numbers'):
        palletiser.gravity(np.zeros(palletiser.n), near=np.full(palletiser.model.n, np.nan))


ARGUMENTS = {'gravity': 1, 'mass_matrix': 1, 'friction': 1, 'center_of_mass': 1, 'coriolis': 2,
             'coriolis_matrix': 2, 'terms': 2, 'energy': 2, 'momentum': 2, 'momentum_terms': 2,
             'centroidal_momentum': 2, 'inverse_dynamics': 3,
             'forward_dynamics': 3, 'regressor': 3, 'base_wrench': 3, 'joint_wrenches': 3,
             'inverse_dynamics_pullback': 4}


def on_a_base(model):
    """The robot, with a heavy link as its base if it floats."""
    if not model.floating:
        return model
    values = model.standard_parameters.copy()
    values[-10:] = 0.1, 0, 0, 0.1, 0, 0.1, 2.0, 0, 0, 0
    return model.with_standard_parameters(values)


@pytest.mark.parametrize('shared', [False, True])
@pytest.mark.parametrize('base', ['fixed', 'floating'])
def test_a_call_after_warm_up_compiles_nothing(base, shared, rng, assert_warmed_up):
    model = on_a_base(rd.load_model(ROOT / 'urdf/articulated_3r.urdf.xacro', base=base))
    for name, count in ARGUMENTS.items():
        if name == 'inverse_dynamics_pullback' and model.floating:
            continue  # refused
        dynamics = rd.Dynamics(model, shared_code=shared, friction_width=0.02)
        speed, *others = rng.normal(size=(3, model.n))
        state = [speed] if name == 'friction' else [dynamics.home, speed, *others][:count]
        assert_warmed_up(dynamics, name, *state)


@pytest.mark.parametrize('base', ['fixed', 'floating'])
def test_a_call_after_warm_up_compiles_nothing_for_closed_loops(base, rng, assert_warmed_up):
    names = ['terms', 'mass_matrix', 'gravity', 'coriolis', 'coriolis_matrix', 'energy',
             'inverse_dynamics', 'forward_dynamics', 'regressor', 'base_wrench']
    names += ['joint_wrenches'] if base == 'fixed' else ['center_of_mass', 'centroidal_momentum']
    kind = rd.ClosedLoopDynamics if base == 'fixed' else rd.FloatingLoopDynamics
    model = on_a_base(rd.load_model(ROOT / 'urdf/five_bar.urdf.xacro', base=base))
    for name in names:
        dynamics = kind(model, ROOT / 'config/robots/five_bar_loops.yaml', friction_width=0.02)
        free = [model.joint_names.index(joint) for joint in dynamics.joint_names]
        start = model.nq - len(model.joint_names)
        pose = dynamics.home[[*range(start), *(start + k for k in free)]]
        motion = [pose, *rng.normal(size=(2, dynamics.n))]
        assert_warmed_up(dynamics, name, *motion[:ARGUMENTS[name]])
    for name in ('driven_torques', 'constraint_forces', 'velocities', 'positions')[
            :1 if base == 'floating' else None]:
        kind(model, dynamics.fixed.loops if base == 'floating' else dynamics.loops).warm_up(name)


def test_a_call_after_warm_up_compiles_nothing_for_elastic_joints(assert_warmed_up):
    motors = ROOT / 'config/robots/flexible_2r_motors.yaml'
    model = rd.load_model(ROOT / 'urdf/flexible_2r.urdf.xacro', motors=motors)
    still = np.zeros(model.n)
    for name, count in {
            'inverse_dynamics': 5, 'forward_dynamics': 5, 'deflection': 1, 'links_at_rest': 1,
            'natural_frequencies': 1}.items():
        dynamics = rd.FlexibleDynamics(model, friction_width=0.02)
        assert_warmed_up(dynamics, name, *[still] * count)
    with pytest.raises(rd.UnknownNameError, match="did you mean 'deflection'"):
        dynamics.warm_up('deflektion')


def test_no_module_tests_for_the_class_of_closed_loops():
    """What is common to robots with loops and without is `RobotDynamics`."""
    package = ROOT / 'robodyn_ros'
    files = [path for path in package.rglob('*.py') if path.parent.name != 'dynamics']
    assert len(files) > 80
    asking = [str(path) for path in files if re.search(
        r'isinstance\([^()]*(?:\([^()]*\))?[^()]*ClosedLoopDynamics', path.read_text())]
    assert not asking


@pytest.mark.slow
def test_models_that_share_code_agree_with_own_code_and_trace_nothing_anew(rng, monkeypatch):
    """Identified models differ in their numbers alone: one kernel serves all of them."""
    from robodyn_ros.kernels import kernel as kernels

    model = rd.load_model(ROOT / 'urdf/articulated_3r.urdf.xacro')
    spin = np.where(np.arange(3)[:, None] < 2, [0.0, 0.6, 0.8], np.nan)  # the last rotor does not
    model = replace(model, spin_axis=spin, gear_ratio=np.full(3, 50.0), armature=np.full(3, 0.2),
                    motor_friction=np.full((3, 3), 0.3))
    curve = model.friction_curve.copy()
    curve[1] = [1.0, 2.0, 0.1, 0.05, 0.7, 0.1, 0.0, 0.2, 0.01]
    loaded = curve.copy()
    loaded[0] = [0.5, 1.0, 0.0, 0.0, 0.0, 1.0, 0.1, 0.0, 1.0]
    q, qd, u = rng.normal(size=(3, 9, model.n))
    calls = {'inverse_dynamics': (q, qd, u), 'forward_dynamics': (q, qd, u), 'gravity': (q,),
             'mass_matrix': (q,), 'friction': (qd, q), 'terms': (q, qd),
             'velocity_change': (q, qd, u, np.abs(u), 1e-3)}
    for friction in (model.friction_curve, curve, loaded):
        first = replace(model, friction_curve=friction)
        second = first.with_standard_parameters(
            first.standard_parameters * rng.uniform(0.8, 1.2, len(model.parameter_names)))
        for one in (first, second):
            own = rd.Dynamics(one, friction_width=0.05)
            want = {name: getattr(own, name)(*args) for name, args in calls.items()}
            if one is second:
                monkeypatch.setattr(kernels, 'trace', None)
            shared = pickle.loads(pickle.dumps(own.with_model(one, shared_code=True)))
            for name, args in calls.items():
                got = getattr(shared, name)(*args)
                np.testing.assert_allclose(flat(got), flat(want[name]), rtol=1e-9, atol=1e-10,
                                           err_msg=name)
            monkeypatch.undo()
    np.testing.assert_allclose(shared.gravity(q[0]), own.gravity(q[0]), rtol=1e-9, atol=1e-10)
    with pytest.raises(rd.ShapeError, match='valid: q, qd'):
        shared.kernel('terms').general(q)


def test_a_linearly_implicit_step_solves_its_equation(rng):
    """Also beyond the number of joints up to which all is compiled."""
    from test_large_robots import chain

    for model in (rd.load_model(PANDA_URDF), rd.load_model(chain(70))):
        model = replace(model, link_friction=rng.uniform(0, 2, model.link_friction.shape))
        dynamics = rd.Dynamics(model, friction_width=0.1)
        q, qd, tau = 0.2 * rng.normal(size=(3, 2, model.n))
        damping, step = rng.uniform(0, 3, model.n), 0.004
        change = dynamics.velocity_change(q, qd, tau, damping, step)
        for k in range(2):
            slope = (dynamics.friction(qd[k] + 1e-3) - dynamics.friction(qd[k] - 1e-3)) / 2e-3
            terms = dynamics.terms(q[k], qd[k])
            left = terms.mass_matrix + step * np.diag(slope + damping)
            right = tau[k] - terms.coriolis - terms.gravity - terms.friction
            np.testing.assert_allclose(left @ change[k], step * right, rtol=1e-6, atol=1e-9)
