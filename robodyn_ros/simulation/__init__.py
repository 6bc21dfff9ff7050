"""The embedded simulator: a real physics engine that knows nothing of this package's equations."""

from robodyn_ros.simulation.engine import Sensors, Simulation, SimulationError
from robodyn_ros.simulation.truth import perturbed_urdf

__all__ = ['Sensors', 'Simulation', 'SimulationError', 'perturbed_urdf']
