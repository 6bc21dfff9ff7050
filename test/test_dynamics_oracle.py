"""Every robot of example-robot-data against Pinocchio."""

import numpy as np
import pytest
from oracle import Oracle
from robots import (
    KINOVA_URDF,
    PANDA,
    PANDA_URDF,
    ROBOTS,
    TIAGO_URDF,
    UR10_URDF,
    planar_2r,
    text_of,
)

import robodyn_ros as rd

ALL = sorted(path.relative_to(ROBOTS).as_posix() for path in ROBOTS.rglob('*.urdf'))
# for `make quick`, a few robots stand for all
FEW = {PANDA, 'ur_description/urdf/ur10_robot.urdf', 'hyq_description/robots/hyq_no_sensors.urdf',
       'baxter_description/urdf/baxter.urdf', 'ur_description/urdf/ur3.urdf'}
EVERY_ROBOT = pytest.mark.parametrize('name', [
    name if name in FEW else pytest.param(name, marks=pytest.mark.slow) for name in ALL])
# no dynamics in them: no moving joint, or (ur3.urdf) no link at all
WITHOUT = {'hector_description/robots/quadrotor_base.urdf',
           'iris_description/robots/iris_simple.urdf', 'ur_description/urdf/ur3.urdf'}

# a joint with no mass beyond it: its acceleration is undefined
MASSLESS = {'romeo_description/urdf/romeo.urdf': 'moves no inertia',
            'romeo_description/urdf/romeo_laas_small.urdf': 'r_gripper_joint'}
# propellers of 1e-5 kg m^2 and the like, whose results are mostly round-off
LIGHT = ('iris_description',)


def close(value, expected, relative):
    value, expected = np.asarray(value), np.asarray(expected)
    assert value.shape == expected.shape
    scale = max(np.abs(expected).max(), 1e-9)
    assert np.abs(value - expected).max() <= relative * scale


def states(model, rng, count=1):
    return rng.uniform(-1.5, 1.5, (3, count, model.n))


@EVERY_ROBOT
def test_every_robot_agrees_with_pinocchio(name, rng):
    text = text_of(name)
    if name in WITHOUT:
        with pytest.raises(rd.DescriptionError):
            rd.load_model(text)
        return
    model = rd.load_model(text).without_friction()
    dynamics, oracle = rd.Dynamics(model), Oracle(model, text)
    q, qd, qdd = states(model, rng)[:, 0]
    close(dynamics.inverse_dynamics(q, qd, qdd), oracle.inverse_dynamics(q, qd, qdd), 1e-9)
    close(dynamics.gravity(q), oracle.gravity(q), 1e-9)
    close(dynamics.mass_matrix(q), oracle.mass_matrix(q), 1e-9)
    moving = np.abs(oracle.inverse_dynamics(q, qd, qdd)).max()
    assert np.abs(dynamics.coriolis(q, qd) - oracle.coriolis(q, qd)).max() <= 1e-9 * moving
    tau = oracle.inverse_dynamics(q, qd, qdd)
    if name in MASSLESS:
        with pytest.raises(rd.RobodynError, match=MASSLESS[name]):
            dynamics.forward_dynamics(q, qd, tau)
        assert np.diag(oracle.mass_matrix(q)).min() < 1e-15
    else:  # forward dynamics amplify round-off by the condition of M: compare the torques needed
        back = dynamics.forward_dynamics(q, qd, tau)
        close(oracle.inverse_dynamics(q, qd, back), tau, 1e-9)
    tip = max(model.link_frames, key=lambda link: model.link_frames[link].body)
    close(dynamics.jacobian(q, tip), oracle.jacobian(q, tip), 1e-9)
    close(dynamics.pose(q, tip), oracle.pose(q, tip), 1e-9)
    regressor = dynamics.regressor(q, qd, qdd, rigid(model))
    close(regressor @ model.standard_parameters[rigid(model)], tau, 1e-9)
    if name not in MASSLESS and not name.startswith(LIGHT):
        check_operational_space(dynamics, oracle, q, qd, tip)
    kinetic, potential = oracle.energy(q, qd)
    close(dynamics.energy(q, qd).kinetic, kinetic, 1e-9)
    reference = 0 * q
    close(dynamics.energy(q, qd).potential - dynamics.energy(reference, qd).potential,
          potential - oracle.energy(reference, qd)[1], 1e-8)


