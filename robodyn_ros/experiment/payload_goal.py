"""`PayloadGoal`: the request to identify a payload."""

from __future__ import annotations

from dataclasses import dataclass

from robodyn_ros.dynamics import RobotDynamics
from robodyn_ros.errors import IdentificationError
from robodyn_ros.excitation import Excitation, Trapezoid, payload_motion, payload_poses
from robodyn_ros.spatial import Array

MOVING = 4  # number of joints that move if none are named: the last ones
AMPLITUDE, SPEED = 0.4, 0.5  # rad or m, and fraction of the velocity limits
DURATION, STILL_DURATION = 15.0, 24.0  # s


@dataclass(frozen=True)
class PayloadGoal:
    """The request to identify a payload.

    The fields are those of the action `IdentifyPayload`, which describes them. 0 and empty values
    select the defaults.
    """

    link: str = ''
    name: str = ''
    model: str = ''
    without: tuple[str, ...] = ()
    logs: tuple[str, ...] = ()
    joints: tuple[str, ...] = ()
    still: bool = False
    amplitude: float = 0.0
    speed: float = 0.0
    duration: float = 0.0
    apply: bool = False

    def check(self, dynamics: RobotDynamics) -> None:
        """Raise a RobodynError if the robot has no such link."""
        if not self.link:
            raise IdentificationError('no link is named; valid: '
                                      + ', '.join(dynamics.model.link_frames))
        dynamics.model.link_frame(self.link)

    def motion(self, dynamics: RobotDynamics, here: Array) -> Excitation | Trapezoid:
        """Return the motion around the present pose, shape (n,), rad or m.

        Raises
        ------
        UnknownNameError, ValueRangeError
            See `payload_motion`.
        """
        plan = payload_poses if self.still else payload_motion
        return plan(dynamics, here, self.joints or dynamics.joint_names[-MOVING:],
                    amplitude=self.amplitude or AMPLITUDE, speed=self.speed or SPEED,
                    duration=self.duration or (STILL_DURATION if self.still else DURATION))
