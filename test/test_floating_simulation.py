"""`rd.simulate` with a floating base against conservation laws, MuJoCo and Pinocchio."""

import numpy as np
import pinocchio as pin
import pytest
from oracle import FreeFlyer
from robots import joint, link, robot

import robodyn_ros as rd

TEXT = robot(
    link('base', 4.0, (0.02, 0.01, -0.03), (0.05, 0.01, 0, 0.06, 0, 0.07)),
    link('upper', 1.0, (0.2, 0, 0.05), (0.01, 0, 0, 0.02, 0, 0.02)),
    link('lower', 0.7, (0.15, 0.02, 0), (0.01, 0, 0, 0.01, 0, 0.01)),
    *(link(f'foot{k}') for k in range(4)),
    *(joint(f'mount{k}', 'fixed', 'base', f'foot{k}', (x, y, -0.2))
      for k, (x, y) in enumerate(((0.2, 0.1), (0.2, -0.1), (-0.2, 0.1), (-0.2, -0.1)))),
    joint('j1', 'revolute', 'base', 'upper', (0.1, 0, 0.1), (0.3, 0.2, 0.1)),
    joint('j2', 'revolute', 'upper', 'lower', (0.4, 0, 0), axis=(1, 0, 0)))
MASS = 5.7
START = np.array([0.1, -0.2, 1.0, 0.1, 0.5, -0.3, 0.8, 0.3, -0.4])
START[3:7] /= np.linalg.norm(START[3:7])
SPIN = np.array([0.3, -0.2, 0.5, 4.0, -3.0, 6.0, 1.0, -2.0])


@pytest.fixture(scope='module')
def dynamics():
    return rd.Dynamics(rd.load_model(TEXT, base='floating'))


def same_pose(q, expected, tolerance):
    """A quaternion and its negative are the same rotation."""
    turn = q[3:7] * np.sign(q[3:7] @ expected[3:7])
    np.testing.assert_allclose(np.concatenate([q[:3], turn, q[7:]]), expected, atol=tolerance)


def test_free_flight_keeps_energy_and_momentum(dynamics):
    """Over two seconds and several turns; the quaternion keeps its unit length."""
    motion = rd.simulate(dynamics, q=START, qd=SPIN, duration=2.0, rtol=1e-10,
                         atol=1e-12)
    energy = sum(dynamics.energy(motion.q, motion.qd))
    momentum = dynamics.centroidal_momentum(motion.q, motion.qd)
    assert np.ptp(dynamics.energy(motion.q, motion.qd).kinetic) > 50
    np.testing.assert_allclose(energy, energy[0], atol=1e-6)
    np.testing.assert_allclose(momentum[:, 3:], momentum[:1, 3:].repeat(201, 0), atol=1e-6)
    falling = momentum[0, :3] + MASS * motion.t[:, None] * dynamics.model.gravity
    np.testing.assert_allclose(momentum[:, :3], falling, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(motion.q[:, 3:7], axis=1), 1, atol=4e-16)
    longer = START * np.where(np.isin(range(9), range(3, 7)), 3.0, 1.0)
    again = rd.simulate(dynamics, q=longer, qd=SPIN, duration=0.1, times=[0.1])
    np.testing.assert_allclose(again.q[0], motion.q[10], atol=1e-7)


def test_it_falls_and_turns_as_in_mujoco(dynamics, tmp_path):
    mujoco = pytest.importorskip('mujoco')
    rd.write_mjcf(dynamics.model, tmp_path / 'flyer.xml')
    engine = mujoco.MjModel.from_xml_path(str(tmp_path / 'flyer.xml'))
    engine.opt.integrator, engine.opt.timestep = mujoco.mjtIntegrator.mjINT_RK4, 5e-4
    engine.opt.disableflags |= (mujoco.mjtDisableBit.mjDSBL_CONTACT
                                | mujoco.mjtDisableBit.mjDSBL_LIMIT)
    data = mujoco.MjData(engine)
    turn = np.zeros(9)
    data.qpos[:] = [*START[:3], START[6], *START[3:6], *START[7:]]
    mujoco.mju_quat2Mat(turn, data.qpos[3:7])
    data.qvel[:] = [*turn.reshape(3, 3) @ SPIN[:3], *SPIN[3:]]
    data.qfrc_applied[6:] = torque = np.array([0.4, -0.2])
    mujoco.mj_step(engine, data, 1000)
    motion = rd.simulate(dynamics, np.append(np.zeros(6), torque), q=START, qd=SPIN, duration=0.5,
                         times=[0.5])
    same_pose(motion.q[0], np.concatenate([data.qpos[:3], data.qpos[4:7], data.qpos[3:4],
                                           data.qpos[7:]]), 1e-5)


