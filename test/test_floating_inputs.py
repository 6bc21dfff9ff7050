"""Floating bases: inputs that are not finite, quaternions without direction, copies, processes."""

import copy
import multiprocessing
import os
import pickle

import numpy as np
import pytest
from robots import joint, link, robot
from test_floating_loops import LOOPS, TEXT

import robodyn_ros as rd

FLYER = robot(
    link('base', 4.0, (0.02, 0.01, -0.03), (0.05, 0.01, 0, 0.06, 0, 0.07)),
    link('arm', 1.0, (0.2, 0, 0.05), (0.01, 0, 0, 0.02, 0, 0.02)),
    joint('j1', 'revolute', 'base', 'arm', (0.1, 0, 0.1), (0.3, 0.2, 0.1),
          extra='<dynamics damping="0.4" friction="0.3"/>'))
# name -> the arguments: q, v of the length of a velocity, w a wrench
BOTH = {'gravity': 'q', 'mass_matrix': 'q', 'center_of_mass': 'q', 'coriolis': 'qv',
        'coriolis_matrix': 'qv', 'terms': 'qv', 'energy': 'qv', 'centroidal_momentum': 'qv',
        'position_rates': 'qv', 'inverse_dynamics': 'qvv', 'forward_dynamics': 'qvv',
        'regressor': 'qvv', 'base_wrench': 'qvv', 'singularity': 'q', 'positions': 'q',
        'motion': 'qv', 'velocities': 'qv'}
TREE = {'momentum': 'qv', 'momentum_terms': 'qv', 'state_space': 'qv', 'joint_wrenches': 'qvv',
        'friction': 'v'}
OF_LINKS = {'angles': 'q', 'analytic_jacobian': 'q', 'jacobian_dot_qd': 'qv',
            'analytic_jacobian_dot_qd': 'qv'}
GIVEN = {'positions', 'motion', 'velocities'}  # they return inputs as well
ERRORS = rd.RobodynError, np.linalg.LinAlgError


@pytest.fixture(scope='module')
def flyer():
    return rd.Dynamics(rd.load_model(FLYER, base='floating'), friction_width=0.1)


@pytest.fixture(scope='module')
def linkage():
    return rd.FloatingLoopDynamics(rd.load_model(TEXT, base='floating'), LOOPS)


def functions(dynamics):
    """Every function of the state: its name, the function, and its arguments."""
    loops, body = bool(dynamics.cuts), 'rod' if dynamics.cuts else 'arm'
    named = BOTH | ({'constraint_forces': 'qvv'} if loops else TREE)
    for name, arguments in named.items():
        yield name, getattr(dynamics, name), arguments
    for name, arguments in ({'pose': 'q', 'jacobian': 'q'} | ({} if loops else OF_LINKS)).items():
        yield name, lambda *x, name=name: getattr(dynamics, name)(*x, body), arguments
    for name in ('inverse_dynamics', 'forward_dynamics', 'base_wrench', *(
            () if loops else ('joint_wrenches',))):
        yield f'{name} and wrench', lambda *x, name=name: getattr(dynamics, name)(
            *x[:3], f_ext={body: x[3]}), 'qvvw'
    if not loops:
        point = ((body, (0.1, 0.0, 0.2)),)
        yield 'points', lambda q: dynamics.points(q, point), 'q'
        yield 'velocity_change', lambda *x: dynamics.velocity_change(*x, 0.01), 'qvvv'
        yield 'operational_space', lambda *x: vars(dynamics.operational_space(*x, body))[
            'Lambda'], 'qv'


def inputs_of(dynamics, arguments, rng):
    base = [0.1, 0.2, 0.3, 0.1, 0.2, 0.3, 0.9]
    q = np.array(base + [1.0 if dynamics.cuts else 0.1])
    return [q.copy() if kind == 'q' else 0.3 * rng.normal(size=dynamics.n if kind == 'v' else 6)
            for kind in arguments]


def flat(result, count=1):
    """A row of numbers for each state."""
    parts = result if isinstance(result, tuple) else (result,)
    return np.concatenate([np.reshape(part, (count, -1)) for part in parts], axis=1)


