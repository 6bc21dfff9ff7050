"""The embedded engine compared with this package's equations, and control laws in it."""

import numpy as np
import pytest
from measured_logs import DATA
from robots import PANDA_URDF, planar_2r
from synthetic import fourier_motion

import robodyn_ros as rd
from robodyn_ros.control import (
    Gains,
    automatic_gains,
    computed_torque,
    feedforward_gravity,
    feedforward_pd,
    gravity_compensation,
    pd,
)
from robodyn_ros.excitation import sample_motion
from robodyn_ros.simulation import Sensors, Simulation, SimulationError, perturbed_urdf

PANDA = PANDA_URDF.read_text().replace('type="prismatic"', 'type="fixed"')  # fingers closed
UR10 = (DATA / 'ur10/ur10_nomesh.urdf').read_text()
DRIVES = {'joints': {'j1': {'armature': 0.4, 'damping': 0.8, 'friction': 0.5},
                     'j2': {'armature': 0.1, 'damping': 0.2}}}
ARMS = {'panda': PANDA, 'ur10': UR10}


def within(model, rng, share=0.6):
    """A random pose well inside the joint range."""
    lower, upper = np.maximum(model.lower, -np.pi), np.minimum(model.upper, np.pi)
    return (lower + upper) / 2 + share / 2 * (upper - lower) * rng.uniform(-1, 1, model.n)


# the engine -----------------------------------------------------------------------------------


@pytest.mark.parametrize('text', [PANDA, UR10, planar_2r()], ids=['panda', 'ur10', '2r'])
def test_accelerations_agree_with_forward_dynamics(text, rng):
    simulation = Simulation(text, timestep=1e-5, limit_efforts=False)
    model = rd.load_model(text)
    assert simulation.joint_names == model.joint_names
    dynamics = rd.Dynamics(model)
    for _ in range(5):
        q, tau = within(model, rng), rng.normal(size=model.n)
        qd = rng.normal(size=model.n) * 0.5
        simulation.reset(q, qd)
        simulation.step(tau, 1)
        want = dynamics.forward_dynamics(q, qd, tau)
        got = (simulation.velocity - qd) / 1e-5
        np.testing.assert_allclose(got, want, atol=2e-2 * np.abs(want).max())


def test_the_engine_simulates_drives(rng):
    simulation = Simulation(planar_2r(), truth=DRIVES, timestep=1e-5)
    dynamics = rd.Dynamics(simulation.true_model)
    np.testing.assert_array_equal(simulation.true_model.armature, [0.4, 0.1])
    q, qd, tau = np.array([0.3, -0.4]), np.array([0.7, -0.9]), np.array([2.0, 1.0])
    simulation.reset(q, qd)
    simulation.step(tau, 1)
    np.testing.assert_allclose((simulation.velocity - qd) / 1e-5,
                               dynamics.forward_dynamics(q, qd, tau), rtol=2e-2)
    simulation.reset(q)
    simulation.step([0.45, 0.0], 5)  # below the Coulomb friction of j1: it sticks
    assert abs(simulation.velocity[0]) < 1e-3


def test_perturbations_change_the_simulated_robot():
    truth = {'links': {'lower': {'mass': 1.2, 'com': [0.01, 0.02, 0.0], 'inertia': 1.1}}}
    nominal = rd.load_model(planar_2r()).description
    true = rd.load_model(perturbed_urdf(planar_2r(), truth)).description
    before = next(link.inertial for link in nominal.links if link.name == 'lower')
    after = next(link.inertial for link in true.links if link.name == 'lower')
    assert after.mass == pytest.approx(1.2 * before.mass)
    np.testing.assert_allclose(after.com, before.com + [0.01, 0.02, 0.0])
    np.testing.assert_allclose(after.inertia, 1.1 * before.inertia)


def test_errors_name_bad_truths(tmp_path):
    for truth, match in (({'limbs': {}}, 'limbs'), ({'links': {'hand': {}}}, 'hand'),
                         ({'links': {'lower': {'mas': 1}}}, 'mas'),
                         ({'joints': {'j1': {'damping': -1}}}, 'j1: damping'),
                         ({'links': {'lower': {'com': [1]}}}, 'lower: com'),
                         ({'joints': {'j9': {}}}, 'j9'), ({'links': {'lower': 3}}, 'lower')):
        with pytest.raises(rd.RobodynError, match=match):
            Simulation(planar_2r(), truth=truth)
    broken = tmp_path / 'truth.yaml'
    broken.write_text('links: [')
    with pytest.raises(rd.DescriptionError, match='truth.yaml'):
        Simulation(planar_2r(), truth=broken)


