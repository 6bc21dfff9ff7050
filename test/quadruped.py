"""Solo 12 trots in MuJoCo on spherical feet, with a payload that its description does not have."""

from __future__ import annotations

import mujoco
import numpy as np
from robots import ROBOTS

import robodyn_ros as rd

SOLO = ROBOTS / 'solo_description/robots/solo12.urdf'
FEET = ('FL_FOOT', 'FR_FOOT', 'HL_FOOT', 'HR_FOOT')
PHASES = np.array([0.0, 0.5, 0.5, 0.0])  # of a trot: legs on a diagonal step together
BONE = 0.16  # m, length of thigh and shank
RADIUS = 0.016  # m, of a foot
STEP = 0.001  # s
EVERY = 2  # time steps between two samples
STIFFNESS, DAMPING = 20.0, 0.4  # of the position controllers, N m/rad and N m s/rad
PAYLOAD = {'mass': 0.645, 'com': (0.04, -0.02, 0.05), 'inertia': np.diag([6e-4, 8e-4, 9e-4])}
MOTORS = {'armature': 2e-4, 'damping': 4e-3}  # of the true robot, kg m^2 and N m s/rad


def described():
    return rd.load_model(SOLO, base='floating')


def true_robot():
    """The robot that is simulated: with a payload, rotors and viscous friction."""
    robot = described().with_payload('base_link', **PAYLOAD)
    chi = robot.standard_parameters.copy()
    for k, name in enumerate(robot.parameter_names):
        if name.startswith('Ia:'):
            chi[k] = MOTORS['armature']
        elif name.startswith('Fvl:'):
            chi[k] = MOTORS['damping']
    return robot.with_standard_parameters(chi)


def mass(robot):
    return sum(value for name, value in zip(robot.parameter_names, robot.standard_parameters,
                                            strict=True) if name.startswith('m:'))


def simulated(folder):
    """The engine's model: the MJCF that `write_mjcf` writes, spheres as feet, and the ground."""
    rd.write_mjcf(true_robot(), folder / 'solo.xml')
    spec = mujoco.MjSpec.from_file(str(folder / 'solo.xml'))
    spec.option.timestep, spec.option.tolerance, spec.option.iterations = STEP, 1e-14, 100
    spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    spec.worldbody.add_geom(name='ground', type=mujoco.mjtGeom.mjGEOM_PLANE, size=[9.0, 9.0, 1.0])
    for foot in FEET:
        spec.body(foot).add_geom(name=foot, type=mujoco.mjtGeom.mjGEOM_SPHERE,
                                 size=[RADIUS, 0.0, 0.0], friction=[0.8, 0.0, 0.0],
                                 contype=2, conaffinity=1)
    return spec.compile()


def leg(forward, height, sideways):
    """Joint angles that put the foot of a leg below its hip, and beside and before it."""
    length = np.hypot(forward, height)
    bend = np.arccos(np.clip(length / (2 * BONE), -1, 1))
    return np.array([sideways, bend - np.arctan2(forward, height), -2 * bend])


def trot(t, *, rate, stride, lift, sway, bob):
    """Joint angles of all legs: a trot on the spot whose legs also sway, strut and bob."""
    angles = []
    ramp = min(t / 0.5, 1.0)
    for k, phase in enumerate(PHASES):
        cycle = (rate * t + phase) % 1.0
        swing = np.sin(2 * np.pi * cycle) if cycle < 0.5 else 0.0
        forward = ramp * stride * -np.cos(2 * np.pi * cycle)
        height = 0.235 - ramp * (lift * swing + bob * np.sin(2 * np.pi * 0.7 * t + 0.4 * k))
        angles.append(leg(forward, height, ramp * sway * np.sin(2 * np.pi * 0.9 * t + 0.3 * k)))
    return np.concatenate(angles)


def walk(engine, duration, **gait):
    """Simulate a trot; return samples of motion, joint torques and wrenches at the feet.

    All samples are those of one instant: the engine's forward dynamics at the positions and
    velocities of the sample.
    """
    data = mujoco.MjData(engine)
    data.qpos[:] = [0, 0, 0.235 + RADIUS, 1, 0, 0, 0, *trot(0.0, **gait)]
    feet = {engine.geom(foot).id: k for k, foot in enumerate(FEET)}
    samples = {name: [] for name in ('t', 'q', 'qd', 'qdd', 'torques', *FEET)}
    before = trot(-STEP, **gait)
    for step in range(round(duration / STEP)):
        wanted = trot(step * STEP, **gait)
        speed, before = (wanted - before) / STEP, wanted
        data.ctrl[:] = STIFFNESS * (wanted - data.qpos[7:]) + DAMPING * (speed - data.qvel[6:])
        torque, qpos, qvel = data.ctrl.copy(), data.qpos.copy(), data.qvel.copy()
        t = data.time
        mujoco.mj_step(engine, data)
        if step % EVERY:
            continue
        turn = np.zeros(9)
        mujoco.mju_quat2Mat(turn, qpos[3:7])
        turn, angular = turn.reshape(3, 3), qvel[3:6]
        velocity = turn.T @ qvel[:3]
        samples['t'].append(t)
        samples['q'].append([*qpos[:3], *qpos[4:7], qpos[3], *qpos[7:]])
        samples['qd'].append([*velocity, *qvel[3:]])
        samples['qdd'].append([*(turn.T @ data.qacc[:3] - np.cross(angular, velocity)),
                               *data.qacc[3:]])
        samples['torques'].append(torque)
        wrenches = np.zeros((4, 6))
        for number in range(data.ncon):
            contact, force = data.contact[number], np.zeros(6)
            mujoco.mj_contactForce(engine, data, number, force)
            push = contact.frame.reshape(3, 3).T @ force[:3]  # on the second shape, a foot
            k = feet[int(contact.geom[1])]
            arm = contact.pos - data.body(FEET[k]).xpos
            wrenches[k] += [*push, *np.cross(arm, push)]
        for k, foot in enumerate(FEET):
            samples[foot].append(wrenches[k])
    return {name: np.array(values) for name, values in samples.items()}
