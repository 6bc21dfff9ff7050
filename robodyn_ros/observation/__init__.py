"""What acts on a robot from outside: external torques, wrenches and contacts."""

from robodyn_ros.observation.contacts import Contact, ContactDetector
from robodyn_ros.observation.direct import direct_torque
from robodyn_ros.observation.energy import EnergyBalance, EnergyMonitor
from robodyn_ros.observation.kalman import KalmanObserver
from robodyn_ros.observation.momentum import MomentumObserver
from robodyn_ros.observation.thresholds import ContactThresholds, constant_thresholds
from robodyn_ros.observation.wrench import Wrench, external_wrench

__all__ = ['Contact', 'ContactDetector', 'ContactThresholds', 'EnergyBalance', 'EnergyMonitor',
           'KalmanObserver', 'MomentumObserver', 'Wrench', 'constant_thresholds', 'direct_torque',
           'external_wrench']
