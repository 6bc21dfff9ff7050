"""Robots with a floating base against Pinocchio's free-flyer."""

import numpy as np
import pinocchio as pin
import pytest
from oracle import FreeFlyer
from robots import ROBOTS, joint, link, random_robot, robot, text_of

import robodyn_ros as rd
from robodyn_ros.commands.main import main
from robodyn_ros.dynamics.catalogue import Catalogue
from robodyn_ros.spatial import quaternion_of

ALL = sorted(path.relative_to(ROBOTS).as_posix() for path in ROBOTS.rglob('*.urdf'))
NO_LINK = 'ur_description/urdf/ur3.urdf'
BODY = 1.0, (0.1, 0.02, 0), (0.05, 0, 0, 0.06, 0, 0.07)
MASSLESS = ('romeo_description/urdf/romeo.urdf', 'romeo_description/urdf/romeo_laas_small.urdf')


def state(model, rng):
    quaternion = rng.normal(size=4)
    base = [*rng.normal(size=3), *quaternion / np.linalg.norm(quaternion)]
    q = np.array([*base, *rng.uniform(-1.5, 1.5, len(model.joint_names))])
    return q, rng.normal(size=model.n), rng.normal(size=model.n)


def close(value, expected, relative=1e-9):
    value, expected = np.asarray(value), np.asarray(expected)
    assert value.shape == expected.shape
    assert np.abs(value - expected).max() <= relative * max(np.abs(expected).max(), 1e-9)


def rigid(model):
    """Columns of the rigid-body parameters."""
    return [c for c, name in enumerate(model.parameter_names)
            if name.split(':')[0] in ('Ixx', 'Ixy', 'Ixz', 'Iyy', 'Iyz', 'Izz', 'm', 'mx', 'my',
                                      'mz')]


def check_equations(functions, model, oracle, rng, massless=False):
    """Compare kernels, or the functions from which they are traced, with Pinocchio."""
    q, qd, qdd = state(model, rng)
    tau, still = oracle.inverse_dynamics(q, qd, qdd), 0 * qd
    close(functions.inverse_dynamics(q, qd, qdd), tau)
    close(functions.mass_matrix(q), oracle.mass_matrix(q))
    close(functions.gravity(q), oracle.inverse_dynamics(q, still, still))
    coriolis = oracle.inverse_dynamics(q, qd, still) - oracle.inverse_dynamics(q, still, still)
    assert np.abs(functions.coriolis(q, qd) - coriolis).max() <= 1e-9 * np.abs(tau).max()
    if massless:
        with pytest.raises(rd.RobodynError, match='moves no inertia'):
            functions.forward_dynamics(q, qd, tau)
    else:
        close(oracle.inverse_dynamics(q, qd, functions.forward_dynamics(q, qd, tau)), tau)
    c = oracle.constraint
    pin.computeCentroidalMomentum(oracle.pin, oracle.data, oracle.q(q), c @ qd)
    close(functions.centroidal_momentum(q, qd), oracle.data.hg.vector)
    close(functions.center_of_mass(q), oracle.data.com[0])
    kinetic, potential = functions.energy(q, qd)
    close(kinetic, pin.computeKineticEnergy(oracle.pin, oracle.data, oracle.q(q), c @ qd))
    close(potential, pin.computePotentialEnergy(oracle.pin, oracle.data, oracle.q(q)))
    return q, qd, qdd, tau


@pytest.mark.slow
def test_every_robot_agrees_with_the_free_flyer_of_pinocchio(rng):
    """The functions run on numbers here; the next test compiles them."""
    for name in ALL:
        if name == NO_LINK:
            continue
        text = text_of(name)
        model = rd.load_model(text, base='floating').without_friction()
        check_equations(Catalogue(model), model, FreeFlyer(model, text), rng, name in MASSLESS)


