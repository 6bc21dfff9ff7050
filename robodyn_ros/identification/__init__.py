"""Identification: from measured logs to validated parameters."""

from robodyn_ros.identification.base_parameters import BaseParameters, base_parameters
from robodyn_ros.identification.cross_validation import CrossValidation, cross_validate
from robodyn_ros.identification.drive_gains import DriveGains, identify_drive_gains
from robodyn_ros.identification.floating_base import (
    FloatingBaseResult,
    identify_floating_base,
)
from robodyn_ros.identification.floating_log import (
    FloatingBaseLog,
    FloatingBaseMotion,
    floating_base_motion,
)
from robodyn_ros.identification.identify import identify, reduce
from robodyn_ros.identification.log import Log
from robodyn_ros.identification.log_format import LogFormat
from robodyn_ros.identification.model_uncertainty import ModelUncertainty
from robodyn_ros.identification.payload import identify_payload
from robodyn_ros.identification.payload_result import IdentifiedPayload
from robodyn_ros.identification.reading import read_floating_base_log, read_log
from robodyn_ros.identification.result import Result
from robodyn_ros.identification.rollout import Rollout
from robodyn_ros.identification.settings import FilterSettings, Settings
from robodyn_ros.identification.validate import roll_out, validate
from robodyn_ros.identification.validation import Validation
from robodyn_ros.identification.verdict import Criterion, Thresholds
from robodyn_ros.identification.writing import (
    parameters_of,
    save_motors,
    save_parameters,
    urdf_of,
    write_urdf,
)

__all__ = [
    'BaseParameters', 'Criterion', 'CrossValidation', 'DriveGains', 'FilterSettings',
    'FloatingBaseLog', 'FloatingBaseMotion', 'FloatingBaseResult', 'IdentifiedPayload', 'Log',
    'LogFormat', 'ModelUncertainty', 'Result', 'Rollout', 'Settings', 'Thresholds', 'Validation',
    'base_parameters', 'cross_validate', 'floating_base_motion', 'identify',
    'identify_drive_gains', 'identify_floating_base', 'identify_payload', 'parameters_of',
    'read_floating_base_log', 'read_log', 'reduce', 'roll_out', 'save_motors', 'save_parameters',
    'urdf_of', 'validate', 'write_urdf',
]
