"""The equations of motion: one algorithm a file, compiled for the robot; no ROS."""

from robodyn_ros.dynamics.closed_loops import ClosedLoopDynamics, FullMotion
from robodyn_ros.dynamics.dynamics import Dynamics, Energy, Terms
from robodyn_ros.dynamics.flexible import ElasticTorque, FlexibleDynamics
from robodyn_ros.dynamics.inertia_bounds import InertiaBounds, inertia_bounds
from robodyn_ros.dynamics.operational_space import OperationalSpace

AnyDynamics = Dynamics | ClosedLoopDynamics

__all__ = ['AnyDynamics', 'ClosedLoopDynamics', 'Dynamics', 'ElasticTorque', 'Energy',
           'FlexibleDynamics', 'FullMotion', 'InertiaBounds', 'OperationalSpace', 'Terms',
           'inertia_bounds']
