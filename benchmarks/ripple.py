"""A strict rule for torque ripple: `python benchmarks/ripple.py`, with a folder: on public logs.

Torque ripple appears as lines in the spectrum of a joint's residual over its angle. Lines are
chosen on the data of the fit alone, and judged on held-out data. The best of hundreds of harmonics
explains something of any residual, so that a line must gain more than the best line gains by
chance.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np
from gear_terms import measured, public

import robodyn_ros as rd

LINES = 3  # largest number of lines of a joint
HIGHEST = 420  # periods a turn of the joint; motors turn up to 200 times
THIRDS = 3  # parts of a single log, each of which is left out as a whole
MOST_SAMPLES = 3000
SHIFTS = 20  # of the residual against the angle, which show what is gained by chance
NEGLIGIBLE = 0.02  # fraction of the squared residual: 1 % of the error
RIDGE = 1e-9


class Line(NamedTuple):
    """A torque ``sine sin(harmonic q) + cosine cos(harmonic q)``, N m."""

    harmonic: int
    sine: float
    cosine: float

    def torque(self, q):
        """Return the torque at positions of the joint."""
        return self.sine * np.sin(self.harmonic * q) + self.cosine * np.cos(self.harmonic * q)


class Found(NamedTuple):
    """A line, the fraction by which it lowers the squared residual of left-out data, and chance.

    Chance is the largest such fraction of any line for residuals shifted against the angle.
    """

    line: Line
    gain: float
    chance: float


def lines_of(angles, residuals):
    """Return the lines of one joint's residual, the strongest first.

    Each group of the data is left out once: the sine and the cosine are fitted to the others and
    judged on this group. A line is added if no group is predicted worse, and if its gain over all
    groups exceeds the gain by chance by 2 % of the squared residual, which is 1 % of the error.
    The gain by chance is that of the best harmonic for residuals that are shifted in time against
    the angle: they keep their spectrum, but no longer depend on the angle. Harmonics of which the
    joint does not cover a whole period are not tried.

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
    count = THIRDS if len(angles) == 1 else len(angles)
    edges = np.linspace(0, len(q), count + 1).astype(int) if len(angles) == 1 else \
        np.concatenate([[0], np.cumsum([len(x) for x in angles])])
    first = int(np.ceil(2 * np.pi / max(np.ptp(q), RIDGE)))
    found = []
    if first > HIGHEST or len(q) < 2 * HIGHEST:
        return found
    search = _Search(q, edges, first)
    while len(found) < LINES:
        line = search.best(e, [one.line.harmonic for one in found])
        if line is None:
            break
        found.append(line)
        e = e - line.line.torque(q)
    return found


class _Search:
    """The columns of all harmonics, and their Gram matrices, which all residuals share."""

    def __init__(self, q, edges, first):
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

    def best(self, e, taken):
        """Return the best line of a residual; None if its gain may be due to chance."""
        gains, values = self._gains(e)
        gains[np.isin(self.harmonics, taken)] = -np.inf
        place, chance = int(np.argmax(gains)), 0.0
        for shift in np.linspace(0.05, 0.95, SHIFTS):
            if gains[place] < chance + NEGLIGIBLE:
                return None
            chance = max(chance, float(self._gains(np.roll(e, int(shift * len(e))))[0].max()))
        if gains[place] < chance + NEGLIGIBLE:
            return None
        return Found(Line(int(self.harmonics[place]), *values[place].tolist()),
                     float(gains[place]), chance)

    def _gains(self, e):
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


def _solved(gram, product):
    """Return the solutions of many equations with two unknowns."""
    (a, b), (c, d) = np.moveaxis(gram, 0, 2)
    size = (a + d) * RIDGE
    a, d = a + size, d + size
    x, y = product.T
    return np.asarray(np.stack([d * x - b * y, a * y - c * x], axis=1)
                      / (a * d - b * c)[:, None])


def judged(result, held_out):
    """Return the found lines of each joint, and the change of the held-out raw error."""
    fit, other = result.training_, rd.validate(result, held_out)
    rest = [[m - p for m, p in zip(one.measured, one.predicted, strict=True)]
            for one in (fit, other)]
    found, before, after = {}, 0.0, 0.0
    for j, name in enumerate(result.model.joint_names):
        lines = lines_of([q[:, j] for q in fit.q], [e[:, j] for e in rest[0]])
        if lines:
            found[name] = [one.line for one in lines]
        for q, e in zip(other.q, rest[1], strict=True):
            left = e[:, j] - sum(one.line.torque(q[:, j]) for one in lines)
            before, after = before + e[:, j] @ e[:, j], after + left @ left
    return found, np.sqrt(after / before) - 1


def ripple(folder=None):
    """Print the table."""
    print('| robot | lines: periods a turn and amplitude | held-out error |\n|---|---|---|')
    for name, model, fits, held_out, options in public(folder) if folder else measured():
        found, change = judged(rd.identify(model, fits, **options), held_out)
        print(f'| {name} | ' + ('; '.join(
            f'{joint}: {one.harmonic}, {np.hypot(one.sine, one.cosine):.2g} N m'
            for joint, lines in found.items() for one in lines) or 'none')
            + f' | {change:+.1%} |', flush=True)


if __name__ == '__main__':
    ripple(*sys.argv[1:])