@pytest.mark.parametrize('seed', range(2))
def test_random_trees_agree_with_the_free_flyer(seed, rng):
    """Mimic and prismatic joints, skew axes, links fixed to the base."""
    text = random_robot(seed, 7)
    model = rd.load_model(text, base='floating').without_friction()
    dynamics, oracle = rd.Dynamics(model), FreeFlyer(model, text)
    q, qd, qdd, tau = check_equations(dynamics, model, oracle, rng)
    for name in ('l0', model.description.links[-1].name):
        close(dynamics.pose(q, name), oracle.pose(q, name))
        close(dynamics.jacobian(q, name), oracle.jacobian(q, name))
        close(dynamics.jacobian_dot_qd(q, qd, name), oracle.drift(q, qd, name))
        wrench = rng.normal(size=6)
        pushed = dynamics.inverse_dynamics(q, qd, qdd, {name: wrench})
        close(pushed, tau - oracle.jacobian(q, name).T @ wrench)
        close(dynamics.forward_dynamics(q, qd, pushed, {name: wrench}), qdd, 1e-8)
    columns = rigid(model)
    assert len(columns) == 10 * (len(model.body_joints) + 1)
    close(dynamics.regressor(q, qd, qdd, columns) @ model.standard_parameters[columns], tau)


@pytest.fixture(scope='module')
def flyer():
    """A base with an arm of two joints, with motors that spin about their joints' axes."""
    text = robot(
        link('base', 4.0, (0.02, 0.01, -0.03), (0.05, 0.01, 0, 0.06, 0, 0.07)),
        link('upper', 1.0, (0.2, 0, 0.05), (0.01, 0, 0, 0.02, 0, 0.02)),
        link('lower', 0.7, (0.15, 0.02, 0), (0.01, 0, 0, 0.01, 0, 0.01)),
        joint('j1', 'revolute', 'base', 'upper', (0.1, 0, 0.1), (0.3, 0.2, 0.1),
              extra='<dynamics damping="0.4" friction="0.3"/>'),
        joint('j2', 'prismatic', 'upper', 'lower', (0.4, 0, 0), axis=(1, 0, 0)))
    motors = {'joints': {'j1': {'gear_ratio': 50, 'rotor_inertia': 1e-4, 'spin_axis': 'joint'}}}
    return rd.load_model(text, base='floating', motors=motors)


def test_rotors_and_friction_of_a_floating_robot_enter_its_regressor(flyer, rng):
    dynamics = rd.Dynamics(flyer)
    q, qd, qdd = state(flyer, rng)
    close(dynamics.regressor(q, qd, qdd) @ flyer.standard_parameters,
          dynamics.inverse_dynamics(q, qd, qdd))
    terms = dynamics.terms(q, qd)
    close(terms.mass_matrix @ qdd + terms.coriolis + terms.gravity + terms.friction,
          dynamics.inverse_dynamics(q, qd, qdd))
    assert not terms.friction[:6].any() and terms.friction[6]


def test_the_coriolis_matrix_is_that_of_christoffel(flyer, rng):
    dynamics = rd.Dynamics(flyer)
    q, qd, _ = state(flyer, rng)
    matrix, step = dynamics.coriolis_matrix(q, qd), 1e-6 * dynamics.position_rates(q, qd)
    close(matrix @ qd, dynamics.coriolis(q, qd))
    rate = (dynamics.mass_matrix(q + step) - dynamics.mass_matrix(q - step)) / 2e-6
    skew = rate - 2 * matrix
    close(skew + skew.T + np.eye(flyer.n), np.eye(flyer.n), 1e-7)


def test_without_torques_momentum_changes_by_gravity_alone(flyer, rng):
    """An integration with Runge-Kutta steps conserves energy and angular momentum."""
    free = flyer.without_friction()
    dynamics = rd.Dynamics(free)
    q, qd, _ = state(free, rng)

    def rate(q, qd):
        return np.split(dynamics.state_space(q, qd)[0], [free.nq])

    before, energy = dynamics.centroidal_momentum(q, qd), sum(dynamics.energy(q, qd))
    step, count = 1e-3, 300
    for _ in range(count):
        k1 = rate(q, qd)
        k2 = rate(q + k1[0] * step / 2, qd + k1[1] * step / 2)
        k3 = rate(q + k2[0] * step / 2, qd + k2[1] * step / 2)
        k4 = rate(q + k3[0] * step, qd + k3[1] * step)
        q = q + step / 6 * (k1[0] + 2 * k2[0] + 2 * k3[0] + k4[0])
        qd = qd + step / 6 * (k1[1] + 2 * k2[1] + 2 * k3[1] + k4[1])
    after = dynamics.centroidal_momentum(q, qd)
    mass = 4.0 + 1.0 + 0.7
    close(after[:3], before[:3] + mass * free.gravity * step * count, 1e-8)
    close(sum(dynamics.energy(q, qd)), energy, 1e-7)
    rotor = 50 * 1e-4  # the momentum of a rotor's own spin belongs to its joint alone
    assert np.abs(after[3:] - before[3:]).max() < 2 * rotor * np.abs(qd).max() + 1e-6


