"""Symbols for the numbers of a description, for `robodyn_ros.export.symbolic`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from robodyn_ros.description.robot import Joint
from robodyn_ros.packages import package
from robodyn_ros.spatial import Array, Inertial

ROUNDED = 1e-5  # numbers this close to an exact one, such as sqrt(3) / 2, are replaced by it
NONE = 1e-12  # smaller numbers count as zero
_AXES = 'xyz'


def sympy() -> Any:
    """Return the module sympy."""
    return package('sympy')


def rotation_about(axis: Any, angle: Any) -> Any:
    """Return the rotation matrix about a unit axis, a 3 x 1 matrix (Rodrigues)."""
    s = sympy()
    x, y, z = axis
    skew = s.Matrix([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    along = axis * axis.T
    return along + s.cos(angle) * (s.eye(3) - along) + s.sin(angle) * skew


class Values:
    """The symbols of a robot and their values; zeros get no symbol.

    Attributes
    ----------
    found : dict of sympy.Symbol to float
        Symbols with their values, SI units.
    """

    def __init__(self) -> None:
        self.found: dict[Any, float] = {}
        self._exact = [sympy().sqrt(k) / 2 for k in range(5)]  # sines of multiples of 30, 45 deg

    def symbol(self, name: str, value: float) -> Any:
        """Return a symbol for a number; zero for zero. Negative numbers keep their sign."""
        if abs(value) < NONE:
            return sympy().Integer(0)
        symbol = sympy().Symbol(name, real=True)
        self.found[symbol] = float(abs(value))
        return symbol if value > 0 else -symbol

    def number(self, value: float) -> Any:
        """Return an exact number near a float, or the float itself."""
        s = sympy()
        near = next((x for x in self._exact if abs(abs(value) - float(x)) < ROUNDED), None)
        if near is not None:
            return near if value > 0 else -near
        rational = s.nsimplify(value, rational=True, tolerance=1e-12)
        return rational if rational.q <= 1000 else s.Float(value)

    def exact(self, array: Array) -> Any:
        """Return a vector (as a column) or matrix whose entries are those of `number`."""
        rows = len(array)
        return sympy().Matrix(rows, array.size // rows,
                              [self.number(float(x)) for x in array.ravel()])

    def vector(self, name: str, values: Array) -> Any:
        """Return a vector: ``name`` if it lies along an axis, else ``namex``, ``namey`` ..."""
        several = np.count_nonzero(np.abs(values) >= NONE) > 1
        return sympy().Matrix([self.symbol(name + axis if several else name, float(value))
                               for axis, value in zip(_AXES, values, strict=True)])

    def origin(self, joint: Joint, parent: int) -> Any:
        """Return the origin of a joint in the frame of its parent link."""
        name = f'a{parent}'
        if any(str(symbol).rstrip(_AXES) == name for symbol in self.found):
            name = f'a{parent}_{re.sub(r"[^A-Za-z0-9_]", "_", joint.name)}'  # a branch
        return self.vector(name, joint.translation)

    def body(self, inertial: Inertial, number: int) -> tuple[Any, Any, Any]:
        """Return mass, centre of mass and inertia tensor about it of a link."""
        s = sympy()
        inertia = s.zeros(3, 3)
        for i in range(3):
            for j in range(i, 3):
                inertia[i, j] = inertia[j, i] = self.symbol(
                    f'I{number}{_AXES[i]}{_AXES[j]}', float(inertial.inertia[i, j]))
        return (self.symbol(f'm{number}', inertial.mass),
                self.vector(f'l{number}', inertial.com), inertia)

    def rotor(self, position: Array, joint: Joint, carrier: str, number: int,
              parent: int) -> Any:
        """Return the position of a rotor on its carrier; at its joint, in the joint's symbols."""
        if carrier == joint.parent and np.allclose(position, joint.translation, atol=NONE):
            several = np.count_nonzero(np.abs(position) >= NONE) > 1
            return sympy().Matrix([
                0 if abs(x) < NONE else np.sign(x) * sympy().Symbol(
                    f'a{parent}' + (axis if several else ''), real=True)
                for axis, x in zip(_AXES, position, strict=True)])
        return self.vector(f'r{number}', position)

    def short(self, equations: Any) -> Mapping[Any, Any]:
        """Return shorter names: ``I1`` if only one inertia of link 1 has an effect."""
        s = sympy()
        shown = equations.M.free_symbols | equations.g.free_symbols
        inertias: dict[str, list[Any]] = {}
        for symbol in shown:
            if symbol.name[0] == 'I' and symbol.name[-1] in _AXES:
                inertias.setdefault(symbol.name[:-2], []).append(symbol)
        return {found[0]: s.Symbol(name, real=True) for name, found in inertias.items()
                if len(found) == 1}
