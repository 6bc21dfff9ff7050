"""Imports Gazebo's Python bindings in the version that is installed."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from robodyn_ros.simulation.world import SimulationError

# numbers of gz.transport and gz.msgs: Harmonic, Ionic, and Jetty and later
VERSIONS = (('13', '10'), ('14', '11'), ('', ''))
MESSAGES = {
    'Boolean': 'boolean', 'Clock': 'clock', 'Double': 'double', 'Empty': 'empty',
    'Entity': 'entity', 'EntityFactory': 'entity_factory', 'Model': 'model', 'Physics': 'physics',
    'Scene': 'scene', 'WorldControl': 'world_control', 'WorldReset': 'world_reset',
}


class GazeboError(SimulationError):
    """Gazebo is not installed, does not answer, or reports an error."""


@dataclass(frozen=True)
class Bindings:
    """The bindings of one version of Gazebo.

    Attributes
    ----------
    version : str
        Names of the two modules.
    Node : type
        A node of Gazebo Transport.
    messages : dict of str to type
        The message types of `MESSAGES`.
    """

    version: str
    Node: Any
    messages: dict[str, Any]


def load_bindings() -> Bindings:
    """Import Gazebo's Python bindings, the oldest known version first.

    Raises
    ------
    GazeboError
        No version is installed.
    """
    reasons = []
    for transport, msgs in VERSIONS:
        try:
            node = import_module(f'gz.transport{transport}').Node
            messages = {name: getattr(import_module(f'gz.msgs{msgs}.{module}_pb2'), name)
                        for name, module in MESSAGES.items()}
        except ImportError as error:
            reasons.append(f'gz.transport{transport}: {error}')
            continue
        return Bindings(f'gz.transport{transport}, gz.msgs{msgs}', node, messages)
    raise GazeboError('the Python bindings of Gazebo are not installed: for Gazebo Harmonic, '
                      'install the packages python3-gz-transport13 and python3-gz-msgs10 '
                      f'({"; ".join(reasons)})')