def test_the_length_of_the_quaternion_has_no_effect(flyer, rng):
    dynamics = rd.Dynamics(flyer)
    q, qd, qdd = state(flyer, rng)
    longer = q.copy()
    longer[3:7] *= 1.7
    close(dynamics.inverse_dynamics(longer, qd, qdd), dynamics.inverse_dynamics(q, qd, qdd))
    longer[3:7] = 0.0
    assert not np.isfinite(dynamics.gravity(longer)).any() or np.isnan(
        dynamics.gravity(longer)).any()


def test_batches_and_singles_agree_and_the_home_pose_is_valid(flyer, rng):
    dynamics = rd.Dynamics(flyer)
    states = [state(flyer, rng) for _ in range(9)]
    q, qd, qdd = map(np.array, zip(*states, strict=True))
    for method, arguments in (('inverse_dynamics', (q, qd, qdd)), ('mass_matrix', (q,)),
                              ('centroidal_momentum', (q, qd)), ('position_rates', (q, qd))):
        close(getattr(dynamics, method)(*arguments),
              [getattr(dynamics, method)(*one) for one in zip(*arguments, strict=True)], 1e-12)
    close(dynamics.pose(dynamics.home, 'base'), np.eye(4))
    with pytest.raises(rd.ShapeError, match=r'\(9,\)'):
        dynamics.gravity(np.zeros(8))


def test_base_parameters_of_a_floating_robot(tmp_path, capsys, rng):
    """Bodies on revolute joints keep 7 or 8 of 10, the base keeps all ten.

    The base alone determines its ten parameters; each body on a revolute joint adds seven (mass
    and two others are regrouped into the body that carries it).
    """
    text = robot(
        link('base', 4.0, (0.02, 0.01, -0.03), (0.05, 0.01, 0, 0.06, 0, 0.07)),
        link('upper', 1.0, (0.2, 0, 0.05), (0.01, 0, 0, 0.02, 0, 0.02)),
        link('lower', 0.7, (0.15, 0.02, 0), (0.01, 0, 0, 0.01, 0, 0.01)),
        joint('j1', 'revolute', 'base', 'upper', (0.1, 0, 0.1), (0.3, 0.2, 0.1)),
        joint('j2', 'revolute', 'upper', 'lower', (0.4, 0, 0), (0.7, 0.1, 0)))
    base = rd.base_parameters(rd.load_model(text, base='floating'), 'rigid')
    assert base.count == 10 + 7 + 7 and not base.without_effect
    oracle = FreeFlyer(rd.load_model(text, base='floating'), text)
    rows = [pin.computeJointTorqueRegressor(oracle.pin, oracle.data, oracle.q(q), qd, qdd).copy()
            for q, qd, qdd in (state(oracle.model, rng) for _ in range(20))]
    assert np.linalg.matrix_rank(np.concatenate(rows), tol=1e-8) == base.count
    assert [name for name in base.names if name.endswith(':base')] == [
        f'{name}:base' for name in ('Ixx', 'Ixy', 'Ixz', 'Iyy', 'Iyz', 'Izz', 'm', 'mx', 'my',
                                    'mz')]
    fixed = rd.base_parameters(rd.load_model(text), 'rigid')
    assert fixed.count < base.count
    (tmp_path / 'robot.urdf').write_text(text)
    assert main(['parameters', str(tmp_path / 'robot.urdf'), '--base', 'floating',
                 '--kind', 'rigid']) == 0
    assert '24 base parameters' in capsys.readouterr().out


