"""Total least squares: errors in the regressor as well as in the torque."""

from __future__ import annotations

import numpy as np

from robodyn_ros.identification.estimation import Estimate
from robodyn_ros.identification.methods.problem import Problem
from robodyn_ros.spatial import Array

EXACT = 1e-6  # smallest error of a column, relative to its length


def total_least_squares(problem: Problem) -> Estimate:
    """Estimate by total least squares (Golub and Van Loan 1980, doi 10.1137/0717073).

    Columns are first transformed to uncorrelated errors of equal size. The errors of the regressor
    are its differences from the regressor of the motion with little noise. Those of the torque are
    what remains of the residuals of weighted least squares without the errors of the regressor.
    """
    start, kept = problem.start, problem.kept
    small = (problem.factors[:, :, [*kept, -1]] / start.sigma[:, None, None]).reshape(
        -1, len(kept) + 1)
    lengths = np.linalg.norm(small[:, :-1], axis=0)
    errors = _column_errors(problem) + np.diag((EXACT * lengths) ** 2)
    passed_on = float(start.values @ errors @ start.values)  # into the residual
    whole = problem.count.sum()
    scale = np.eye(len(kept) + 1)
    scale[:-1, :-1] = np.linalg.cholesky(errors).T
    scale[-1, -1] = np.sqrt(max(whole - passed_on, 0.1 * whole))
    last = np.linalg.solve(scale, np.linalg.svd(small @ np.linalg.inv(scale))[2][-1])
    return problem.with_values(-last[:-1] / last[-1])


def _column_errors(problem: Problem) -> Array:
    """Return the Gram matrix of the weighted errors of the base parameters' columns, (b, b)."""
    gram = np.zeros((len(problem.kept), len(problem.kept)))
    pairs = zip(problem.observations.blocks(), problem.low_noise.blocks(), strict=True)
    for block, other in pairs:
        wrong = (block.w - other.w)[:, :, problem.kept] * block.used[:, :, None] \
            / problem.start.sigma[:, None]
        flat = wrong.reshape(-1, len(problem.kept))
        gram += flat.T @ flat
    return gram
