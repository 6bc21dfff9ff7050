"""The dynamics of any robot that has a URDF.

``load_model`` reads the robot, ``Dynamics`` computes its equations of motion. Nothing imported
here needs ROS; the nodes are in ``robodyn_ros.nodes``.
"""

from importlib import import_module

from robodyn_ros.building import build_model, load_model
from robodyn_ros.denavit_hartenberg import model_from_dh
from robodyn_ros.description import Inertial
from robodyn_ros.dynamics import (
    ClosedLoopDynamics,
    Dynamics,
    ElasticTorque,
    Energy,
    FlexibleDynamics,
    InertiaBounds,
    OperationalSpace,
    Terms,
    inertia_bounds,
)
from robodyn_ros.errors import (
    DescriptionError,
    IdentificationError,
    LogError,
    RobodynError,
    ShapeError,
    UnknownNameError,
    ValueRangeError,
)
from robodyn_ros.model import Model

__version__ = '0.1.0'

# imported when first used: signal processing and solvers take longer to import than dynamics
_IDENTIFICATION = (
    'BaseParameters', 'DriveGains', 'FilterSettings', 'Log', 'LogFormat', 'Result', 'Settings',
    'Validation', 'base_parameters', 'identify', 'identify_drive_gains', 'read_log', 'reduce',
    'validate',
)

_EXCITATION = ('Excitation', 'Limits', 'Plan', 'optimise_excitation', 'validation_plan')

__all__ = [
    'ClosedLoopDynamics', 'DescriptionError', 'Dynamics', 'ElasticTorque', 'Energy',
    'FlexibleDynamics',
    'IdentificationError', 'Inertial', 'InertiaBounds',
    'LogError', 'Model', 'OperationalSpace', 'RobodynError', 'ShapeError', 'Terms',
    'UnknownNameError', 'ValueRangeError', 'build_model', 'inertia_bounds', 'load_model',
    'model_from_dh', *_EXCITATION, *_IDENTIFICATION,
]


def __getattr__(name: str) -> object:
    for names, module in ((_IDENTIFICATION, 'identification'), (_EXCITATION, 'excitation')):
        if name in names:
            return getattr(import_module(f'{__name__}.{module}'), name)
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
