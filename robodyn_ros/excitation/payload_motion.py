"""Small motions of some joints around a pose, from which a payload is identified."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robodyn_ros.dynamics import RobotDynamics
from robodyn_ros.errors import UnknownNameError, ValueRangeError
from robodyn_ros.excitation.fourier import Excitation
from robodyn_ros.excitation.trapezoid import Trapezoid
from robodyn_ros.spatial import Array

SLOWEST_HARMONIC = 2  # lowest harmonic of the duration; the first of the joints has it
CHECK_RATE = 50.0  # Hz
SHORTEST, LONGEST = 2.0, 120.0  # s
OVERSHOOT = 0.1  # fraction of the amplitude by which joints pass a pose before they return to it
LEAST_REST = 0.5  # s in each pose
ACCELERATION = 1.5  # rad/s^2 or m/s^2, between poses
# offset of the joints in the four poses, as a fraction of the amplitude; a row for each joint, and
# from the first row again if there are more joints
PATTERN = np.array([[1.0, 1.0, -1.0, -1.0], [1.0, -1.0, -1.0, 1.0], [1.0, -1.0, 1.0, -1.0]])


def payload_motion(dynamics: RobotDynamics, here: Array, joints: Sequence[str], *,
                   amplitude: float, speed: float, duration: float) -> Excitation:
    """Return a small motion that begins and ends at rest in a pose.

    Each joint moves with two harmonics of the duration that no other joint has, so that the
    effects of the joints can be separated:
    ``q(t) - here = a (sin(k w t) / k - sin(l w t) / l)``.

    Parameters
    ----------
    dynamics : RobotDynamics
        The robot.
    here : ndarray, shape (n,)
        The pose, rad or m.
    joints : sequence of str
        The joints that move.
    amplitude : float
        Largest distance of a joint from the pose, rad or m.
    speed : float
        Largest speed, as a fraction of each joint's velocity limit.
    duration : float
        Duration, s.

    Raises
    ------
    UnknownNameError
        A joint does not exist.
    ValueRangeError
        A joint would leave its range, or a number is out of its range.
    """
    moving = _moving(dynamics, joints, amplitude, speed, duration)
    count, limits = len(moving), dynamics.joints
    w = 2 * np.pi / duration
    t = np.linspace(0.0, duration, 40 * (SLOWEST_HARMONIC + 2 * count) + 1)
    sine = np.zeros((SLOWEST_HARMONIC + 2 * count - 1, len(here)))
    for place, joint in enumerate(moving):
        k, other = SLOWEST_HARMONIC + place, SLOWEST_HARMONIC + place + count
        shape = np.sin(k * w * t) / k - np.sin(other * w * t) / other
        rate = w * (np.cos(k * w * t) - np.cos(other * w * t))
        size = min(amplitude / np.abs(shape).max(),
                   speed * limits.velocity_limit[joint] / np.abs(rate).max())
        sine[k - 1, joint], sine[other - 1, joint] = size / k, -size / other
    motion = Excitation(tuple(dynamics.joint_names), duration, 1, np.array(here, np.float64),
                        sine, np.zeros_like(sine))
    _check_range(dynamics, motion.samples(CHECK_RATE)[1].q)
    return motion


def payload_poses(dynamics: RobotDynamics, here: Array, joints: Sequence[str], *,
                  amplitude: float, speed: float, duration: float) -> Trapezoid:
    """Return a motion through four poses, which rests in each of them twice.

    Each pose is reached once from either side, so that static friction, which opposes the last
    motion, cancels. Parameters and errors are those of `payload_motion`; a duration that is too
    short for the poses is a ValueRangeError, too.
    """
    moving = _moving(dynamics, joints, amplitude, speed, duration)
    fastest = speed * dynamics.joints.velocity_limit[moving]
    fastest = np.where(np.isfinite(fastest), fastest, 1.0)
    points, rests = [np.array(here, np.float64)], [False]
    for pose in range(PATTERN.shape[1]):
        middle, beyond = (np.array(here, np.float64) for _ in range(2))
        for place, joint in enumerate(moving):
            side = PATTERN[place % len(PATTERN), pose] * amplitude
            middle[joint] += (1 - OVERSHOOT) * side
            beyond[joint] += side
        points += [beyond, middle, middle, 2 * middle - beyond, middle, middle]
        rests += [False, False, True, False, False, True]
    points.append(points[0])
    rests.append(False)
    travel = np.abs(np.diff(points, axis=0))[:, moving]
    ramps = np.maximum(travel / fastest, np.sqrt(travel / ACCELERATION)).max(axis=1)
    resting, moves = np.array(rests[1:]), 2 * float(ramps.sum())
    if duration < moves + LEAST_REST * resting.sum():
        raise ValueRangeError('duration', duration, f'{moves + LEAST_REST * resting.sum():.1f} s '
                              'or more for these poses at this speed')
    rest = (duration - moves) / resting.sum()
    ramps, cruises = np.where(resting, rest / 4, ramps), np.where(resting, rest / 2, 0.0)
    motion = Trapezoid(tuple(dynamics.joint_names), np.array(points), ramps, cruises)
    _check_range(dynamics, motion.points)
    return motion


def _moving(dynamics: RobotDynamics, joints: Sequence[str], amplitude: float, speed: float,
            duration: float) -> list[int]:
    """Check all arguments and return the indices of the joints that move."""
    if not joints:
        raise ValueRangeError('joints', 'none', 'at least one joint that may move')
    for joint in joints:
        if joint not in dynamics.joint_names:
            raise UnknownNameError('joint', joint, dynamics.joint_names)
    for name, value, most in (('amplitude', amplitude, np.inf), ('speed', speed, 1.0)):
        if not 0 < value <= most or not np.isfinite(value):
            raise ValueRangeError(name, value, 'above 0' + (
                f', at most {most:g}, the velocity limit' if most == 1 else ''))
    if not SHORTEST <= duration <= LONGEST:
        raise ValueRangeError('duration', duration, f'{SHORTEST:g} to {LONGEST:g} s')
    return [dynamics.joint_names.index(joint) for joint in dict.fromkeys(joints)]


def _check_range(dynamics: RobotDynamics, q: Array) -> None:
    """Raise an error if positions, shape (N, n), leave the range of a joint."""
    limits = dynamics.joints
    for joint, name in enumerate(dynamics.joint_names):
        low, high = float(q[:, joint].min()), float(q[:, joint].max())
        if low < limits.lower[joint] or high > limits.upper[joint]:
            raise ValueRangeError(
                f'motion of {name}', f'{low:.4g} to {high:.4g}',
                f'{limits.lower[joint]:.4g} to {limits.upper[joint]:.4g}; move the robot to '
                'another pose, or choose a smaller amplitude or other joints')
