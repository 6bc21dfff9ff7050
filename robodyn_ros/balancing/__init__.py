"""Balancing: counter-masses and springs that relieve the motors or the mounting of a robot."""

from robodyn_ros.balancing.balance import Balance, balance_base, balance_gravity
from robodyn_ros.balancing.elements import CounterMass, JointSpring, Spring

__all__ = ['Balance', 'CounterMass', 'JointSpring', 'Spring', 'balance_base', 'balance_gravity']
