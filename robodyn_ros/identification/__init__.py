"""Identification: from measured logs to proven parameters."""

from robodyn_ros.identification.base_parameters import BaseParameters, base_parameters
from robodyn_ros.identification.drive_gains import DriveGains, identify_drive_gains
from robodyn_ros.identification.identify import identify, reduce, validate
from robodyn_ros.identification.log import Log
from robodyn_ros.identification.reading import LogFormat, read_log
from robodyn_ros.identification.result import Result, Settings
from robodyn_ros.identification.signals import FilterSettings
from robodyn_ros.identification.validation import Validation
from robodyn_ros.identification.writing import save_parameters, urdf_of

__all__ = [
    'BaseParameters', 'DriveGains', 'FilterSettings', 'Log', 'LogFormat', 'Result', 'Settings',
    'Validation', 'base_parameters', 'identify', 'identify_drive_gains', 'read_log',
    'reduce', 'save_parameters', 'urdf_of', 'validate',
]
