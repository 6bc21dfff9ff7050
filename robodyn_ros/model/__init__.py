"""`Model`, a robot as flat arrays ready for dynamics, and the functions that build it."""

from robodyn_ros.model.build import build_model, load_model, model_from_dh
from robodyn_ros.model.joints import Joints
from robodyn_ros.model.link_frame import LinkFrame
from robodyn_ros.model.model import (
    A_MODEL,
    LINK_FRICTION,
    MOTOR_FRICTION,
    PARAMETER_NAMES,
    RIGID,
    ROTOR,
    Model,
)
from robodyn_ros.model.payload import payload_inertial

__all__ = ['A_MODEL', 'LINK_FRICTION', 'MOTOR_FRICTION', 'PARAMETER_NAMES', 'RIGID', 'ROTOR',
           'Joints', 'LinkFrame', 'Model', 'build_model', 'load_model', 'model_from_dh',
           'payload_inertial']
