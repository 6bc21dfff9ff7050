"""The parameters that the nodes declare, from which launch files make their arguments."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from robodyn_ros.description.yaml import parse_yaml
from robodyn_ros.errors import RobodynError, UnknownNameError, ValueRangeError
from robodyn_ros.nodes.parameters import declare_common_parameters

NODES = {
    'dynamics': 'DynamicsPublisher',
    'feedforward': 'Feedforward',
    'identification': 'Identification',
    'observer': 'Observer',
    'simulator': 'Simulator',
    'gazebo_bridge': 'GazeboBridge',
}


@dataclass(frozen=True)
class Declaration:
    """A parameter of a node.

    Attributes
    ----------
    name : str
        Name of the parameter.
    default : bool, int, float, str or list
        Default value, which also determines the type.
    description : str
        Description, with the unit.
    range : tuple of float, optional
        Smallest and largest value.
    read_only : bool
        Whether the parameter can be set only at the start.
    """

    name: str
    default: Any
    description: str
    range: tuple[float, float] | None
    read_only: bool = False

    def value_of(self, text: str) -> Any:
        """Return the value of a text.

        Raises
        ------
        ValueRangeError
            The text is not a value of the parameter's type, or it is outside its range.
        """
        try:
            value = parse_yaml(text)
        except RobodynError:
            value = text
        if isinstance(self.default, str):
            return text
        if isinstance(self.default, list):
            kind = type(self.default[0])
            entries = value if isinstance(value, list) else [value]
            return [self._entry(entry, kind, text) for entry in entries]
        return self._entry(value, type(self.default), text)

    def _entry(self, value: Any, kind: type, text: str) -> Any:
        words = {bool: 'true or false', int: 'an integer', float: 'a number', str: 'a text'}
        if kind is float and isinstance(value, str):
            with suppress(ValueError):  # in YAML, 1e-5 without a decimal point is a text
                value = float(value)
        fits = isinstance(value, (int, float) if kind is float else kind)
        if not fits or (isinstance(value, bool) and kind is not bool):
            some = f', or a list of such: [{words[kind]}, ...]' if isinstance(
                self.default, list) else ''
            raise ValueRangeError(self.name, repr(text), words[kind] + some)
        if self.range is not None and not self.range[0] <= value <= self.range[1]:
            raise ValueRangeError(self.name, value, '{:g} to {:g}'.format(*self.range))
        return kind(value)


class _Recorder:
    """Records declarations in place of a node."""

    def __init__(self) -> None:
        self.declarations: dict[str, Declaration] = {}

    def has_parameter(self, name: str) -> bool:
        return name in self.declarations

    def declare_parameter(self, name: str, default: Any, descriptor: Any) -> None:
        limits = [*descriptor.floating_point_range, *descriptor.integer_range]
        self.declarations[name] = Declaration(
            name, default, descriptor.description,
            (limits[0].from_value, limits[0].to_value) if limits else None,
            bool(descriptor.read_only))

    def get_parameter(self, name: str) -> Any:
        return SimpleNamespace(value=self.declarations[name].default)


def parameters_of(node: str) -> dict[str, Declaration]:
    """Return the parameters of a node of this package by their names, without starting it.

    Raises
    ------
    UnknownNameError
        There is no such node.
    """
    if node not in NODES:
        raise UnknownNameError('node', node, NODES)
    kind = getattr(import_module(f'robodyn_ros.nodes.{node}'), NODES[node])
    recorder: Any = _Recorder()
    declare_common_parameters(recorder)
    kind.declare_parameters_of_node(recorder)
    return dict(recorder.declarations)