def is_marked(name, dynamics, row):
    """Whether nothing in a result looks like an answer."""
    if name == 'state_space':  # its second part has zeros
        row = row[:2 * dynamics.n + 1]
    if name in GIVEN:
        return not np.isfinite(row).all()
    return not np.isfinite(row).any()


@pytest.mark.filterwarnings('ignore:invalid value')  # of NumPy, which says so as well
@pytest.mark.parametrize('which', ['flyer', 'linkage'])
def test_an_input_that_is_not_finite_gives_nan_or_an_error(which, request, rng):
    """Every number of every argument, one state and as one of many, the others unharmed."""
    dynamics = request.getfixturevalue(which)
    for name, function, arguments in functions(dynamics):
        if name == 'velocities' and not dynamics.cuts:
            continue  # qd, whatever q is
        clean = inputs_of(dynamics, arguments, rng)
        assert np.isfinite(flat(function(*clean))).all(), name
        places = [(a, k) for a, x in enumerate(clean) for k in range(len(x))
                  if not (dynamics.cuts and arguments[a] == 'q' and k > 6)]  # those raise
        many = [np.tile(x, (len(places) + 3, 1)) for x in clean]
        for row, (a, k) in enumerate(places):
            for value in (np.nan, np.inf):
                many[a][row, k] = value
                one = flat(function(*(x[row] for x in many)))[0]
                assert is_marked(name, dynamics, one), (name, a, k, value)
        result = flat(function(*many), len(places) + 3)
        for row in range(len(places)):
            assert is_marked(name, dynamics, result[row]), (name, places[row])
        np.testing.assert_allclose(result[len(places):], np.tile(
            flat(function(*clean)), (3, 1)), rtol=1e-9, atol=1e-12, err_msg=name)


def test_joints_of_loops_that_are_not_finite_are_refused_by_name(linkage, rng):
    """In one state and in many; whether a pose can be reached is answered."""
    q, qd = inputs_of(linkage, 'qv', rng)
    q[7] = np.nan
    for state in (q, np.tile(q, (3, 1))):
        with pytest.raises(rd.ValueRangeError, match='pose is .* finite numbers'):
            linkage.gravity(np.tile(q, (3, 1)))
        assert not linkage.reachable(state).any()
    q[:7], q[7] = np.inf, 1.0
    assert not linkage.reachable(q).any() and linkage.reachable(linkage.home[:8]).all()


@pytest.mark.filterwarnings('ignore:invalid value')
@pytest.mark.parametrize('factor', [0.0, 1e-170, 1e170])
def test_a_quaternion_without_direction_gives_nan(flyer, linkage, factor, rng):
    """Its squared length is 0 or infinite; also M and C qd, which do not depend on it."""
    for dynamics in (flyer, linkage):
        for name, function, arguments in functions(dynamics):
            if 'q' in arguments and name not in GIVEN | {'singularity'}:
                inputs = inputs_of(dynamics, arguments, rng)
                inputs[0][3:7] *= factor
                try:
                    row = flat(function(*inputs))[0]
                except ERRORS:
                    continue
                assert is_marked(name, dynamics, row), name
    q, qd, tau = inputs_of(flyer, 'qvv', rng)
    q[3:7] *= factor
    equations = flyer.normal_equations(q[None], qd[None], qd[None], tau[None])
    assert not np.isfinite(equations.vector).any()
    with pytest.raises(rd.RobodynError, match=r'q\[3:7\]'):
        rd.simulate(flyer, q=q, duration=0.01)


def test_a_simulation_and_an_identification_name_what_is_not_a_number(flyer, rng):
    wrench = {'arm': np.full(6, np.nan)}
    for push in (wrench, lambda t, q, qd: wrench):
        with pytest.raises(rd.ValueRangeError, match=r"f_ext\['arm'\] at 0 s"):
            rd.simulate(flyer, q=flyer.home, duration=0.1, f_ext=push)
    motion = [np.tile(x, (9, 1)) for x in inputs_of(flyer, 'qvv', rng)]
    motion[0][4, 3:7] = 0.0
    with pytest.raises(rd.ValueRangeError, match='q is row 4 with a quaternion of length 0'):
        rd.identify_floating_base(flyer.model, *motion)