def test_forces_of_the_state_act_as_in_an_integration_by_pinocchio(dynamics):
    """Midpoint steps with Pinocchio's integrate; a spring with a damper holds the last link."""
    oracle, step = FreeFlyer(dynamics.model, TEXT), 2.5e-4

    def spring(position, velocity):
        return np.concatenate([-60.0 * position - 2.0 * velocity, np.zeros(3)])

    def push(t, q, qd):
        return {'lower': spring(dynamics.pose(q, 'lower')[:3, 3],
                                dynamics.jacobian(q, 'lower')[:3] @ qd)}

    def acceleration(q, v):
        jacobian = oracle.jacobian(q, 'lower')
        force = spring(oracle.pose(q, 'lower')[:3, 3], jacobian[:3] @ v)
        return pin.aba(oracle.pin, oracle.data, oracle.q(q), v, jacobian.T @ force)

    q, v = START, SPIN / 2
    for _ in range(800):
        middle = pin.integrate(oracle.pin, q, v * step / 2)
        speed = v + acceleration(q, v) * step / 2
        q, v = (pin.integrate(oracle.pin, q, speed * step),
                v + acceleration(middle, speed) * step)
    motion = rd.simulate(dynamics, q=START, qd=SPIN / 2, duration=0.2, f_ext=push)
    same_pose(motion.q[-1], q, 5e-6)
    np.testing.assert_allclose(motion.qd[-1], v, atol=1e-4)
    free = rd.simulate(dynamics, q=START, qd=SPIN / 2, duration=0.2, times=[0.2],
                       f_ext=lambda t: {'lower': np.zeros(6)})
    assert np.abs(free.q[0] - motion.q[-1]).max() > 0.05


def test_a_robot_that_lands_comes_to_rest_on_its_feet(dynamics):
    """A ground of springs that only push; the joints are held by torques."""
    feet = [f'foot{k}' for k in range(4)]

    def ground(t, q, qd):
        forces = {}
        for foot in feet:
            height = dynamics.pose(q, foot)[2, 3]
            speed = dynamics.jacobian(q, foot)[:3] @ qd
            normal = max(-2e4 * height - 300 * speed[2], 0.0) if height < 0 else 0.0
            forces[foot] = [*(-0.02 * normal * speed[:2]), normal, 0, 0, 0]
        return forces

    def hold(t, q, qd):
        return np.append(np.zeros(6), dynamics.gravity(q)[6:] - 40 * q[7:] - 4 * qd[6:])

    q = np.array([0, 0, 0.25, 0, 0, 0, 1.0, 0, 0])
    motion = rd.simulate(dynamics, hold, q=q, duration=1.2, times=[0.0, 1.2], f_ext=ground,
                         method='LSODA', rtol=1e-6, atol=1e-8)
    q, qd = motion.q[-1], motion.qd[-1]
    assert np.abs(qd).max() < 0.01 and 0.19 < q[2] < 0.2
    total = sum(np.array(force) for force in ground(0, q, qd).values())
    assert total[2] == pytest.approx(MASS * 9.80665, rel=0.01)


def test_a_quaternion_of_zero_is_refused(dynamics):
    with pytest.raises(rd.ValueRangeError, match=r'q\[3:7\].*length 1'):
        rd.simulate(dynamics, q=np.zeros(9), duration=0.1)
