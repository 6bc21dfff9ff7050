"""The dynamics of any robot that has a URDF.

``load_model`` reads the robot, ``Dynamics`` computes its equations of motion. Nothing imported
here needs ROS; the nodes are in ``robodyn_ros.nodes``.
"""

import sys
from typing import TYPE_CHECKING

from robodyn_ros._version import __version__
from robodyn_ros.errors import (
    DescriptionError,
    IdentificationError,
    LogError,
    RobodynError,
    ShapeError,
    UnknownNameError,
    ValueRangeError,
)
from robodyn_ros.packages import package

if TYPE_CHECKING:  # imported when first used
    from robodyn_ros.dynamics import (
        BaseMotion,
        ClosedLoopDynamics,
        Dynamics,
        ElasticTorque,
        Energy,
        FlexibleDynamics,
        FloatingLoopDynamics,
        InertiaBounds,
        LagrangeEuler,
        OperationalSpace,
        RobotDynamics,
        TermBounds,
        Terms,
        dynamics_of,
        inertia_bounds,
        term_bounds,
    )
    from robodyn_ros.dynamics.residual_torque import ResidualTorque
    from robodyn_ros.excitation import (
        Excitation,
        Limits,
        Plan,
        optimise_excitation,
        optimize_excitation,
        validation_plan,
    )
    from robodyn_ros.export import export_c
    from robodyn_ros.identification import (
        BaseParameters,
        CrossValidation,
        DriveGains,
        FilterSettings,
        FloatingBaseLog,
        FloatingBaseMotion,
        FloatingBaseResult,
        IdentifiedPayload,
        Log,
        LogFormat,
        ModelUncertainty,
        Result,
        Rollout,
        Settings,
        Thresholds,
        Validation,
        base_parameters,
        cross_validate,
        floating_base_motion,
        identify,
        identify_drive_gains,
        identify_floating_base,
        identify_payload,
        read_floating_base_log,
        read_log,
        reduce,
        roll_out,
        save_motors,
        save_parameters,
        validate,
        write_urdf,
    )
    from robodyn_ros.model import Model, build_model, load_model, model_from_dh
    from robodyn_ros.simulation.integrate import SimulatedMotion, simulate
    from robodyn_ros.simulation.mjcf import write_mjcf
    from robodyn_ros.spatial import Inertial

# the module of each name
_LAZY = {
    **dict.fromkeys((
        'BaseMotion', 'ClosedLoopDynamics', 'Dynamics', 'ElasticTorque', 'Energy',
        'FlexibleDynamics', 'FloatingLoopDynamics', 'InertiaBounds', 'LagrangeEuler',
        'OperationalSpace', 'RobotDynamics', 'TermBounds', 'Terms', 'dynamics_of',
        'inertia_bounds', 'term_bounds'),
        'dynamics'),
    **dict.fromkeys((
        'BaseParameters', 'CrossValidation', 'DriveGains', 'FilterSettings', 'FloatingBaseLog',
        'FloatingBaseMotion', 'FloatingBaseResult', 'IdentifiedPayload', 'Log', 'LogFormat',
        'ModelUncertainty', 'Result', 'Rollout', 'Settings', 'Thresholds', 'Validation',
        'base_parameters', 'cross_validate', 'floating_base_motion', 'identify',
        'identify_drive_gains', 'identify_floating_base', 'identify_payload',
        'read_floating_base_log', 'read_log', 'reduce', 'roll_out', 'save_motors',
        'save_parameters', 'validate', 'write_urdf'),
        'identification'),
    **dict.fromkeys((
        'Excitation', 'Limits', 'Plan', 'optimise_excitation', 'optimize_excitation',
        'validation_plan'), 'excitation'),
    **dict.fromkeys(('Model', 'build_model', 'load_model', 'model_from_dh'), 'model'),
    'Inertial': 'spatial',
    'ResidualTorque': 'dynamics.residual_torque',
    'export_c': 'export',
    **dict.fromkeys(('SimulatedMotion', 'simulate'), 'simulation.integrate'),
    'write_mjcf': 'simulation.mjcf',
}

__all__ = [
    'BaseMotion', 'BaseParameters', 'ClosedLoopDynamics', 'CrossValidation',
    'DescriptionError', 'DriveGains', 'Dynamics', 'ElasticTorque', 'Energy', 'Excitation',
    'FilterSettings', 'FlexibleDynamics', 'FloatingBaseLog', 'FloatingBaseMotion',
    'FloatingBaseResult', 'FloatingLoopDynamics', 'IdentificationError', 'IdentifiedPayload',
    'InertiaBounds', 'Inertial', 'LagrangeEuler', 'Limits', 'Log', 'LogError', 'LogFormat',
    'Model', 'ModelUncertainty', 'OperationalSpace', 'Plan', 'ResidualTorque', 'Result',
    'RobodynError', 'RobotDynamics', 'Rollout', 'Settings', 'ShapeError', 'SimulatedMotion',
    'TermBounds', 'Terms', 'Thresholds', 'UnknownNameError', 'Validation', 'ValueRangeError',
    '__version__', 'base_parameters', 'build_model', 'cross_validate', 'dynamics_of',
    'export_c', 'floating_base_motion', 'identify', 'identify_drive_gains',
    'identify_floating_base', 'identify_payload', 'inertia_bounds', 'load_model',
    'model_from_dh', 'optimise_excitation', 'optimize_excitation', 'read_floating_base_log',
    'read_log', 'reduce', 'roll_out', 'save_motors', 'save_parameters', 'simulate',
    'term_bounds', 'validate', 'validation_plan', 'write_mjcf', 'write_urdf',
]


def __getattr__(name: str) -> object:
    if name in _LAZY:
        return getattr(package(f'{__name__}.{_LAZY[name]}'), name)
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}', name=name,
                         obj=sys.modules[__name__])


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith('__'))})
