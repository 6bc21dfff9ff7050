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
from robodyn_ros.identification.gram_matrices import estimates_without, grams_of
from robodyn_ros.identification.left_out import FOLDS
from robodyn_ros.identification.observations import Observations
from robodyn_ros.model.kinds import JOINT_TORQUE_KINDS
from robodyn_ros.packages import package
from robodyn_ros.spatial import Array

CENTRES = 200  # largest number of basis functions of a joint; at most half of the blocks
LEAST_CENTRES = 20  # a joint with fewer has too little data for a residual model
NEGLIGIBLE, CERTAIN = 0.01, 1.0  # smallest reduction of the error, as in `friction_choice`
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


class Part(NamedTuple):
    """A part of the data of the fit: log, states (q, qd), W, torque, and the rows in use."""

    source: str
    states: Array
    w: Array
    tau: Array
    used: NDArray[np.bool_]


def residual_model(observations: Observations, kept: Sequence[int], theta: Array,
                   ) -> ResidualChoice:
    """Fit and choose the residual model of each joint.

    The data are divided into 20 parts. For each part, the base parameters are fitted without this
    part, and the residual model without the whole log that contains it, so that the model must
    hold for another motion. If there is only one log, the residual model is fitted without the
    part and its two neighbours, whose states are similar.

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
    edges = [np.array([0, len(part.w)]) for part in parts]
    grams, counts = zip(*(grams_of(part.w, part.tau, part.used, edge) for part, edge in zip(
        parts, edges, strict=True)), strict=True)
    estimates = estimates_without(np.concatenate(grams), np.concatenate(counts))
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
    found, each = [], max(1, -(-FOLDS // len(observations)))
    for segment, block in zip(observations.segments, observations.blocks(), strict=True):
        q = np.column_stack([np.interp(block.t, segment.t, column) for column in segment.q.T])
        states = np.concatenate([q, block.qd], axis=1)
        for part in np.array_split(np.arange(len(block.t)), each):
            found.append(Part(segment.source, states[part], block.w[part][:, :, kept],
                              block.tau[part], block.used[part]))
    return found


class _Joint:
    """The residuals of one joint, and its candidate models."""

    def __init__(self, parts: list[Part], row: int, estimates: Array, theta: Array):
        self.row, self.n = row, parts[0].states.shape[1] // 2
        sources = [part.source for part in parts]
        self.others = [[k for k in range(len(parts)) if (
            sources[k] != source if len(set(sources)) > 1 else abs(k - f) > 1)]
            for f, source in enumerate(sources)]
        self.states = [part.states[part.used[:, row]] for part in parts]
        w = [part.w[part.used[:, row], row] for part in parts]
        tau = [part.tau[part.used[:, row], row] for part in parts]
        # residuals of every part by the estimate without each part, and by that of all parts
        self.left = [t[:, None] - x @ estimates.T for t, x in zip(tau, w, strict=True)]
        self.residual = np.concatenate([t - x @ theta for t, x in zip(tau, w, strict=True)])
        self.size = float(sum((t**2).sum() for t in tau))
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
        before = np.array([(e[:, f]**2).sum() for f, e in enumerate(self.left)])
        least, chosen = np.inf, None
        for inputs in INPUTS:
            blank, noise = self._kernel(inputs)
            for factor in NOISES:
                after = self._left_out(blank, factor * noise)
                # the best of several candidates is better by chance: a standard error is required
                margin = CERTAIN * (before - after).std(ddof=1) * np.sqrt(len(after))
                enough = np.sqrt(after.sum() + margin) < (1 - NEGLIGIBLE) * np.sqrt(before.sum())
                if after.sum() < least:
                    least = float(after.sum())
                    chosen = self._fitted(blank, factor * noise) if enough else None
        return chosen, float(before.sum()) / self.size, least / self.size

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
        """Return the squared error of each part, which the fit has not seen."""
        features = [one.features(states) for states in self.states]
        squares = np.array([x.T @ x for x in features])
        products = [x.T @ e for x, e in zip(features, self.left, strict=True)]
        count, found = len(features), np.zeros(len(features))
        for f in range(count):
            train = self.others[f]
            weights = _weights(one, squares[train].sum(axis=0),
                               sum(products[k][:, f] for k in train), noise)
            guess = np.clip(features[f] @ weights, -one.bound, one.bound)
            found[f] = ((self.left[f][:, f] - guess)**2).sum()
        return found


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
