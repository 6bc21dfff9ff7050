"""Excitations as trajectory messages."""

from __future__ import annotations

from builtin_interfaces.msg import Duration
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from robodyn_ros.excitation import Excitation


def joint_trajectory(excitation: Excitation, rate: float) -> JointTrajectory:
    """Return an excitation as a message that starts when it arrives.

    Parameters
    ----------
    excitation : Excitation
        The motion.
    rate : float
        Points a second, Hz.
    """
    t, motion = excitation.samples(rate)
    message = JointTrajectory(joint_names=list(excitation.joint_names))
    for time, q, qd, qdd in zip(t, *motion[:3], strict=True):
        whole = int(time)
        message.points.append(JointTrajectoryPoint(
            positions=q.tolist(), velocities=qd.tolist(), accelerations=qdd.tolist(),
            time_from_start=Duration(sec=whole, nanosec=round((time - whole) * 1e9))))
    return message