def test_bad_torques_move_nothing():
    simulation = Simulation(planar_2r())
    simulation.reset([0.1, 0.2])
    with pytest.raises(rd.ValueRangeError, match='torque of j2'):
        simulation.step([0.0, np.nan])
    with pytest.raises(rd.ShapeError, match='torque'):
        simulation.step([0.0])
    assert simulation.time == 0.0
    simulation.step([1e9, -1e9])
    np.testing.assert_array_equal(np.abs(simulation.effort),
                                  simulation.true_model.effort_limit)
    with pytest.raises(SimulationError, match='diverged'):
        wild = Simulation(planar_2r(), limit_efforts=False)
        wild.step([1e12, -1e12], 100)


def test_sensors_are_repeatable():
    sensors = Sensors(position_noise=1e-4, velocity_noise=1e-2, effort_noise=0.1,
                      position_step=1e-3, delay=0.01, dropped=0.2, seed=3)

    def run():
        simulation = Simulation(planar_2r(), sensors=sensors)
        heard = []
        for _ in range(300):
            simulation.step([1.0, 0.5])
            heard.append(simulation.measure())
        return heard

    first, second = run(), run()
    times = [m.time for m in first if m is not None]
    assert times == [m.time for m in second if m is not None]
    assert 0.7 * 300 < len(times) < 0.9 * 300
    late = [0.001 * (k + 1) - m.time for k, m in enumerate(first) if m is not None]
    np.testing.assert_allclose(late, 0.01, atol=1e-9)
    for m in first:
        if m is not None:
            np.testing.assert_allclose(m.position / 1e-3, np.round(m.position / 1e-3), atol=1e-6)


def test_mimic_joints_follow(rng):
    simulation = Simulation(PANDA_URDF.read_text())
    model = simulation.true_model
    start = within(model, rng)
    simulation.reset(start)
    dynamics = rd.Dynamics(model)
    for _ in range(200):
        push = np.zeros(model.n)
        push[-1] = 0.05
        simulation.step(dynamics.gravity(simulation.position) - 2 * simulation.velocity + push)
    engine = simulation._state
    fingers = engine.qpos[-2:]
    assert fingers[0] > start[-1] + 1e-3
    assert fingers[1] == pytest.approx(fingers[0], abs=1e-3)  # the engine's constraint is soft


def test_lock_step_is_deterministic(rng):
    torques = rng.normal(size=(200, 2))
    ends = []
    for _ in range(2):
        simulation = Simulation(planar_2r(), truth=DRIVES)
        for torque in torques:
            simulation.step(torque, 2)
        ends.append(simulation.position)
    np.testing.assert_array_equal(*ends)


# control laws in closed loop ------------------------------------------------------------------


def arm(name, **options):
    """A simulation, and the dynamics of the same robot with a smooth sign of friction."""
    simulation = Simulation(ARMS[name], **options)
    return simulation, rd.Dynamics(rd.load_model(ARMS[name]), friction_width=0.01)


@pytest.mark.parametrize('name', ARMS)
def test_gravity_compensation_holds_any_pose(name, rng):
    simulation, dynamics = arm(name)
    poses = np.array([within(dynamics.model, rng) for _ in range(50)])
    damping = 10 * np.diagonal(dynamics.mass_matrix(poses), axis1=1, axis2=2).min(axis=0)
    for _ in range(4):
        start = within(dynamics.model, rng, 0.5)
        simulation.reset(start)
        for _ in range(500):  # 1 s of a 500 Hz loop
            simulation.step(gravity_compensation(dynamics, simulation.position,
                                                 simulation.velocity, damping), 2)
        assert np.abs(simulation.position - start).max() < np.deg2rad(0.5)


def tracking_error(simulation, law, motion):
    """Root mean square position error of a law along a motion."""
    _, q, qd, qdd = motion
    simulation.reset(q[0], qd[0])
    wrong = []
    for q_r, qd_r, qdd_r in zip(q, qd, qdd, strict=True):
        wrong.append(simulation.position - q_r)
        simulation.step(law(simulation.position, simulation.velocity, q_r, qd_r, qdd_r))
    return float(np.sqrt(np.mean(np.square(wrong))))


def joint_gains(dynamics, motion):
    """Gains that are stable at 1 kHz with the least inertia of each joint along the motion."""
    mass = dynamics.mass_matrix(motion[1])
    least = np.diagonal(mass, axis1=1, axis2=2).min(axis=0)
    return Gains.of(len(least), 100.0 * least, 20.0 * least)


