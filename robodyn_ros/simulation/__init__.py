"""Simulated robots in the embedded engine MuJoCo or in Gazebo, independent of `Dynamics`."""

from robodyn_ros.simulation.engine import Simulation
from robodyn_ros.simulation.sensors import Measurement, Sensors
from robodyn_ros.simulation.truth import perturbed_urdf
from robodyn_ros.simulation.world import SimulatedRobot, SimulationError

__all__ = ['Measurement', 'Sensors', 'SimulatedRobot', 'Simulation', 'SimulationError',
           'perturbed_urdf']
