"""Pure functions between dynamics and the nodes that command a robot; no ROS."""

from robodyn_ros.control.motion import SmoothMotion
from robodyn_ros.control.reference import Reference, saturate

__all__ = ['Reference', 'SmoothMotion', 'saturate']