def test_a_floating_joint_of_the_urdf_releases_the_base(rng):
    inner = (link('trunk', 3.0, (0.1, 0, 0), (0.1, 0, 0, 0.2, 0, 0.2)),
             link('leg', 1.0, (0, 0, -0.2)),
             joint('hip', 'revolute', 'trunk', 'leg', axis=(0, 1, 0)))
    text = robot(link('world'), link('ground', 9.0), *inner,
                 joint('floor', 'fixed', 'world', 'ground'),
                 joint('free', 'floating', 'world', 'trunk', (0, 0, 0.4)))
    model = rd.load_model(text)
    assert model.floating and model.n == 7 and model.nq == 8
    assert model.velocity_names == ('trunk.vx', 'trunk.vy', 'trunk.vz', 'trunk.wx', 'trunk.wy',
                                    'trunk.wz', 'hip')
    assert set(model.link_frames) == {'trunk', 'leg'}
    finding = next(one for one in model.findings if one.quantity == 'type')
    assert 'ground' in finding.reason and '<origin>' in finding.reason
    q, qd, qdd = state(model, rng)
    same = rd.load_model(robot(*inner), base='floating')
    close(rd.Dynamics(model).inverse_dynamics(q, qd, qdd),
          rd.Dynamics(same).inverse_dynamics(q, qd, qdd))
    held = rd.load_model(text, base='fixed')
    assert held.n == 1 and not held.floating and held.description.root == 'trunk'
    elsewhere = robot(link('world'), *inner, joint('free', 'floating', 'world', 'trunk'),
                      link('toe', 0.1), joint('loose', 'floating', 'leg', 'toe'))
    with pytest.raises(rd.DescriptionError, match="'loose'.*one floating joint"):
        rd.load_model(elsewhere)
    with pytest.raises(rd.UnknownNameError, match="did you mean 'floating'"):
        rd.load_model(text, base='float')


def test_a_planar_joint_moves_in_its_plane(rng):
    """Pinocchio's planar joint has its velocity in the axes of the body."""
    text = robot(link('world'), link('cart', 5.0, (0.1, 0.2, 0.3), (0.2, 0, 0, 0.3, 0, 0.4)),
                 link('arm', 1.0, (0.3, 0, 0), (0.01, 0, 0, 0.02, 0, 0.02)),
                 joint('plane', 'planar', 'world', 'cart', (0.2, 0.1, 0), (0.1, 0.2, 0.3)),
                 joint('j', 'revolute', 'cart', 'arm', (0, 0, 0.5), axis=(0, 1, 0)))
    model = rd.load_model(text)
    assert model.joint_names == ('plane_x', 'plane_y', 'plane_yaw', 'j')
    dynamics, other = rd.Dynamics(model), pin.buildModelFromXML(text)
    other.gravity.linear = np.array(model.gravity)
    data = other.createData()
    x, y, yaw, angle = q = rng.normal(size=4)
    turn = np.eye(4)
    turn[:2, :2] = [[np.cos(yaw), np.sin(yaw)], [-np.sin(yaw), np.cos(yaw)]]
    placed = np.array([x, y, np.cos(yaw), np.sin(yaw), angle])
    close(dynamics.mass_matrix(q), turn.T @ pin.crba(other, data, placed) @ turn)
    close(dynamics.gravity(q), turn.T @ pin.computeGeneralizedGravity(other, data, placed))
    across = rd.load_model(text.replace('axis xyz="0.0 0.0 1.0"', 'axis xyz="1.0 0.0 0.0"'))
    assert np.allclose(across.axis[:3], [[0, 0, -1], [0, 1, 0], [1, 0, 0]])


def test_the_motion_of_a_link_gives_that_of_its_base(flyer, rng):
    """A camera on the base, whose pose and twist are computed from those of the base."""
    text = robot(link('base', *BODY), link('camera'), link('leg', *BODY), joint(
        'mount', 'fixed', 'base', 'camera', (0.3, 0.1, 0.2), (0.4, -1.2, 2.0)), joint(
        'hip', 'revolute', 'base', 'leg'))
    model = rd.load_model(text, base='floating')
    dynamics, frame = rd.Dynamics(model), model.link_frames['camera']
    q, qd = (np.array(part) for part in zip(*(state(model, rng)[:2] for _ in range(4)),
                                            strict=True))
    poses, jacobians = dynamics.pose(q, 'camera'), dynamics.jacobian(q, 'camera')
    twists = np.einsum('tij,tj->ti', jacobians, qd).reshape(4, 2, 3)
    pose = np.array([[*one[:3, 3], *quaternion_of(one[:3, :3])] for one in poses])
    twist = np.einsum('tji,tkj->tki', poses[:, :3, :3], twists).reshape(4, 6)
    found = frame.motion_of_body(pose, twist)
    close(found[0][:, :3], q[:, :3])
    close(found[0][:, 3:] * np.sign(np.sum(found[0][:, 3:] * q[:, 3:7], axis=1))[:, None],
          q[:, 3:7])
    close(found[1], qd[:, :6])
    close(np.concatenate(frame.motion_of_body(pose[0], twist[0])), np.hstack(found)[0])


