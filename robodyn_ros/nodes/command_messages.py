"""`CommandMessages`: the messages with which a controller commands torques."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from robodyn_ros.nodes.dynamics import view
from robodyn_ros.nodes.effort_check import EffortCheck
from robodyn_ros.nodes.model_keeper import Running


@dataclass(frozen=True, eq=False)
class CommandMessages:
    """The messages for the joints of one model, created once and filled for every command."""

    running: Running
    order: list[int]
    torque: JointState
    torque_view: Any
    commands: Float64MultiArray
    commands_view: Any
    efforts: EffortCheck

    @classmethod
    def of(cls, running: Running, order: list[int]) -> CommandMessages:
        """Return messages for the joints of a model, and for those commanded in their order."""
        names = list(running.joints.joint_names)
        torque = JointState(name=names, effort=[0.0] * len(names))
        commands = Float64MultiArray(data=[0.0] * len(order))
        return cls(running, order, torque, view(torque.effort), commands, view(commands.data),
                   EffortCheck(running))