@pytest.mark.parametrize('source', [PANDA_URDF, UR10_URDF, KINOVA_URDF, TIAGO_URDF, 'planar'])
def test_accuracy_over_many_states(source, rng):
    text = planar_2r() if source == 'planar' else source.read_text()
    gravity = (0, -9.81, 0) if source == 'planar' else (0, 0, -9.81)
    model = rd.load_model(text, gravity=gravity).without_friction()
    dynamics, oracle = rd.Dynamics(model), Oracle(model, text)
    q, qd, qdd = states(model, rng, 203)
    for method, arguments in (('inverse_dynamics', (q, qd, qdd)), ('gravity', (q,)),
                              ('coriolis', (q, qd)), ('mass_matrix', (q,)),
                              ('coriolis_matrix', (q, qd))):
        expected = np.array([getattr(oracle, method)(*one) for one in zip(
            *arguments, strict=True)])
        close(getattr(dynamics, method)(*arguments), expected, 1e-10)
        close(getattr(dynamics, method)(*(a[0] for a in arguments)), expected[0], 1e-10)


def check_operational_space(dynamics, oracle, q, qd, tip):
    """Lambda, mu and rho of as many task directions as the tip can be accelerated in."""
    jacobian, inverse = oracle.jacobian(q, tip), np.linalg.inv(oracle.mass_matrix(q))
    drift = oracle.drift(q, qd, tip)
    close(np.append(dynamics.jacobian_dot_qd(q, qd, tip), 1), np.append(drift, 1), 1e-9)
    for axes in ((0, 1, 2), (3, 4, 5), (0,), (5,)):
        rows = jacobian[list(axes)]
        space = dynamics.operational_space(q, qd, tip, axes)
        seen = rows @ inverse @ rows.T
        condition = np.linalg.cond(seen)
        assert space.redundancy == dynamics.model.n - space.rank
        if condition > 1e9:  # singular: reported, and finite
            assert space.singular and np.isfinite(space.Lambda).all()
            continue
        expected = np.linalg.inv(seen)
        accuracy = 1e-9 * max(1, condition * np.linalg.cond(inverse) * 1e-6)
        assert not space.singular and space.rank == len(axes)
        close(space.Lambda, expected, accuracy)
        # in free fall, for example, torques cancel: compare with the terms that cancel
        size = np.abs(expected).max() * np.abs(rows).max()
        for value, torque, shift in ((space.mu, oracle.coriolis(q, qd), drift[list(axes)]),
                                     (space.rho, oracle.gravity(q), 0.0 * drift[list(axes)])):
            fall = inverse @ torque
            error = np.abs(value - expected @ (rows @ fall - shift)).max()
            assert error <= accuracy * size * (np.abs(fall).max() + np.abs(shift).max())


def rigid(model):
    """Columns of the rigid-body parameters."""
    return [c for c in range(len(model.parameter_names)) if c % 17 < 10]


def test_joint_and_base_wrenches(rng):
    import pinocchio as pin

    text = UR10_URDF.read_text()
    model = rd.load_model(text)
    dynamics, oracle = rd.Dynamics(model), Oracle(model, text)
    q, qd, qdd = states(model, rng)[:, 0]
    oracle.inverse_dynamics(q, qd, qdd)
    expected = [oracle.data.f[oracle.pin.getJointId(name)].vector
                for name in dynamics.wrench_joints]
    close(dynamics.joint_wrenches(q, qd, qdd), expected, 1e-9)
    forces = oracle.data.f[3].linear.copy()
    pin.forwardKinematics(oracle.pin, oracle.data, oracle.q(q))
    rotation = oracle.data.oMi[3].rotation
    close(dynamics.joint_wrenches(q, qd, qdd, frame='root')[2, :3],
          rotation @ forces, 1e-9)
    # at rest the mounting carries the weight, root link included
    total = sum(link.inertial.mass for link in model.description.links if link.inertial)
    still = dynamics.base_wrench(q, 0 * q, 0 * q)
    close(still[:3], total * model.gravity, 1e-9)
    base = oracle.pin.inertias[0]
    pin.centerOfMass(oracle.pin, oracle.data, oracle.q(q))
    centre = pin.computeTotalMass(oracle.pin) * oracle.data.com[0] + base.mass * base.lever
    close(still[3:], np.cross(centre, model.gravity), 1e-9)
    close(dynamics.base_wrench(np.array([q, q]), np.array([qd, qd]), qdd).shape, (2, 6), 0)


def test_external_wrench(rng):
    model = rd.load_model(PANDA_URDF)
    dynamics, oracle = rd.Dynamics(model), Oracle(model, PANDA_URDF.read_text())
    q, qd, qdd = states(model, rng)[:, 0]
    wrench = rng.normal(size=6)
    tau = dynamics.inverse_dynamics(q, qd, qdd, {'panda_hand': wrench})
    close(tau, dynamics.inverse_dynamics(q, qd, qdd)
          - oracle.jacobian(q, 'panda_hand').T @ wrench, 1e-9)
    back = dynamics.forward_dynamics(q, qd, tau, {'panda_hand': wrench})
    close(back, qdd, 1e-8)
