"""Base parameters for predictions: friction is not negative, and a prior holds the rest.

Friction never drives a joint. Where least squares gives it a negative parameter, this parameter
describes something else in the motion of the fit, such as a delay, and harms other predictions.

A single motion hardly determines some combinations of parameters. Least squares fits them to what
the model does not explain in this motion, and predicts another motion with these values. The
bodies therefore have a normal prior around those of the description. How far inertias, first
moments, masses and offsets are from it is estimated from the log itself, by the largest marginal
likelihood (empirical Bayes; MacKay 1992, 10.1162/neco.1992.4.3.415). The prior is used only if it
predicts positions better that are left out of the fit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.optimize
from numpy.typing import NDArray

from robodyn_ros.identification.base_parameters import BaseParameters
from robodyn_ros.identification.consistency import TRIANGLE, body_coordinates, nominal_bodies
from robodyn_ros.identification.estimation import Estimate
from robodyn_ros.identification.gram_matrices import RIDGE, equal_columns, grams_of
from robodyn_ros.identification.linear_model import LinearModel
from robodyn_ros.identification.observations import Observations
from robodyn_ros.identification.statistics import Uncertainty
from robodyn_ros.numerics import safe_divide
from robodyn_ros.spatial import Array

QUARTERS = 4  # regions of the positions, with equal numbers of samples
CERTAIN = 1.64  # smallest gain over its standard error, as for the best of several terms
FLAT = 1e6  # variance of parameters without a prior, relative to their squared size
START, STEP, LAST_STEP = 1.0, 1.6, 0.15  # of the search for the logarithms of the spreads
LARGEST = 6.0  # absolute value of these logarithms
HYPER = 3.0  # standard deviation of the logarithms before the data are seen
FLAT_ENOUGH = 1e-3  # change of the logarithm of the likelihood that ends the search
ROUND_OFF = 1e-10
NONNEGATIVE = ('Fv', 'Fc')  # viscous and Coulomb friction
CERTAIN_SIGN = 2.0  # standard deviations below zero of negative friction that is mentioned
ITERATIONS = 1000  # of the solution with friction that is not negative


class Drawn(NamedTuple):
    """Base parameters for predictions, shape (b,), and remarks on them."""

    values: Array
    words: list[str]


class Prior(NamedTuple):
    """A normal prior of base parameters.

    Attributes
    ----------
    mean : ndarray, shape (b,)
        Base parameters of the description.
    groups : dict of str to ndarray, shape (b, b)
        Covariance of each group of parameters for a spread of one.
    flat : ndarray, shape (b,)
        Large variances of the parameters that no group contains.
    """

    mean: Array
    groups: dict[str, Array]
    flat: Array

    def covariance(self, logarithms: Array) -> Array:
        """Return the covariance for the logarithms of the spreads, one for each group."""
        found = np.diag(self.flat)
        for x, group in zip(logarithms, self.groups.values(), strict=True):
            found = found + np.exp(2 * x) * group
        return found

    def information(self, logarithms: Array) -> Array:
        """Return the inverse of the covariance."""
        covariance = self.covariance(logarithms)
        scale = np.sqrt(np.diag(covariance))
        inside = covariance / np.outer(scale, scale) + ROUND_OFF * np.eye(len(scale))
        return np.asarray(np.linalg.inv(inside) / np.outer(scale, scale))


def drawn_estimate(observations: Observations, base: BaseParameters, estimate: Estimate,
                   uncertainty: Uncertainty) -> Drawn:
    """Return base parameters for predictions.

    Their friction is not negative, and they are drawn towards the description if this helps.

    Parameters
    ----------
    observations : Observations
        The data of the fit.
    base : BaseParameters
        The b base parameters.
    estimate : Estimate
        Their weighted least squares.
    uncertainty : Uncertainty
        Its uncertainty, with the correlation of the residuals in time.
    """
    variance = np.diag(uncertainty.covariance)
    terms = [observations.linear.columns[k].term for k in base.kept]
    positive = np.array([term.startswith(NONNEGATIVE) for term in terms])
    negative = [name for name, no, value, square in zip(
        base.names, positive, estimate.values, variance, strict=True)
        if no and value < -CERTAIN_SIGN * np.sqrt(square)]
    words = [] if not negative else [
        f'{", ".join(negative)} would be negative: predictions use 0, since friction never drives '
        'a joint; a delay of the torques may be the cause, or a cable']
    prior = prior_of(observations.linear, base, estimate, variance)
    # information of correlated residuals, over that of independent ones
    memory = float(np.median(safe_divide(variance, np.diag(estimate.plain_covariance),
                                         at_zero=1.0)))
    weight = np.zeros_like(uncertainty.covariance)
    if 'mass' in prior.groups:
        found = memory * prior.information(
            most_probable(prior, estimate.values, uncertainty.covariance))
        regions = regional_grams(observations, base.kept, estimate.sigma)
        whole = regions.sum(axis=0)
        without, with_prior = (np.array([
            _error(part, _solve(whole - part, w, prior.mean, positive)) for part in regions])
            for w in (weight, found))
        gains = 0.5 * np.log(with_prior / without)
        words.append('a prior around the description changes the error at positions that are left '
                     f'out of the fit by {np.expm1(gains.mean()):+.1%}')
        if -gains.mean() > CERTAIN * gains.std(ddof=1) / np.sqrt(QUARTERS):
            weight = found
            words[-1] += ': predictions use it'
        else:
            words[-1] += ', which is no certain improvement: it is not used'
    if not weight.any() and not (estimate.values[positive] < 0).any():
        return Drawn(estimate.values, words)
    gram = np.zeros((base.count + 1, base.count + 1))
    gram[:-1, :-1] = estimate.factor.T @ estimate.factor
    gram[:-1, -1] = gram[:-1, :-1] @ estimate.values
    return Drawn(_solve(gram, weight, prior.mean, positive), words)


def prior_of(linear: LinearModel, base: BaseParameters, estimate: Estimate,
             variance: Array) -> Prior:
    """Return the prior of base parameters around the description.

    The distance of a body to that of the description does not depend on units and frames, see
    `body_coordinates`. An offset has the size of the residual of its joint.

    Parameters
    ----------
    linear, base, estimate
        The model, its b base parameters, and their estimate.
    variance : ndarray, shape (b,)
        Variances of the estimate.
    """
    if not linear.model.inertial_parameters[:, 6].any():
        return Prior(np.zeros(base.count), {}, variance)
    p = len(linear.columns)
    mean, nominal = np.zeros(p), nominal_bodies(linear)
    places: dict[int, list[int]] = {}
    spreads: dict[str, list[Array]] = {'inertia': [], 'moment': [], 'mass': [], 'offset': []}
    for k, column in enumerate(linear.columns):
        if column.term[0] in 'Im' and column.term != 'Ia':
            places.setdefault(column.body, []).append(k)
        elif column.term.startswith('off'):
            unit = np.zeros(p)
            joint = int(np.flatnonzero(linear.model.row[column.body])[0])
            unit[k] = estimate.sigma[min(joint, len(estimate.sigma) - 1)]
            spreads['offset'].append(unit)
    for body, of_body in places.items():
        mean[of_body], along = body_coordinates(nominal[body])
        for (i, j), direction in zip(TRIANGLE, along.T, strict=True):
            unit = np.zeros(p)
            unit[of_body] = direction
            spreads['inertia' if j < 3 else 'moment' if i < 3 else 'mass'].append(unit)
    groups = {}
    for name, units in spreads.items():
        if units:
            root = base.matrix @ np.array(units).T
            groups[name] = root @ root.T
    known = np.sum([np.diag(group) for group in groups.values()], axis=0)
    flat = np.where(known > 0, 0.0, FLAT * (variance + estimate.values**2))
    return Prior(base.matrix @ mean, groups, flat)


def most_probable(prior: Prior, values: Array, covariance: Array) -> Array:
    """Return the logarithms of the spreads with the largest marginal likelihood.

    Parameters
    ----------
    prior : Prior
        The prior.
    values, covariance : ndarray, shape (b,), (b, b)
        The estimate without prior, and its covariance.
    """
    def cost(logarithms: Array) -> float:
        whole = covariance + prior.covariance(logarithms)
        scale = np.sqrt(np.diag(whole))
        inside = whole / np.outer(scale, scale) + ROUND_OFF * np.eye(len(scale))
        try:
            factor = scipy.linalg.cholesky(inside, lower=True)
        except scipy.linalg.LinAlgError:  # by round-off, where hardly anything is determined
            return np.inf
        left = scipy.linalg.solve_triangular(factor, (values - prior.mean) / scale, lower=True)
        return float(0.5 * left @ left + np.log(np.diag(factor) * scale).sum()
                     + 0.5 * ((logarithms / HYPER)**2).sum())

    best = np.full(len(prior.groups), START)
    least, step = cost(best), STEP
    while step > LAST_STEP:  # along one spread after the other
        before = least
        for k in range(len(best)):
            for change in (step, -step):
                trial = best.copy()
                trial[k] = np.clip(trial[k] + change, -LARGEST, LARGEST)
                found = cost(trial)
                if found < least - FLAT_ENOUGH:
                    best, least = trial, found
                    break
        if least == before:
            step /= 2
    return best


def regional_grams(observations: Observations, kept: tuple[int, ...], sigma: Array) -> Array:
    """Return weighted Gram matrices of ``[W, tau]`` in regions of the positions, see `quadrants`.

    Returns
    -------
    ndarray, shape (4, b + 1, b + 1)
        One for each region.
    """
    blocks = list(observations.blocks())
    places = [np.searchsorted(segment.t, block.t).clip(0, len(segment.t) - 1)
              for segment, block in zip(observations.segments, blocks, strict=True)]
    label = quadrants(np.concatenate([segment.q[at] for segment, at in zip(
        observations.segments, places, strict=True)]))
    order = np.argsort(label, kind='stable')
    edges = np.searchsorted(label[order], np.arange(QUARTERS + 1))
    w = np.concatenate([block.w[:, :, list(kept)] for block in blocks])[order]
    tau = np.concatenate([block.tau for block in blocks])[order]
    used = np.concatenate([block.used for block in blocks])[order]
    grams, counts = grams_of(w, tau, used, edges)
    weights = np.where(counts.any(axis=0), safe_divide(1.0, sigma**2), 0.0)
    return np.tensordot(grams, weights, (1, 0))


def quadrants(q: Array) -> NDArray[np.int_]:
    """Return to which of four regions of equal size each position belongs, shape (N,).

    The regions are divided at the medians of the first two principal components.

    Parameters
    ----------
    q : ndarray, shape (N, n)
        Positions, rad or m.
    """
    centred = q - q.mean(axis=0)
    u, s, _ = np.linalg.svd(safe_divide(centred, centred.std(axis=0)), full_matrices=False)
    along = u[:, :2] * s[:2]
    upper = along[:, 0] > np.median(along[:, 0])
    label = 2 * upper.astype(int)
    for side in (False, True):
        here = upper == side
        label[here] += along[here, -1] > np.median(along[here, -1])
    return label


def _solve(gram: Array, weight: Array, mean: Array, positive: NDArray[np.bool_]) -> Array:
    """Solve the normal equations of ``[W, tau]`` with the information of a prior added.

    Some parameters cannot be negative.
    """
    matrix, scale = equal_columns(gram[:-1, :-1] + weight)
    right = (gram[:-1, -1] + weight @ mean) / scale
    values = np.linalg.solve(matrix, right)
    if (values[positive] < 0).any():
        squares, vectors = np.linalg.eigh(matrix)
        roots = np.sqrt(np.maximum(squares, RIDGE))
        lowest = np.where(positive, 0.0, -np.inf)
        values = scipy.optimize.lsq_linear(
            roots[:, None] * vectors.T, vectors.T @ right / roots, (lowest, np.inf),
            method='bvls', max_iter=ITERATIONS).x
        values = np.maximum(values, lowest)  # round-off may be below zero
    return np.asarray(values / scale)


def _error(gram: Array, theta: Array) -> float:
    """Return the squared error of a prediction; differences within round-off do not count."""
    whole = np.append(theta, -1.0)
    return float(max(whole @ gram @ whole, ROUND_OFF * gram[-1, -1], np.finfo(float).tiny))
