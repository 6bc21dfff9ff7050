"""Excitation: motions within the limits of a robot that determine its parameters well."""

from robodyn_ros.excitation.constraints import Constraints, Limits
from robodyn_ros.excitation.fourier import Excitation, Motion
from robodyn_ros.excitation.optimise import optimise_excitation, optimize_excitation
from robodyn_ros.excitation.payload_motion import payload_motion, payload_poses
from robodyn_ros.excitation.plan import Plan, Progress, propose, validation_plan
from robodyn_ros.excitation.sample import sample_motion
from robodyn_ros.excitation.trapezoid import Trapezoid, point_to_point

__all__ = ['Constraints', 'Excitation', 'Limits', 'Motion', 'Plan', 'Progress',
           'Trapezoid', 'optimise_excitation', 'optimize_excitation', 'payload_motion',
           'payload_poses', 'point_to_point', 'propose', 'sample_motion', 'validation_plan']
