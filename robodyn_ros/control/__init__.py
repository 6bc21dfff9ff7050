"""Control laws, reference trajectories and their supervision; independent of ROS."""

from robodyn_ros.control.controller import Controller
from robodyn_ros.control.laws import (
    Gains,
    automatic_gains,
    computed_torque,
    elastic_feedforward_pd,
    feedforward_gravity,
    feedforward_pd,
    gravity_compensation,
    pd,
    pd_gravity,
)
from robodyn_ros.control.motion import SmoothMotion
from robodyn_ros.control.player import ControlLaw, ReferenceRefused
from robodyn_ros.control.reference import Reference, saturate
from robodyn_ros.control.state import Answer
from robodyn_ros.control.supervisor import Command, Supervisor
from robodyn_ros.control.tuning import LAWS, Tuning

__all__ = ['LAWS', 'Answer', 'Command', 'ControlLaw', 'Controller', 'Gains', 'Reference',
           'ReferenceRefused', 'SmoothMotion', 'Supervisor', 'Tuning', 'automatic_gains',
           'computed_torque', 'elastic_feedforward_pd', 'feedforward_gravity', 'feedforward_pd',
           'gravity_compensation', 'pd', 'pd_gravity', 'saturate']
