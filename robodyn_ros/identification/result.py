"""What an identification is told, `Settings`, and what comes out of it, `Result`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.description import Array
from robodyn_ros.errors import IdentificationError, ShapeError, UnknownNameError
from robodyn_ros.identification.base_parameters import BaseParameters
from robodyn_ros.identification.consistency import consistent_bodies
from robodyn_ros.identification.estimation import Estimate
from robodyn_ros.identification.friction_choice import FrictionChoice
from robodyn_ros.identification.linear_model import LinearModel
from robodyn_ros.identification.observations import Observations
from robodyn_ros.identification.signals import FilterSettings
from robodyn_ros.identification.statistics import Uncertainty
from robodyn_ros.identification.validation import Validation, validate_on
from robodyn_ros.model import Model


@dataclass(frozen=True)
class Settings:
    """How to identify; every value has a usual one.

    Attributes
    ----------
    kind : str
        ``rigid``, ``lumped``, ``model1``, ``model2``, ``model3``: see `LinearModel`.
    friction : str
        ``auto`` chooses by the error on data left out; or a friction model, see `FrictionShape`.
    friction_width : float, optional
        Of sign(s), of each joint's fast speed; default: chosen with the friction, or 0.
    method : str
        ``weighted`` least squares, ``ordinary``, or ``huber`` against outliers.
    joints : sequence of str, optional
        Estimate these bodies alone, the rest stays nominal.
    torques_of : sequence of str, optional
        Joints whose torques count; default: all.
    payload : str, optional
        Link that carries an unknown payload in the logs that are ``loaded``.
    payload_mass : float, optional
        kg, where it is known.
    filter : FilterSettings
        Of the positions.
    decimation : float, optional
        Hz, cutoff of the parallel filter; 0: none; default: three times the motion's band.
    slow : float or sequence of float, optional
        rad/s or m/s: rows of joints slower than this do not count.
    guard : float, optional
        s before and after a slow sample in which they do not count either: what friction does
        while a joint sticks reaches through the filters. Default: half the width of the parallel
        one, less where half of a joint's fast samples would be lost.
    prior : float, optional
        Weight of the nominal model in the consistent estimate; default: see `consistent_estimate`.
    """

    kind: str = 'lumped'
    friction: str = 'auto'
    friction_width: float | None = None
    method: str = 'weighted'
    joints: Sequence[str] | None = None
    torques_of: Sequence[str] | None = None
    payload: str | None = None
    payload_mass: float | None = None
    filter: FilterSettings = FilterSettings()
    decimation: float | None = None
    slow: float | Sequence[float] | None = None
    guard: float | None = None
    prior: float | None = None


@dataclass(frozen=True, eq=False)
class Result:
    """An identified robot.

    Attributes
    ----------
    base_ : BaseParameters
        What the torques determine.
    estimate_ : Estimate
        Of the base parameters, unconstrained.
    uncertainty_ : Uncertainty
        Of the estimate.
    significant_ : tuple of str
        Parameters that an F test keeps, by the corrected covariance.
    instrumental_ : ndarray, shape (b,)
        The estimate by instrumental variables.
    bias_ : ndarray, shape (b,)
        Its difference from the estimate in standard deviations.
    theta_ : ndarray, shape (p,)
        Parameters of the linear model with the estimate in them.
    consistent_ : ndarray, shape (p,)
        The physically consistent estimate.
    inconsistent_bodies_ : tuple of str
        Bodies that no real one is, in the unconstrained estimate.
    model : Model
        The robot with the consistent estimate.
    friction_choice_ : FrictionChoice or None
        What was tried.
    notes : tuple of str
        What was found and decided on the way.
    """

    settings: Settings
    linear: LinearModel
    base_: BaseParameters
    estimate_: Estimate
    uncertainty_: Uncertainty
    significant_: tuple[str, ...]
    instrumental_: Array
    bias_: Array
    theta_: Array
    consistent_: Array
    inconsistent_bodies_: tuple[str, ...]
    model: Model
    friction_choice_: FrictionChoice | None
    observations: Observations = field(repr=False)
    sources: tuple[tuple[str, str], ...]
    notes: tuple[str, ...] = field(repr=False)

    @cached_property
    def training_(self) -> Validation:
        """Errors on the data of the fit (no proof)."""
        return validate_on(self.observations, self.theta_)

    def predict(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, *, consistent: bool = False,
                loaded: bool = False) -> Array:
        """Torque by the identified parameters, shape (n,) or (N, n); N m, N.

        Parameters
        ----------
        q, qd, qdd : array-like, shape (n,) or (N, n)
            Motion.
        consistent : bool
            By the physically consistent parameters.
        loaded : bool
            With the payload.
        """
        arrays: list[Any] = [np.atleast_2d(np.asarray(x, np.float64)) for x in (q, qd, qdd)]
        n = self.linear.joints.n
        for name, array in zip(('q', 'qd', 'qdd'), arrays, strict=True):
            if array.ndim != 2 or array.shape[1] != n or array.shape != arrays[0].shape:
                raise ShapeError(name, f'shape {array.shape}', f'({n},) or (N, {n})')
        theta = self.consistent_ if consistent else self.theta_
        tau = self.linear.regressor(arrays[0], arrays[1], arrays[2], loaded=loaded) @ theta
        rest = self.linear.rest()
        if rest is not None:
            tau = tau + rest.inverse_dynamics(arrays[0], arrays[1], arrays[2])
        return np.asarray(tau[0] if np.ndim(q) == 1 else tau)

    def standard_deviation(self, name: str) -> float:
        """Standard deviation of a base parameter by name."""
        if name not in self.base_.names:
            raise UnknownNameError('base parameter', name, self.base_.names)
        return float(self.uncertainty_.deviation[self.base_.names.index(name)])

    def write_urdf(self, path: str | Path) -> None:
        """Write the URDF with the consistent parameters.

        Raises
        ------
        IdentificationError
            They are not physically consistent, or the model came from no URDF.
        """
        from robodyn_ros.identification.writing import urdf_of

        text = self.model.description.urdf
        if not text:
            raise IdentificationError('the model was not read from a URDF; urdf_of takes one')
        Path(path).write_text(urdf_of(self.model, text), encoding='utf-8')

    def save(self, path: str | Path, validation: Validation | None = None) -> None:
        """Write parameters, statistics and provenance as YAML."""
        from robodyn_ros.identification.writing import save_parameters

        save_parameters(self, path, validation)

    def to_text(self) -> str:
        """Parameters as a table for people."""
        base, u = self.base_, self.uncertainty_
        nominal = base.matrix @ self.linear.nominal()
        width = max(map(len, base.names))
        lines = [f'  {"base parameter":{width}}     estimate          std    95 % interval'
                 '                 nominal']
        for k, name in enumerate(base.names):
            mark = ' ' if name in self.significant_ else '~'
            lines.append(f'{mark} {name:{width}} {self.estimate_.values[k]:12.5g} '
                         f'{u.deviation[k]:12.3g}    [{u.interval[k, 0]:10.4g}, '
                         f'{u.interval[k, 1]:10.4g}]  {nominal[k]:12.5g}')
        return '\n'.join([*lines, '  ~: not significant'])


def settings_mapping(settings: Settings) -> dict[str, Any]:
    """Settings as plain data, without what has its usual value."""
    usual = asdict(Settings())
    return {key: value for key, value in asdict(settings).items() if value != usual[key]}


def consistent(model: Model) -> bool:
    """Whether every body that weighs something can exist, and no rotor or friction is negative."""
    heavy = model.rigid[:, 6] != 0
    return bool(consistent_bodies(model.rigid[heavy]).all() and (model.armature >= 0).all()
                and (model.link_friction[:, :2] >= 0).all()
                and (model.motor_friction[:, :2] >= 0).all())
