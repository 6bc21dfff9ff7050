"""Pure functions between dynamics and the nodes that command a robot; no ROS."""

from robodyn_ros.control.laws import (
    Gains,
    automatic_gains,
    computed_torque,
    elastic_feedforward_pd,
    feedforward_gravity,
    feedforward_pd,
    gravity_compensation,
    pd,
)
from robodyn_ros.control.motion import SmoothMotion
from robodyn_ros.control.reference import Reference, saturate
from robodyn_ros.control.supervisor import LAWS, Command, Supervisor, Tuning

__all__ = ['LAWS', 'Command', 'Gains', 'Reference', 'SmoothMotion', 'Supervisor', 'Tuning',
           'automatic_gains', 'computed_torque', 'elastic_feedforward_pd', 'feedforward_gravity',
           'feedforward_pd', 'gravity_compensation', 'pd', 'saturate']
