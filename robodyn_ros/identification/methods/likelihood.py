"""Maximum likelihood with noise in positions, velocities, accelerations and torques."""

from __future__ import annotations

import numpy as np
import scipy.optimize

from robodyn_ros.errors import IdentificationError
from robodyn_ros.identification.estimation import Estimate
from robodyn_ros.identification.methods.problem import Problem
from robodyn_ros.spatial import Array

MOST = 2000  # samples of the likelihood, evenly over the motion
STEP = 1e-5  # for derivatives of the regressor; rad, rad/s, rad/s^2 or m and their derivatives
EVALUATIONS = 20  # largest number of evaluations of the residuals by the optimiser
LEAST_NOISE = 0.1  # smallest variance of the torque noise, relative to that of the residuals


def maximum_likelihood(problem: Problem) -> Estimate:
    """Estimate by maximum likelihood (Olsen, Swevers and Verdonck 2002).

    See also Swevers, Verdonck and De Schutter 2007 (doi 10.1109/MCS.2007.904659). The covariance
    of a sample's residuals is ``B S B' + diag(sigma^2)``, with the derivatives B of the torque
    with respect to the motion. S, the diagonal covariance of the noise of the motion, is that of
    its difference from the smooth motion (`Segment.smooth`).

    Raises
    ------
    IdentificationError
        The robot has closed loops, or more than one torque for each joint.
    """
    linear = problem.observations.linear
    if linear.loops is not None or linear.rows != linear.joints.n:
        raise IdentificationError('the likelihood of this robot is not available; valid: the '
                                  'other methods, or a tree with one torque for each joint')
    w, tau, slopes, noise = _samples(problem)
    start = problem.start
    residual = tau - w @ start.values
    total = (residual**2).mean(axis=0)
    through_motion = ((slopes @ start.values * noise)**2).sum(axis=1).mean(axis=0)
    torque_variance = np.maximum(total - through_motion, LEAST_NOISE * total)

    def whitened(scaled: Array) -> Array:
        values = scaled * scale
        through = np.moveaxis(slopes @ values * noise, 1, 2)
        covariance = through @ np.moveaxis(through, 1, 2)
        covariance[:, range(linear.rows), range(linear.rows)] += torque_variance
        lower = np.linalg.cholesky(covariance)
        return np.asarray(np.linalg.solve(lower, (tau - w @ values)[..., None])).ravel()

    scale = 1 / np.linalg.norm(start.factor, axis=0)
    found = scipy.optimize.least_squares(whitened, start.values / scale,
                                         max_nfev=EVALUATIONS)
    return problem.with_values(found.x * scale)


def _samples(problem: Problem) -> tuple[Array, Array, Array, Array]:
    """Return W (K, n, b), torques (K, n), derivatives of W (K, 3 n, n, b) and noise (3 n, 1)."""
    observations, kept = problem.observations, list(problem.kept)
    linear = observations.linear
    total = sum(len(block.t) for block in observations.blocks())
    stride = max(1, total // MOST)
    parts, deviations = [], []
    for k, segment in enumerate(observations.segments):
        block = observations.block(k)
        some = slice(None, None, stride)
        used = block.used[some].all(axis=1)
        places = np.searchsorted(segment.t, block.t[some][used])
        states = np.stack([x[places] for x in (segment.q, segment.qd, segment.qdd)], axis=1)
        found = []
        for kind in range(3):
            for joint in range(linear.joints.n):
                shifted = states.copy()
                shifted[:, kind, joint] += STEP
                back = states.copy()
                back[:, kind, joint] -= STEP
                found.append((linear.regressor(*np.moveaxis(shifted, 1, 0), loaded=segment.loaded)
                              - linear.regressor(*np.moveaxis(back, 1, 0), loaded=segment.loaded)
                              )[:, :, kept] / (2 * STEP))
        parts.append((block.w[some][used][:, :, kept], block.tau[some][used],
                      np.stack(found, axis=1)))
        deviations.append(np.concatenate([
            ((noisy - smooth) ** 2).mean(axis=0) for noisy, smooth in zip(
                (segment.q, segment.qd, segment.qdd), segment.smooth, strict=True)]))
    w, tau, slopes = (np.concatenate([part[j] for part in parts]) for j in range(3))
    return w, tau, slopes, np.sqrt(np.mean(deviations, axis=0))[:, None]
