"""Pure functions between dynamics and the nodes that command a robot; no ROS."""

from robodyn_ros.control.laws import (
    Gains,
    computed_torque,
    feedforward_gravity,
    feedforward_pd,
    gravity_compensation,
    pd,
)
from robodyn_ros.control.motion import SmoothMotion
from robodyn_ros.control.reference import Reference, saturate

__all__ = ['Gains', 'Reference', 'SmoothMotion', 'computed_torque', 'feedforward_gravity',
           'feedforward_pd', 'gravity_compensation', 'pd', 'saturate']
