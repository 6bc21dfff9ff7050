"""Optimality criteria of a motion, functions of its base observation matrix (Kolyubin 5.14-5.16).

Every criterion is a function of the singular values of W, so its gradient with respect to W has
the form ``W V f V'`` with the right singular vectors V and a diagonal matrix f.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from robodyn_ros.errors import UnknownNameError
from robodyn_ros.excitation.fourier import Basis, Motion
from robodyn_ros.identification.base_parameters import BaseParameters
from robodyn_ros.identification.linear_model import LinearModel
from robodyn_ros.numerics import safe_divide
from robodyn_ros.spatial import Array

CRITERIA = ('condition', 'determinant')
SCALINGS = ('columns', 'none')
SHARPNESS = 8  # the smooth condition number: the 8-norm of sigma times that of 1 / sigma


class Value(NamedTuple):
    """A criterion to minimise, and its gradient with respect to x, shape (1 + free, n)."""

    value: float
    gradient: Array


class Criterion:
    """A criterion of the motion's observation matrix.

    Parameters
    ----------
    linear : LinearModel
        The model to identify, with friction whose sign function is smooth.
    base : BaseParameters
        Its base parameters.
    basis : Basis
        The basis of the motion.
    name : str
        ``condition``: logarithm of the condition number; ``determinant``:
        -log det W'W over the number of base parameters.
    scaling : str
        ``columns``: for the condition number, the columns of W are scaled to equal norm, as for
        that of an estimate; ``none``: they are not scaled.
    noise : ndarray, shape (rows,)
        Standard deviation of the torque of each row, N m or N; its inverse is the row's weight.

    Raises
    ------
    UnknownNameError
        There is no such criterion or scaling.

    Notes
    -----
    If the linear model has a payload, the motion counts twice: without and with the payload.
    """

    def __init__(self, linear: LinearModel, base: BaseParameters, basis: Basis, name: str,
                 scaling: str, noise: Array):
        if name not in CRITERIA:
            raise UnknownNameError('criterion', name, CRITERIA)
        if scaling not in SCALINGS:
            raise UnknownNameError('scaling', scaling, SCALINGS)
        self.linear, self.base, self.basis = linear, base, basis
        self.name, self.scaling, self.noise = name, scaling, noise
        self.loads = (False,) if linear.payload is None else (False, True)

    def matrix(self, motion: Motion) -> Array:
        """Return the weighted base observation matrix of all runs, shape (runs N rows, b)."""
        return self._weighted(motion, self.noise)

    def _weighted(self, motion: Motion, noise: Array) -> Array:
        runs = [self.linear.regressor(motion.q, motion.qd, motion.qdd, loaded=loaded)[
            :, :, self.base.kept] / noise[:, None] for loaded in self.loads]
        return np.concatenate(runs).reshape(-1, self.base.count)

    def condition(self, motion: Motion) -> float:
        """Return the condition number of the scaled matrix."""
        w = self.matrix(motion)
        if self.scaling == 'columns':
            w = safe_divide(w, np.linalg.norm(w, axis=0))
        values = np.linalg.svd(w, compute_uv=False)
        return float(safe_divide(values[0], values[-1], at_zero=np.inf))

    def __call__(self, motion: Motion) -> Value:
        """Return value and gradient at a motion of the basis."""
        w = self.matrix(motion)
        lengths = np.ones(w.shape[1])
        if self.scaling == 'columns' and self.name == 'condition':
            lengths = np.maximum(np.linalg.norm(w, axis=0), 1e-12)
        scaled = w / lengths
        squares, vectors = np.linalg.eigh(scaled.T @ scaled)
        squares = np.maximum(squares, 1e-14 * squares[-1])
        if self.name == 'determinant':
            value = float(-np.log(squares).sum()) / len(squares)
            slope = -2 / squares / len(squares)  # d value / d sigma, over sigma
        else:
            p = SHARPNESS
            singular = np.sqrt(squares)
            high, low = (singular / singular[-1]) ** p, (singular[0] / singular) ** p
            value = float(np.log(singular[-1] / singular[0])
                          + (np.log(high.sum()) + np.log(low.sum())) / p)
            slope = (high / high.sum() - low / low.sum()) / squares
        gradient = scaled @ (vectors * slope) @ vectors.T
        if self.scaling == 'columns' and self.name == 'condition':
            along = (gradient * scaled).sum(axis=0)
            gradient = (gradient - scaled * along) / lengths
        size, rows = len(motion.q), self.linear.rows
        pulled = np.zeros((3, *motion.q.shape))
        for loaded, part in zip(self.loads, gradient.reshape(len(self.loads), size, rows, -1),
                                strict=True):
            g = np.zeros((size, rows, len(self.linear.columns)))
            g[:, :, self.base.kept] = part / self.noise[:, None]
            pulled += self.linear.pullback(motion.q, motion.qd, motion.qdd, g, loaded=loaded)
        return Value(value, self.basis.pull(pulled[0], pulled[1], pulled[2]))

    def deviations(self, motion: Motion, noise: Array, repeats: float = 1.0) -> Array:
        """Return the standard deviation of each base parameter for white torque noise, shape (b,).

        Parameters
        ----------
        motion : Motion
            Samples with independent noise.
        noise : ndarray, shape (rows,)
            Standard deviation of the torque of one sample, N m or N.
        repeats : float
            Number of times that the motion is measured.
        """
        w = self._weighted(motion, noise)
        lengths = np.linalg.norm(w, axis=0)
        scaled = safe_divide(w, lengths)
        inverse = np.linalg.pinv(scaled.T @ scaled)
        deviation = np.sqrt(np.maximum(np.diag(inverse), 0) / repeats)
        return np.asarray(safe_divide(deviation, lengths, at_zero=np.inf))
