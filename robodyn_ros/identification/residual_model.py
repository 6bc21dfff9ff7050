"""Fits a residual model: what a Gaussian process explains of the torques beyond the rigid model.

The model of a joint is kept only if it lowers the error of the raw torque on data left out of the
fit. The same rule applies to each term of friction.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from robodyn_ros.dynamics.residual_torque import JointResidual, ResidualTorque
from robodyn_ros.errors import IdentificationError
from robodyn_ros.identification.choice_errors import FOLDS
from robodyn_ros.identification.friction_choice import CERTAIN_OF_SEVERAL, NEGLIGIBLE
from robodyn_ros.identification.gram_matrices import estimates_without, grams_of
from robodyn_ros.identification.observations import Observations
from robodyn_ros.model.kinds import JOINT_TORQUE_KINDS
from robodyn_ros.packages import package
from robodyn_ros.spatial import Array

CENTRES = 200  # largest number of basis functions of a joint; at most half of the blocks
LEAST_CENTRES = 20  # a joint with fewer has too little data for a residual model
THIRDS = 3  # parts of a single log, each of which is left out as a whole
JUDGED = 4000  # samples of the raw torque by which the models are compared
SHORTEST, LONGEST = 0.1, 10.0  # lengths of the kernel, in standard deviations of each input
LEAST_NOISE = 1e-3  # variance of the noise, relative to that of the residual
BOUND = 0.99  # quantile of the residuals that limits the residual torque
NOISES = (1.0, 10.0, 100.0)  # factors of the noise's variance, because noise is correlated in time
JITTER = 1e-8  # relative regularisation of the covariance of the centres
INPUTS = ('own', 'all')  # position and velocity of the joint alone, or of all joints


@dataclass(frozen=True)
class ResidualChoice:
    """The residual model, and the errors by which it was chosen.

    Attributes
    ----------
    torque : ResidualTorque or None
        The model; None if it lowers the error of no joint.
    errors : dict of str to (float, float)
        By joint, the error of the raw torque on data left out of the fit, relative to the torque:
        without a residual model and with the best one.
    """

    torque: ResidualTorque | None
    errors: dict[str, tuple[float, float]]

    def to_text(self) -> str:
        """Return the choice in a sentence."""
        kept = () if self.torque is None else tuple(self.torque.joints)
        found = ', '.join(f'{name}: {before:.2%} to {after:.2%}'
                          for name, (before, after) in self.errors.items() if name in kept)
        return (f'residual model (error of the torque on data left out of the fit): {found}'
                if found else 'no residual model: for no joint does it lower the error on data '
                'left out of the fit')


class Raw(NamedTuple):
    """Samples of the raw torque: states (q, qd), W and torque."""

    states: Array
    w: Array
    tau: Array


class Part(NamedTuple):
    """A part of the data of the fit, and samples of its raw torque.

    The group is the index of its log or, if there is only one log, of a third of it.
    """

    group: int
    states: Array
    w: Array
    tau: Array
    used: NDArray[np.bool_]
    raw: Raw


def residual_model(observations: Observations, kept: Sequence[int], theta: Array,
                   ) -> ResidualChoice:
    """Fit and choose the residual model of each joint.

    Each log is left out as a whole, or each third of a log if there is only one: base parameters
    and residual model are fitted to the rest and predict the raw torque that was left out. The
    model must not predict any of these groups worse. Over all of them it must lower the error as
    the best of several terms of friction must, whose standard error comes from 20 parts.

    Parameters
    ----------
    observations : Observations
        The data of the fit.
    kept : sequence of int
        The columns of the base parameters.
    theta : ndarray, shape (p,)
        Their estimate from all data, whose residual the model explains.

    Raises
    ------
    IdentificationError
        If the kind explains other torques than those of the joints.
    MissingPackageError
        If scikit-learn is not installed.
    """
    linear = observations.linear
    if linear.kind not in JOINT_TORQUE_KINDS:
        raise IdentificationError(f'the kind {linear.kind} cannot have a residual model; valid: '
                                  + ', '.join(JOINT_TORQUE_KINDS))
    plain = [segment for segment in observations.segments if not segment.loaded]
    if not plain:
        raise IdentificationError('a residual model needs logs without a payload; all logs have '
                                  'one')
    parts = _parts(observations.changed(plain), list(kept))
    estimates = _estimates_without_groups(parts)
    found: dict[str, JointResidual] = {}
    errors: dict[str, tuple[float, float]] = {}
    for row, name in enumerate(linear.joints.joint_names):
        joint = _Joint(parts, row, estimates, theta[list(kept)])
        if not joint.moves:
            continue
        best, before, after = joint.best()
        errors[name] = float(np.sqrt(before)), float(np.sqrt(after))
        if best is not None:
            found[name] = best
    names = tuple(linear.joints.joint_names)
    return ResidualChoice(ResidualTorque(names, found) if found else None, errors)


def _parts(observations: Observations, kept: list[int]) -> list[Part]:
    """Return the data of the fit in consecutive parts, at least 20 of them."""
    segments, each = observations.segments, max(1, -(-FOLDS // len(observations)))
    sources = list(dict.fromkeys(segment.source for segment in segments))
    stride = max(1, sum(len(segment.t) for segment in segments) // JUDGED)
    found: list[Part] = []
    for k, (segment, block) in enumerate(zip(segments, observations.blocks(), strict=True)):
        q = np.column_stack([np.interp(block.t, segment.t, column) for column in segment.q.T])
        states = np.concatenate([q, block.qd], axis=1)
        places = np.arange(stride // 2, len(segment.t), stride)
        places = places[segment.measured[places]]
        raw = Raw(np.concatenate([segment.q, segment.qd], axis=1)[places],
                  observations.regressor(k, places)[:, :, kept], observations.torque(k)[places])
        inner = np.linspace(block.t[0], block.t[-1], each + 1)[1:-1]
        here, there = (np.searchsorted(inner, t) for t in (block.t, segment.t[places]))
        for part in range(each):
            group = sources.index(segment.source) if len(sources) > 1 else \
                THIRDS * len(found) // (each * len(segments))
            a, b = here == part, there == part
            found.append(Part(group, states[a], block.w[a][:, :, kept], block.tau[a],
                              block.used[a], Raw(*(x[b] for x in raw))))
    return found


def _estimates_without_groups(parts: list[Part]) -> Array:
    """Return weighted least squares without each group in turn, shape (G, b)."""
    grams, counts = (np.concatenate(x) for x in zip(*(
        grams_of(part.w, part.tau, part.used, np.array([0, len(part.w)])) for part in parts),
        strict=True))
    groups = np.array([part.group for part in parts])
    member = (np.unique(groups)[:, None] == groups).astype(float)
    return estimates_without(np.tensordot(member, grams, 1), member @ counts)


class _Joint:
    """The residuals of one joint, and its candidate models."""

    def __init__(self, parts: list[Part], row: int, estimates: Array, theta: Array):
        self.row, self.n = row, parts[0].states.shape[1] // 2
        self.groups = np.array([part.group for part in parts])
        self.states = [part.states[part.used[:, row]] for part in parts]
        w = [part.w[part.used[:, row], row] for part in parts]
        tau = [part.tau[part.used[:, row], row] for part in parts]
        # residuals of every part by the estimate without each group, and by that of all
        self.left = [t[:, None] - x @ estimates.T for t, x in zip(tau, w, strict=True)]
        self.residual = np.concatenate([t - x @ theta for t, x in zip(tau, w, strict=True)])
        self.raw_states = [part.raw.states for part in parts]
        self.raw = [part.raw.tau[:, row] - part.raw.w[:, row] @ estimates[part.group]
                    for part in parts]
        self.size = float(sum((part.raw.tau[:, row]**2).sum() for part in parts))
        self.every = np.concatenate(self.states)
        self.deviation = self.every.std(axis=0)
        self.count = min(CENTRES, len(self.every) // 2)

    @property
    def moves(self) -> bool:
        """Whether the joint moves and its torque is used."""
        return self.size > 0 and self.count >= LEAST_CENTRES and \
            bool(self.deviation[self.row] > 0)

    def best(self) -> tuple[JointResidual | None, float, float]:
        """Return the model to use, and the squared errors without it and with the best one."""
        before = np.array([(e**2).sum() for e in self.raw])
        least, chosen = np.inf, None
        for inputs in INPUTS:
            blank, noise = self._kernel(inputs)
            for factor in NOISES:
                after = self._left_out(blank, factor * noise)
                if after.sum() < least:
                    least = float(after.sum())
                    chosen = self._fitted(blank, factor * noise) \
                        if self._better(before, after) else None
        return chosen, float(before.sum()) / self.size, least / self.size

    def _better(self, before: Array, after: Array) -> bool:
        """Return whether the squared errors of the parts fall by more than by chance."""
        gains = before - after
        deviation = gains.std(ddof=1) * np.sqrt(len(gains))
        lower = np.sqrt(after.sum() + deviation) < (1 - NEGLIGIBLE) * np.sqrt(before.sum())
        return bool(lower and gains.sum() > CERTAIN_OF_SEVERAL * deviation and all(
            gains[self.groups == group].sum() >= 0 for group in set(self.groups)))

    def _kernel(self, inputs: str) -> tuple[JointResidual, float]:
        """Return a model without weights, and the noise's variance over that of the process."""
        use = np.flatnonzero(self.deviation > 0)
        if inputs == 'own':
            use = use[np.isin(use % self.n, self.row)]
        places = np.linspace(0, len(self.every) - 1, self.count).astype(int)
        centres, spread = self.every[places], float(self.residual.std())
        lengths, noise = _hyperparameters(centres[:, use] / self.deviation[use],
                                          self.residual[places] / spread)
        whole = np.full(2 * self.n, np.inf)
        whole[use] = lengths * self.deviation[use]
        blank = JointResidual(np.zeros(len(places)), centres, whole,
                              float(np.quantile(np.abs(self.residual), BOUND)))
        return blank, noise

    def _fitted(self, blank: JointResidual, noise: float) -> JointResidual:
        """Return the model with weights that are fitted to all parts."""
        features = blank.features(self.every)
        weights = _weights(blank, features.T @ features, features.T @ self.residual, noise)
        return replace(blank, weights=weights)

    def _left_out(self, one: JointResidual, noise: float) -> Array:
        """Return the squared error of each part's raw torque, which the fit has not seen."""
        features = [one.features(states) for states in self.states]
        squares = np.array([x.T @ x for x in features])
        products = np.array([x.T @ e for x, e in zip(features, self.left, strict=True)])
        weights = {group: _weights(one, squares[self.groups != group].sum(axis=0),
                                   products[self.groups != group, :, group].sum(axis=0), noise)
                   for group in set(self.groups)}
        return np.array([((e - np.clip(one.features(states) @ weights[group], -one.bound,
                                       one.bound))**2).sum()
                         for e, states, group in zip(self.raw, self.raw_states, self.groups,
                                                     strict=True)])


def _weights(one: JointResidual, squares: Array, products: Any, noise: float) -> Array:
    """Return the weights of the subset of regressors (Rasmussen and Williams 8.14)."""
    covariance = one.features(one.centres)
    covariance[np.diag_indices(len(covariance))] += JITTER
    return np.asarray(scipy.linalg.solve(squares + noise * covariance, products, assume_a='pos'))


def _hyperparameters(x: Array, y: Array) -> tuple[Array, float]:
    """Return the lengths of the kernel, and the noise over its variance, by maximum likelihood."""
    kernels = package('sklearn.gaussian_process.kernels')
    kernel = kernels.ConstantKernel(0.5, (1e-3, 10.0)) * kernels.RBF(
        np.ones(x.shape[1]), (SHORTEST, LONGEST)) + kernels.WhiteKernel(0.5, (LEAST_NOISE, 10.0))
    process = package('sklearn.gaussian_process').GaussianProcessRegressor(kernel)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # lengths are meant to stop at their limits
        found = process.fit(x, y).kernel_
    lengths = np.broadcast_to(found.k1.k2.length_scale, (x.shape[1],))
    return np.array(lengths), float(found.k2.noise_level / found.k1.k1.constant_value)
