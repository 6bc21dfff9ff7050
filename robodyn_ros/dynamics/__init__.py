"""The equations of motion, one algorithm per file, compiled for each robot."""

from robodyn_ros.dynamics.base_motion import BaseMotion
from robodyn_ros.dynamics.closed_loops import ClosedLoopDynamics
from robodyn_ros.dynamics.dynamics import Dynamics
from robodyn_ros.dynamics.flexible import ElasticTorque, FlexibleDynamics
from robodyn_ros.dynamics.floating_loops import FloatingLoopDynamics
from robodyn_ros.dynamics.inertia_bounds import InertiaBounds, inertia_bounds
from robodyn_ros.dynamics.lagrange_euler import LagrangeEuler, VelocityTerms
from robodyn_ros.dynamics.operational_space import OperationalSpace
from robodyn_ros.dynamics.protocol import RobotDynamics, dynamics_of
from robodyn_ros.dynamics.quantities import Energy, FullMotion, Terms
from robodyn_ros.dynamics.term_bounds import TermBounds, term_bounds

__all__ = ['BaseMotion', 'ClosedLoopDynamics', 'Dynamics', 'ElasticTorque', 'Energy',
           'FlexibleDynamics', 'FloatingLoopDynamics', 'FullMotion', 'InertiaBounds',
           'LagrangeEuler', 'OperationalSpace', 'RobotDynamics', 'TermBounds', 'Terms',
           'VelocityTerms', 'dynamics_of', 'inertia_bounds', 'term_bounds']