@pytest.mark.parametrize('name', ARMS)
def test_models_track_ten_times_better_than_pd(name):
    simulation, dynamics = arm(name)
    model = dynamics.model
    motion = fourier_motion(model, np.random.default_rng(4), 4.0, 1000, frequency=0.25,
                            harmonics=3)
    gains = joint_gains(dynamics, motion)
    plain = tracking_error(simulation, lambda q, qd, q_r, qd_r, qdd_r: pd(
        q, qd, q_r, qd_r, gains), motion)
    laws = {
        'feed-forward': lambda *s: feedforward_pd(dynamics, *s, gains),
        'feed-forward with gravity at the state': lambda *s: feedforward_gravity(
            dynamics, *s, gains),
        'computed torque': lambda *s: computed_torque(dynamics, *s, Gains.of(
            model.n, 100.0, 20.0)),
    }
    for law, function in laws.items():
        assert tracking_error(simulation, function, motion) < 0.1 * plain, law


def test_a_payload_known_to_the_controller_restores_the_tracking():
    simulation, dynamics = arm('panda')
    model = dynamics.model
    motion = fourier_motion(model, np.random.default_rng(4), 3.0, 1000, frequency=0.25,
                            harmonics=3)
    gains = joint_gains(dynamics, motion)
    error = {'free': tracking_error(simulation, lambda *s: feedforward_pd(dynamics, *s, gains),
                                    motion)}
    simulation.attach('panda_hand', 3.0, (0.0, 0.0, 0.1))
    loaded = rd.Dynamics(model.with_payload('panda_hand', 3.0, (0.0, 0.0, 0.1)),
                         friction_width=0.01)
    for key, known in (('unknown', dynamics), ('known', loaded)):
        error[key] = tracking_error(simulation, lambda *s, known=known: feedforward_pd(
            known, *s, gains), motion)
    assert error['unknown'] > 5 * error['free'] and error['known'] < 2 * error['free']
    simulation.attach('panda_hand', 0.0)
    again = tracking_error(simulation, lambda *s: feedforward_pd(dynamics, *s, gains), motion)
    assert again == pytest.approx(error['free'], rel=1e-3)


ROTORS = {'joints': {name: {'armature': 0.2} for name in rd.load_model(UR10).joint_names[3:]}}
FRICTION = (14.0, 14.0, 10.0, 5.0, 5.0, 2.5)  # N m, which no description has


@pytest.mark.parametrize('motors, wrists, sticky, largest', [
    (None, 1.0, False, (0.0, 0.03)),      # the automatic gains, kd = 20 m; m: least inertia
    (None, 6.0, False, (0.0, 0.03)),      # kd = 120 m: as stiff as the delay permits
    (None, 20.0, False, (0.5, np.inf)),   # kd = 400 m: it diverges
    (None, 6.0, True, (1.0, 1.5)),        # the last wrist sticks all the same
    (ROTORS, 1.0, True, (0.05, 0.3)),     # with its rotor it follows the motion
])
def test_limits_of_the_gains_and_what_friction_requires(motors, wrists, sticky, largest):
    """At 500 Hz, with states that are 4 ms late; the largest error of wrist 3."""
    model = rd.load_model(UR10, motors=motors)
    dynamics = rd.Dynamics(model)
    truth = {'joints': {name: {'friction': friction} for name, friction in zip(
        model.joint_names, FRICTION, strict=True)}} if sticky else None
    simulation = Simulation(UR10, truth=truth, motors=motors, sensors=Sensors(
        position_noise=1e-4, velocity_noise=1e-2, delay=0.004))
    gains = automatic_gains(dynamics)
    stiffer = np.array([1.0] * 3 + [wrists] * 3)
    gains = Gains(gains.kp * stiffer**2, gains.kd * stiffer)
    motion = sample_motion(model)
    simulation.reset(motion.at(0.0).q)
    state, wrong = (simulation.position, simulation.velocity), []
    for t in np.arange(0.0, 5.0, 0.002):
        wanted = motion.at(t)
        wrong.append(abs(simulation.position[5] - wanted.q[5]))
        torque = feedforward_pd(dynamics, *state, wanted.q, wanted.qd, wanted.qdd, gains)
        simulation.step(np.clip(torque, -model.effort_limit, model.effort_limit), 2)
        measured = simulation.measure()
        state = (measured.position, measured.velocity) if measured is not None else state
    assert largest[0] < max(wrong) < largest[1]


def test_errors_name_bad_gains():
    for kp, kd, match in (([1.0, 2.0, 3.0], 1.0, 'kp'), (1.0, -1.0, 'kd'), (np.nan, 1.0, 'kp')):
        with pytest.raises(rd.RobodynError, match=match):
            Gains.of(2, kp, kd)
