"""`Result`: the data that an identification returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.dynamics.residual_torque import ResidualTorque
from robodyn_ros.errors import ShapeError, UnknownNameError
from robodyn_ros.html_table import html_table
from robodyn_ros.identification.base_parameters import BaseParameters
from robodyn_ros.identification.estimation import Estimate
from robodyn_ros.identification.filter_choice import FilterChoice
from robodyn_ros.identification.friction_choice import FrictionChoice
from robodyn_ros.identification.linear_model import LinearModel
from robodyn_ros.identification.observations import Observations
from robodyn_ros.identification.plausibility import implausible
from robodyn_ros.identification.ripple import ripple_torque
from robodyn_ros.identification.settings import Settings
from robodyn_ros.identification.signals import Filtering
from robodyn_ros.identification.statistics import Uncertainty
from robodyn_ros.identification.validation import Validation, drawn, validate_on
from robodyn_ros.identification.verdict import Evidence
from robodyn_ros.lazy import cached_property
from robodyn_ros.model import Model
from robodyn_ros.packages import package
from robodyn_ros.spatial import Array


@dataclass(frozen=True, eq=False)
class Result:
    """An identified robot.

    Attributes
    ----------
    settings : Settings
        Settings of the identification.
    linear : LinearModel
        The model that is linear in its p parameters.
    base_ : BaseParameters
        The b base parameters, which the torques determine.
    estimate_ : Estimate
        Their unconstrained estimate.
    uncertainty_ : Uncertainty
        Standard deviations and intervals of the estimate.
    significant_ : tuple of str
        The parameters that an F test with the corrected covariance keeps.
    instrumental_ : ndarray, shape (b,)
        The estimate by instrumental variables.
    bias_ : ndarray, shape (b,)
        Its difference from the estimate, in standard deviations.
    theta_ : ndarray, shape (p,)
        Parameters of the linear model with which torques are predicted: base parameters, zero
        elsewhere. They are the estimate, drawn towards the description if that predicts positions
        better that are left out of the fit; the notes say so.
    consistent_ : ndarray, shape (p,)
        The physically consistent estimate.
    inconsistent_bodies_ : tuple of str
        Bodies with physically inconsistent inertia in the unconstrained estimate.
    model : Model
        The robot with the physically consistent parameters.
    filtering : Filtering
        The filters of the fit, which are also used for validation.
    filter_choice_ : FilterChoice
        The filters that were tried, and their errors.
    friction_choice_ : FrictionChoice
        The friction models that were tried, and their errors.
    observations : Observations
        The data of the fit.
    sources : tuple of (str, str)
        Name and SHA-256 of each log.
    notes : tuple of str
        Remarks on what was found and decided.
    residual_ : ResidualTorque or None
        The residual model that the settings ask for, if it lowers the error on data left out of
        the fit.
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
    filtering: Filtering
    filter_choice_: FilterChoice
    friction_choice_: FrictionChoice
    observations: Observations = field(repr=False)
    sources: tuple[tuple[str, str], ...]
    notes: tuple[str, ...] = field(repr=False)
    residual_: ResidualTorque | None = field(default=None, repr=False)

    @cached_property
    def training_(self) -> Validation:
        """Errors on the data of the fit itself; they are not a validation."""
        return validate_on(self.observations.changed(decimation=self.filtering.judged),
                           self.theta_, self.evidence_)

    @cached_property
    def evidence_(self) -> Evidence:
        """Facts about the fit on which a verdict is based besides the errors."""
        segments = self.observations.segments
        motions = [np.concatenate([getattr(s, name) for s in segments]) for name in ('q', 'qd')]
        poor = self.uncertainty_.poorly_distinguished
        return Evidence(self.uncertainty_.condition, poor[0] if poor else '',
                        implausible(self.linear.whole, self.model, motions[0]),
                        np.array([x.min(axis=0) for x in motions]),
                        np.array([x.max(axis=0) for x in motions]))

    @property
    def nominal_(self) -> Array:
        """Base parameters of the nominal model, shape (b,)."""
        return self.base_.matrix @ self.linear.nominal()

    def predict(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, *, consistent: bool = False,
                loaded: bool = False, residual: bool = True,
                temperature: ArrayLike | None = None, rate: float | None = None) -> Array:
        """Return the torque that the identified parameters and the residual model predict.

        Parameters
        ----------
        q, qd, qdd : array-like, shape (n,) or (N, n)
            The motion; rad or m, and per s and s^2.
        consistent : bool
            Whether to use the physically consistent parameters.
        loaded : bool
            Whether the payload is attached.
        residual : bool
            Whether to add the torque of the residual model, if there is one.
        temperature : array-like, shape (n,) or (N, n), optional
            Temperatures of the joints, degrees Celsius; default: the mean of those of the fit.
        rate : float, optional
            Samples a second, Hz, if these are consecutive samples of a motion: friction then keeps
            its direction at rest and builds up again after reversals (presliding).

        Returns
        -------
        ndarray, shape (n,) or (N, n)
            N m or N.

        Raises
        ------
        ShapeError
            If the arrays are of different or wrong shapes.
        """
        arrays: list[Any] = [np.atleast_2d(np.asarray(x, np.float64)) for x in (q, qd, qdd)]
        n = self.linear.joints.n
        for name, array in zip(('q', 'qd', 'qdd'), arrays, strict=True):
            if array.ndim != 2 or array.shape[1] != n or array.shape != arrays[0].shape:
                raise ShapeError(name, f'shape {array.shape}', f'({n},) or (N, {n})')
        theta = self.consistent_ if consistent else self.theta_
        warm = None if temperature is None else np.broadcast_to(
            np.asarray(temperature, np.float64), arrays[0].shape)
        friction = None
        if rate is not None:
            friction = self.linear.friction_states(arrays[0], arrays[1], rate, warm)
        elif warm is not None:
            friction = self.linear.gears.states(arrays[1], temperature=warm)
        tau = self.linear.regressor(arrays[0], arrays[1], arrays[2], loaded=loaded,
                                    friction=friction) @ theta
        tau = tau + ripple_torque(self.linear.model, self.linear.friction.ripple, arrays[0])
        rest = self.linear.not_estimated()
        if rest is not None:
            tau = tau + rest.inverse_dynamics(arrays[0], arrays[1], arrays[2])
        if residual and self.residual_ is not None:
            tau = tau + self.residual_.torque(arrays[0], arrays[1])
        return np.asarray(tau[0] if np.ndim(q) == 1 else tau)

    def standard_deviation(self, name: str) -> float:
        """Return the standard deviation of a base parameter.

        Raises
        ------
        UnknownNameError
            If there is no base parameter of this name.
        """
        if name not in self.base_.names:
            raise UnknownNameError('base parameter', name, self.base_.names)
        return float(self.uncertainty_.deviation[self.base_.names.index(name)])

    def rows(self) -> list[dict[str, Any]]:
        """Return one mapping for each base parameter; SI units."""
        u, nominal = self.uncertainty_, self.nominal_
        return [{'parameter': name, 'estimate': float(self.estimate_.values[k]),
                 'standard_deviation': float(u.deviation[k]),
                 'interval_lower': float(u.interval[k, 0]),
                 'interval_upper': float(u.interval[k, 1]), 'nominal': float(nominal[k]),
                 'significant': name in self.significant_, 'expression': self.base_.expressions[k]}
                for k, name in enumerate(self.base_.names)]

    def to_dataframe(self) -> Any:
        """Return the base parameters as a pandas ``DataFrame``; SI units.

        Raises
        ------
        MissingPackageError
            pandas is not installed.
        """
        return package('pandas').DataFrame(self.rows()).set_index('parameter')

    def _repr_html_(self) -> str:
        """Return the base parameters, for notebooks."""
        return html_table(f'{self.model.name}: {self.base_.count} base parameters', (
            'parameter', 'estimate', 'standard deviation', '95 % from', 'to', 'nominal',
            'significant'), [list(row.values())[:7] for row in self.rows()], self.notes)

    # the plots belong to the report, which is imported only when needed
    def plot_parameters(self) -> Any:
        """Return a matplotlib figure of the estimates with their 95 % intervals."""
        return drawn('parameter_figure', self)

    def plot_friction(self) -> Any:
        """Return a matplotlib figure of the friction against the speed of each joint."""
        return drawn('friction_figure', self)

    def plot_singular_values(self) -> Any:
        """Return a matplotlib figure of the singular values of the observation matrix."""
        return drawn('singular_figure', self)

    def plot_coverage(self, validation: Validation) -> Any:
        """Return a matplotlib figure of positions and velocities in the fit and a validation."""
        return drawn('coverage_figure', self, validation)

    def to_text(self) -> str:
        """Return the base parameters as a table."""
        base, u = self.base_, self.uncertainty_
        nominal = self.nominal_
        width = max(map(len, base.names))
        lines = [f'  {"":{width}}   estimate      std    95 % interval         nominal']
        for k, name in enumerate(base.names):
            mark = ' ' if name in self.significant_ else '~'
            lines.append(f'{mark} {name:{width}} {self.estimate_.values[k]:10.4g}'
                         f'{u.deviation[k]:9.3g} [{u.interval[k, 0]:10.4g},'
                         f'{u.interval[k, 1]:10.4g}]{nominal[k]:10.4g}')
        return '\n'.join([*lines, '  ~: not significant'])
