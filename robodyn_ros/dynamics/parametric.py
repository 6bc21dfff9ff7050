"""Equations of motion with the parameters as inputs instead of numbers."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robodyn_ros.description.robot import CURVE
from robodyn_ros.dynamics.catalogue import Catalogue
from robodyn_ros.dynamics.fingerprint import digest_of
from robodyn_ros.dynamics.mass_solver import require_regular
from robodyn_ros.kernels import KernelSpec
from robodyn_ros.model import PARAMETER_NAMES, LinkFrame, Model
from robodyn_ros.spatial import Array, inertia_components

PARAMETERS = len(PARAMETER_NAMES)
SHARED = ('inverse_dynamics', 'gravity', 'coriolis', 'friction', 'mass_matrix', 'terms',
          'forward_dynamics', 'velocity_change', 'momentum')  # the terms of `ParametricCatalogue`


@dataclass(frozen=True, eq=False)
class _SymbolicModel:
    """The part of a `Model` on which the equations depend, with symbols for its parameters."""

    n: int
    nq: int
    floating: bool
    first_joint: int
    offset: Any
    spring: Any
    ripple: Any
    joint_names: tuple[str, ...]
    velocity_names: tuple[str, ...]
    row: Any
    motor_row: Any
    spin_axis: Any
    link_friction: Any
    motor_friction: Any
    friction_curve: Any
    has_curve: Any
    armature: Any
    friction_follows_load: bool
    link_frame: Callable[[str], LinkFrame]


def with_symbols(catalogue: Catalogue, parameters: Any, curves: Any = None) -> Catalogue:
    """Return a catalogue of the same robot with other parameters.

    Parameters
    ----------
    catalogue : Catalogue
        Catalogue of the robot.
    parameters : ndarray of Scalar or float, shape (17 b,), or (17 b + 10,) if the base floats
        Standard parameters, see `Model.standard_parameters`.
    curves : ndarray of Scalar or float, shape (b, 7), optional
        Friction curve of every joint, see `CURVE`; default: no joint has one.

    Notes
    -----
    The parameters are not regrouped, since this would cost as much in each call as it saves. The
    catalogue computes generalised forces, but not the wrenches at the joints and at the base.
    """
    model, tree = catalogue.model, catalogue.tree
    values = np.array(parameters, dtype=object)
    chi = values[:PARAMETERS * tree.bodies].reshape(-1, PARAMETERS)
    root = values[PARAMETERS * tree.bodies:].copy() if model.floating else \
        tree.base_inertial_parameters
    inertial = np.zeros((len(tree.parent), 10), dtype=object)
    inertial[:tree.bodies] = chi[:, :10]
    spinning = [i for i in range(tree.bodies) if not np.isnan(model.spin_axis[i, 0])]
    for rotor, i in enumerate(spinning, tree.bodies):
        axis = tree.axis[rotor]
        inertia = chi[i, 13] * inertia_components(
            np.outer(axis, axis) / model.gear_ratio[i] ** 2)
        inertial[rotor, :6] = inertia
        if tree.parent[rotor] >= 0:
            inertial[tree.parent[rotor], :6] = inertial[tree.parent[rotor], :6] - inertia
        elif model.floating:
            root[:6] = root[:6] - inertia
    result = copy.copy(catalogue)
    result.tree = result.light = replace(tree, inertial_parameters=inertial,
                                         base_inertial_parameters=root)
    result.model = _SymbolicModel(  # type: ignore[assignment]
        model.n, model.nq, model.floating, model.first_joint, model.offset, model.spring,
        model.ripple, model.joint_names, model.velocity_names, model.row, model.motor_row,
        model.spin_axis, chi[:, 10:13], chi[:, 14:], curves,
        np.full(tree.bodies, curves is not None), chi[:, 13],
        curves is not None and model.friction_follows_load, model.link_frame)
    return result


class ParametricCatalogue(Catalogue):
    """The functions of all models that differ from one another in their parameters alone.

    Their kernels are compiled once for all these models, for example for those identified from
    many logs of one robot. They compute more in each call than the kernels of one model, into
    which its parameters are compiled as constants.

    Parameters
    ----------
    model : Model
        The robot, a tree with a fixed base.
    friction_width : float, optional
        Width of the smooth sign of dry friction, rad/s or m/s; default: those of the model.
    """

    def __init__(self, model: Model, friction_width: float | None = None):
        super().__init__(model, friction_width)
        model.require_fixed_base('code that is shared by several models')
        self._curved = bool(model.has_curve.any())
        self._structure = digest_of(
            model.parent, model.prismatic, model.carrier, *self.widths, model.gravity,
            model.axis, model.rotation, model.translation, model.row, model.offset,
            model.gear_ratio, model.motor_row, model.spin_axis, self._curved,
            model.friction_follows_load, model.spring, model.ripple)

    def spec(self, name: str) -> KernelSpec:
        """Return the specification of a term.

        The parameters of this model are the last input of the terms in `SHARED`.

        Raises
        ------
        UnknownNameError
            There is no such term.
        """
        own = super().spec(name)
        if name not in SHARED:
            return own
        if name == 'forward_dynamics':
            require_regular(self.model)
        values = self._values()

        def function(*arrays: Any) -> Any:
            return self._with(arrays[-1]).function_of(name)(*arrays[:-1])

        return KernelSpec(f'{self._structure}|{name}', (*own.arguments, 'parameters'),
                          (*own.sizes, len(values)), own.shape, function, (values,))

    def _values(self) -> Array:
        """Return the standard parameters, then the friction curves if any joint has one."""
        model = self.model
        if not self._curved:
            return model.standard_parameters
        plain = np.zeros((len(model.link_friction), len(CURVE)))
        plain[:, :3] = model.link_friction  # viscous and Coulomb friction and the offset
        plain[:, CURVE.index('stribeck_velocity')] = 1.0  # no effect: the Stribeck friction is 0
        curves = np.where(model.has_curve[:, None], model.friction_curve, plain)
        return np.concatenate([model.standard_parameters, curves.ravel()])

    def _with(self, values: Any) -> Catalogue:
        if not self._curved:
            return with_symbols(self, values)
        curves = values[-len(CURVE) * self.tree.bodies:].reshape(-1, len(CURVE)).copy()
        if not self.model.friction_follows_load:
            curves[:, CURVE.index('load')] = 0.0
        return with_symbols(self, values[:-curves.size], curves)