def test_the_length_of_a_quaternion_has_no_effect(flyer, linkage, rng):
    for dynamics in (flyer, linkage):
        q, qd, tau = inputs_of(dynamics, 'qvv', rng)
        want = dynamics.forward_dynamics(q, qd, tau)
        for factor in (1e-100, -3.0, 1e100):
            changed = q.copy()
            changed[3:7] *= factor
            np.testing.assert_allclose(dynamics.forward_dynamics(changed, qd, tau), want,
                                       rtol=1e-9)


def test_normal_equations_of_a_floating_base(flyer, rng):
    states = [inputs_of(flyer, 'qvvv', rng) for _ in range(5)]
    q, qd, qdd, tau = (np.array(part) for part in zip(*states, strict=True))
    w = flyer.regressor(q, qd, qdd).reshape(5 * flyer.n, -1)
    found = flyer.normal_equations(q, qd, qdd, tau)
    np.testing.assert_allclose(found.matrix, w.T @ w, atol=1e-9)
    np.testing.assert_allclose(found.vector, w.T @ tau.ravel(), atol=1e-9)


def test_the_coriolis_matrix_of_loops_takes_many_states(linkage, rng):
    states = [inputs_of(linkage, 'qv', rng) for _ in range(3)]
    q, qd = (np.array(part) for part in zip(*states, strict=True))
    want = [linkage.coriolis_matrix(*one) for one in states]
    np.testing.assert_allclose(linkage.coriolis_matrix(q, qd), want, atol=1e-12)
    np.testing.assert_allclose(linkage.coriolis_matrix(q[0], qd, near=linkage.home)[0], want[0],
                               atol=1e-12)


def everything(dynamics, q, qd, tau):
    """What a process computes; at the top of the module, so that it can be sent to others."""
    return dynamics.forward_dynamics(q, qd, tau), dynamics.centroidal_momentum(q, qd)


def in_a_fork(function, *arguments):
    """Return what a child process made by os.fork computes."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, pickle.dumps(function(*arguments)))
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, 'rb') as pipe:
        result = pickle.loads(pipe.read())
    os.waitpid(child, 0)
    return result


@pytest.mark.parametrize('which', ['flyer', 'linkage'])
def test_a_used_object_is_copied_pickled_and_forked(which, request, rng):
    dynamics = request.getfixturevalue(which)
    inputs = inputs_of(dynamics, 'qvv', rng)
    want = everything(dynamics, *inputs)
    for other in (copy.copy(dynamics), copy.deepcopy(dynamics),
                  pickle.loads(pickle.dumps(dynamics))):
        assert type(other) is type(dynamics) and other is not dynamics
        assert other.friction_width == dynamics.friction_width
        np.testing.assert_array_equal(np.concatenate(everything(other, *inputs)),
                                      np.concatenate(want))
    np.testing.assert_array_equal(np.concatenate(in_a_fork(everything, dynamics, *inputs)),
                                  np.concatenate(want))


def test_used_objects_work_in_processes_that_are_spawned(flyer, linkage, rng):
    tasks = [(one, *inputs_of(one, 'qvv', rng)) for one in (flyer, linkage)]
    want = [everything(*task) for task in tasks]
    with multiprocessing.get_context('spawn').Pool(1) as pool:
        got = pool.starmap_async(everything, tasks).get(timeout=120)
    for one, other in zip(got, want, strict=True):
        np.testing.assert_array_equal(np.concatenate(one), np.concatenate(other))


def test_batches_of_a_floating_base_over_threads(flyer, rng):
    """Long enough that both threads take parts of it."""
    count = 1 << 15
    q, qd, tau = (np.tile(x, (count, 1)) for x in inputs_of(flyer, 'qvv', rng))
    q[:, 7] = rng.normal(size=count)
    two = rd.Dynamics(flyer.model, friction_width=0.1, threads=2)
    np.testing.assert_array_equal(two.forward_dynamics(q, qd, tau),
                                  flyer.forward_dynamics(q, qd, tau))
