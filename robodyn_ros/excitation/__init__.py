"""Excitation: the motion that tells most about a robot, within its limits."""

from robodyn_ros.excitation.constraints import Constraints, Limits
from robodyn_ros.excitation.fourier import Excitation, Motion
from robodyn_ros.excitation.optimise import (
    Plan,
    Progress,
    optimise_excitation,
    propose,
    validation_plan,
)
from robodyn_ros.excitation.sample import sample_motion

__all__ = ['Constraints', 'Excitation', 'Limits', 'Motion', 'Plan', 'Progress',
           'optimise_excitation', 'propose', 'validation_plan', 'sample_motion']