def test_what_needs_a_fixed_base_says_so(flyer):
    from robodyn_ros.simulation import Simulation

    for attempt in (lambda: rd.optimise_excitation(flyer), lambda: rd.inertia_bounds(flyer),
                    lambda: rd.Dynamics(flyer).inverse_dynamics_pullback(
                        *np.zeros((4, 1, 8)))):
        with pytest.raises(rd.RobodynError, match="base='fixed'"):
            attempt()
    free = robot(link('world'), link('a', 1.0), joint('free', 'floating', 'world', 'a'),
                 link('b', 1.0), joint('j', 'revolute', 'a', 'b'))
    with pytest.raises(rd.RobodynError, match="base='fixed'"):
        Simulation(free)


@pytest.mark.parametrize(('base', 'parts', 'what'), [
    ('floating', (link('w'), link('a', *BODY),
                  joint('j', 'revolute', 'w', 'a', axis=(0.6, 0, 0.8))),
     "the base 'w' and the joint 'j' can move together"),
    ('floating', (link('w'), link('a', *BODY), joint('j', 'planar', 'w', 'a', rpy=(1, 2, 3))),
     "the base 'w' and the joints 'j_x', 'j_y', 'j_yaw' can move together"),
    ('fixed', (link('w'), link('a'), link('b', *BODY), joint('j', 'revolute', 'w', 'a'),
               joint('k', 'revolute', 'a', 'b')), "the joints 'j', 'k' can move together")])
def test_joints_that_move_no_inertia_together_are_named(base, parts, what, rng):
    """A massless link between two joints; without the error, accelerations were 1e16."""
    model = rd.load_model(robot(*parts), base=base)
    zero = np.zeros(model.n)
    for shared in (False, True):
        dynamics = rd.Dynamics(model, shared_code=shared)
        assert np.isfinite(dynamics.inverse_dynamics(dynamics.home, zero, zero)).all()
        with pytest.raises(rd.RobodynError, match=what):
            dynamics.forward_dynamics(dynamics.home, zero, zero)
    light = rd.Dynamics(rd.load_model(robot(link('w'), link('a', 1.0), joint(
        'j', 'revolute', 'w', 'a')), base='floating'))
    with pytest.raises(rd.ValueRangeError, match='mass matrix is singular'):
        light.operational_space(light.home, np.zeros(7), 'a')


def test_a_massless_base_that_two_joints_carry_moves(rng):
    text = robot(link('w'), *(part for k in 'ab' for part in (link(k, *BODY), joint(
        f'to_{k}', 'revolute', 'w', k, rng.normal(size=3), rng.normal(size=3)))))
    model = rd.load_model(text, base='floating')
    check_equations(rd.Dynamics(model), model, FreeFlyer(model, text), rng)


def test_a_written_urdf_has_the_inertial_of_the_base(flyer, tmp_path):
    chi = flyer.standard_parameters.copy()
    chi[-10:] *= 1.1
    changed = flyer.with_standard_parameters(chi)
    close(changed.base_inertial_parameters, 1.1 * flyer.base_inertial_parameters)
    rd.write_urdf(changed, tmp_path / 'robot.urdf')
    again = rd.load_model(tmp_path / 'robot.urdf', base='floating')
    close(again.base_inertial_parameters, changed.base_inertial_parameters)
    heavier = flyer.with_payload('base', 2.0)
    assert heavier.standard_parameters[-4] == flyer.standard_parameters[-4] + 2.0


def test_a_written_robot_keeps_its_floating_joint(tmp_path):
    """Or loses it, as MJCF, if the base was held: a model says whether its base floats."""
    body = (0.1, 0, 0, 0.1, 0, 0.1)
    text = robot(link('world'), link('trunk', 3.0, inertia=body), link('leg', 1.0, inertia=body),
                 joint('free', 'floating', 'world', 'trunk', (0, 0, 0.4)),
                 joint('hip', 'revolute', 'trunk', 'leg', axis=(0, 1, 0)))
    for base in ('auto', 'fixed'):
        model = rd.load_model(text, base=base)
        changed = model.with_standard_parameters(1.1 * model.standard_parameters)
        rd.write_urdf(changed, tmp_path / 'robot.urdf')
        again = rd.load_model(tmp_path / 'robot.urdf')
        assert again.floating and rd.load_model(tmp_path / 'robot.urdf', base=base).n == model.n
        close(again.inertial_parameters, changed.inertial_parameters)
        rd.write_mjcf(changed, tmp_path / 'robot.xml')
        assert rd.load_model(tmp_path / 'robot.xml').floating == model.floating
