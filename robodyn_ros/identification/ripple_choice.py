"""Finds torque ripple: lines in what a fit leaves of a joint's torque, by the joint's angle.

Gears and motors repeat their torque ripple with every turn of the motor or of the wave generator,
thus an integer number of times a turn of the joint. The best of hundreds of harmonics explains
something of any residual, so that a line must gain more than the best line gains by chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from robodyn_ros.description.ripple import LINES, RippleLine
from robodyn_ros.identification.observations import Observations
from robodyn_ros.model.kinds import JOINT_TORQUE_KINDS
from robodyn_ros.spatial import Array

HIGHEST = 420  # periods a turn of the joint; motors turn up to 200 times
THIRDS = 3  # parts of a single log, each of which is left out as a whole
MOST_SAMPLES = 3000
SHIFTS = 20  # of the residual against the angle, which show what is gained by chance
NEGLIGIBLE = 0.02  # fraction of the squared residual: 1 % of the error
RIDGE = 1e-9


class Found(NamedTuple):
    """A line, the fraction of the squared residual that it gains on left-out data, and chance."""

    line: RippleLine
    gain: float
    chance: float


def with_ripple(observations: Observations, theta: Array, notes: list[str]) -> Observations:
    """Return observations whose linear model has the torque ripple that the data show.

    Closed loops and prismatic joints have none, nor have kinds that explain motor torques.

    Parameters
    ----------
    observations : Observations
        The data of the fit.
    theta : ndarray, shape (p,)
        The estimate, whose residual is searched.
    notes : list of str
        Remarks, to which what was found is added.
    """
    linear, model = observations.linear, observations.linear.model
    if linear.kind not in JOINT_TORQUE_KINDS or linear.loops is not None:
        return observations
    logs = _by_log(observations, theta)
    found: dict[int, tuple[RippleLine, ...]] = {}
    for joint, name in enumerate(model.joint_names):
        body = model.body_joints.index(name)
        if body not in linear.bodies or model.prismatic[body] \
                or not observations.torques_of[joint]:
            continue
        lines = lines_of([q[:, joint] for q, _ in logs], [e[:, joint] for _, e in logs])
        if lines:
            found[body] = tuple(one.line for one in lines)
            notes.append(f'torque ripple of {name}: ' + '; '.join(
                f'{np.hypot(*one.line[1:]):.3g} N m, {one.line.harmonic} periods a turn (gain of '
                f'{one.gain:.1%} of the squared residual on data left out of the fit, '
                f'{one.chance:.1%} by chance)' for one in lines))
    return observations.with_ripple(found) if found else observations


def _by_log(observations: Observations, theta: Array) -> list[tuple[Array, Array]]:
    """Return positions and residuals of every log, shape (K, n) each, at evenly spread samples."""
    logs: dict[str, list[tuple[Array, Array]]] = {}
    total = sum(np.count_nonzero(segment.measured) for segment in observations.segments)
    for k, segment in enumerate(observations.segments):
        places = np.flatnonzero(segment.measured)[::max(1, total // MOST_SAMPLES)]
        residual = observations.torque(k)[places] - observations.regressor(k, places) @ theta
        logs.setdefault(segment.source, []).append((segment.q[places], residual))
    return [(np.concatenate([q for q, _ in pieces]), np.concatenate([e for _, e in pieces]))
            for pieces in logs.values()]


def lines_of(angles: Sequence[Array], residuals: Sequence[Array]) -> list[Found]:
    """Return the lines of one joint's residual, the strongest first.

    The sine and the cosine are fitted without each group of the data in turn, and judged there.
    A line joins if no group is predicted worse, and if its gain over all groups exceeds by 2 % of
    the squared residual, which is 1 % of the error, what the best line gains by chance. Chance is
    the best of all harmonics for residuals that are shifted in time against the angle: they keep
    their spectrum, but lose what belongs to the angle. Harmonics of which the joint does not
    cover a whole period are not tried.

    Parameters
    ----------
    angles : sequence of ndarray, shape (K,)
        Positions of the joint in every log, rad.
    residuals : sequence of ndarray, shape (K,)
        Measured minus predicted torque, N m.
    """
    stride = max(1, sum(map(len, angles)) // MOST_SAMPLES)
    angles, residuals = ([x[::stride] for x in xs] for xs in (angles, residuals))
    q, e = np.concatenate(angles), np.concatenate(residuals)
    if len(q) < 2 * HIGHEST or HIGHEST * np.ptp(q) < 2 * np.pi:
        return []
    if len(angles) == 1:
        edges = np.linspace(0, len(q), THIRDS + 1).astype(int)
    else:
        edges = np.cumsum([0, *map(len, angles)])
    search = _Search(q, edges, first=int(np.ceil(2 * np.pi / np.ptp(q))))
    found: list[Found] = []
    while len(found) < LINES:
        line = search.best(e, [one.line.harmonic for one in found])
        if line is None:
            break
        found.append(line)
        e = e - line.line.torque(q)
    return found


class _Search:
    """The columns of all harmonics, and their Gram matrices, which all residuals share."""

    def __init__(self, q: Array, edges: NDArray[np.int_], first: int):
        self.harmonics = np.arange(first, HIGHEST + 1)
        self.waves = np.empty((len(self.harmonics), len(q)), complex)
        self.waves[0] = np.exp(1j * first * q)
        turn = np.exp(1j * q)
        for k in range(1, len(self.waves)):  # many times faster than the exponential of each
            np.multiply(self.waves[k - 1], turn, out=self.waves[k])
        self.edges = edges
        double = np.add.reduceat(self.waves**2, edges[:-1], axis=1).T  # groups, harmonics
        size = np.diff(edges)[:, None]
        self.grams = 0.5 * np.moveaxis(np.array(
            [[size - double.real, double.imag], [double.imag, size + double.real]]),
            (0, 1), (2, 3))

    def best(self, e: Array, taken: Sequence[int]) -> Found | None:
        """Return the best line of a residual; None if it may be one by chance."""
        gains, values = self._gains(e)
        gains[np.isin(self.harmonics, taken)] = -np.inf
        place, chance = int(np.argmax(gains)), 0.0
        for shift in np.linspace(0.05, 0.95, SHIFTS):
            chance = max(chance, float(self._gains(np.roll(e, int(shift * len(e))))[0].max()))
            if gains[place] < chance + NEGLIGIBLE:
                return None
        return Found(RippleLine(int(self.harmonics[place]), *values[place].tolist()),
                     float(gains[place]), chance)

    def _gains(self, e: Array) -> tuple[Array, Array]:
        """Return the gain of every harmonic on left-out groups, and its fit to all groups."""
        parts = [self.waves[:, a:b] @ e[a:b] for a, b in zip(self.edges, self.edges[1:],
                                                             strict=False)]
        products = np.array([[x.imag, x.real] for x in parts]).transpose(0, 2, 1)
        gram, product = self.grams.sum(axis=0), products.sum(axis=0)
        gains = []
        for a, b in zip(self.grams, products, strict=True):
            values = _solved(gram - a, product - b)
            gains.append(2 * (values * b).sum(axis=1)
                         - np.einsum('hi,hij,hj->h', values, a, values))
        every = np.where(np.min(gains, axis=0) >= 0, np.sum(gains, axis=0), -np.inf)
        return every / max(float(e @ e), RIDGE), _solved(gram, product)


def _solved(gram: Array, product: Array) -> Array:
    """Return the solutions of many equations with two unknowns."""
    (a, b), (c, d) = np.moveaxis(gram, 0, 2)
    size = (a + d) * RIDGE
    a, d = a + size, d + size
    x, y = product.T
    return np.asarray(np.stack([d * x - b * y, a * y - c * x], axis=1)
                      / (a * d - b * c)[:, None])
