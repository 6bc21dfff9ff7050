"""Converts motions to trajectory messages."""

from __future__ import annotations

from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from robodyn_ros.excitation import Excitation
from robodyn_ros.nodes.stamps import set_nanoseconds
from robodyn_ros.spatial import Array


def joint_trajectory(excitation: Excitation, rate: float) -> JointTrajectory:
    """Return an excitation as a message that starts when it arrives.

    Parameters
    ----------
    excitation : Excitation
        The motion.
    rate : float
        Points per second, Hz.
    """
    t, motion = excitation.samples(rate)
    return trajectory_of(excitation.joint_names, t, *motion[:3])


def trajectory_of(joint_names: tuple[str, ...], times: Array, q: Array, qd: Array,
                  qdd: Array) -> JointTrajectory:
    """Return points (s; shape (N, n) each) as a message that starts when it arrives."""
    message = JointTrajectory(joint_names=list(joint_names))
    for t, *state in zip(times, q, qd, qdd, strict=True):
        point = JointTrajectoryPoint(positions=state[0].tolist(), velocities=state[1].tolist(),
                                     accelerations=state[2].tolist())
        set_nanoseconds(point.time_from_start, round(float(t) * 1e9))
        message.points.append(point)
    return message
