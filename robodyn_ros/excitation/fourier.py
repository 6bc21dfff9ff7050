"""`Excitation`: a periodic motion as a finite Fourier series, at rest at both ends.

Kolyubin 5.13.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.linalg
import yaml
from numpy.typing import ArrayLike

from robodyn_ros.description.section import Section
from robodyn_ros.errors import LogError, ShapeError, UnknownNameError, ValueRangeError
from robodyn_ros.packages import package
from robodyn_ros.spatial import Array

if TYPE_CHECKING:
    from robodyn_ros.excitation.constraints import Limits
    from robodyn_ros.model import Model

SAMPLES_PER_HARMONIC = 100  # samples of one period
LONGEST_PERIOD, MOST_PERIODS = 1e4, 9999  # s, and number; larger values are mistakes
_KEYS = ('joint_names', 'period', 'periods', 'centre', 'sine', 'cosine', 'facts')


class Motion(NamedTuple):
    """Positions and derivatives, shape (N, n) each; rad or m, and per s, s^2, s^3."""

    q: Array
    qd: Array
    qdd: Array
    qddd: Array


@dataclass(frozen=True, eq=False)
class Excitation:
    """A motion for identification.

    ``q_j(t) = centre_j + sum_k sine_kj sin(k w t) + cosine_kj cos(k w t)``, w = 2 pi / period.

    Attributes
    ----------
    joint_names : tuple of str
        Names of the n joints.
    period : float
        Period, s.
    periods : int
        Number of periods that are played.
    centre : ndarray, shape (n,)
        Mean positions, rad or m.
    sine, cosine : ndarray, shape (K, n)
        Coefficients, rad or m.
    facts : dict
        Facts about its optimisation: criterion, scaling, and the values that were reached.
    """

    joint_names: tuple[str, ...]
    period: float
    periods: int
    centre: Array
    sine: Array
    cosine: Array
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def harmonics(self) -> int:
        """Number K of harmonics."""
        return len(self.sine)

    @property
    def duration(self) -> float:
        """Duration of all periods, s."""
        return self.period * self.periods

    def at(self, t: ArrayLike) -> Motion:
        """Return the motion at given times; the robot is at rest before and after it.

        Parameters
        ----------
        t : array-like, shape () or (N,)
            Times from the start, s.

        Returns
        -------
        Motion
            Arrays of shape (n,) or (N, n).
        """
        time = np.asarray(t, np.float64)
        inside = (time >= 0) & (time <= self.duration)
        w = 2 * np.pi / self.period * np.arange(1, self.harmonics + 1)
        phase = np.multiply.outer(np.clip(time, 0, self.duration), w)
        s, c = np.sin(phase), np.cos(phase)
        q = self.centre + s @ self.sine + c @ self.cosine
        moving = np.where(inside, 1.0, 0.0)[..., None]
        qd = (c * w) @ self.sine - (s * w) @ self.cosine
        qdd = -(s * w**2) @ self.sine - (c * w**2) @ self.cosine
        qddd = -(c * w**3) @ self.sine + (s * w**3) @ self.cosine
        return Motion(q, qd * moving, qdd * moving, qddd * moving)

    def samples(self, rate: float) -> tuple[Array, Motion]:
        """Return times (N,) and the motion at a rate (Hz), both ends included.

        Raises
        ------
        ValueRangeError
            The rate is not a number above 0.
        """
        if not (np.isfinite(rate) and rate > 0):
            raise ValueRangeError('rate', rate, 'a number > 0 Hz')
        t = np.linspace(0, self.duration, int(np.ceil(self.duration * rate)) + 1)
        return t, self.at(t)

    def one_period(self) -> Motion:
        """Return the motion of one period at samples from which its ranges can be read."""
        return self.at(np.linspace(0, self.period, SAMPLES_PER_HARMONIC * self.harmonics))

    def in_order_of(self, names: tuple[str, ...]) -> Excitation:
        """Return this excitation with its joints in the order of these names.

        Raises
        ------
        UnknownNameError
            The names are not those of its joints.
        """
        for name in {*names} ^ {*self.joint_names}:
            raise UnknownNameError('joint of the excitation', name, sorted(self.joint_names))
        pick = [self.joint_names.index(name) for name in names]
        return replace(self, joint_names=tuple(names), centre=self.centre[pick],
                       sine=self.sine[:, pick], cosine=self.cosine[:, pick])

    def to_text(self) -> str:
        """Return a summary as text."""
        facts = self.facts
        played = 'once' if self.periods == 1 else f'{self.periods} times'
        lines = [f'{self.harmonics} harmonics, a period of {self.period:.4g} s, played {played}']
        if 'condition' in facts:
            lines += [f'condition number {facts["condition"]:.4g} for '
                      f'{facts["base_parameters"]} base parameters',
                      f'(kind: {facts["kind"]}, scaling: {facts["scaling"]})']
        if facts.get('check'):
            check = facts['check']
            reserve = f'{check["reserve"]:.4g} m' if check.get('reserve_unit') == 'm' else \
                f'{check["reserve"]:.2%}'
            lines += [f'all limits were checked at {check["rate"]:g} Hz; the closest is',
                      f'{check["closest"]} with a reserve of {reserve}']
        if 'mean_torque' in facts:
            lines.append('mean absolute torques: '
                         + ' '.join(f'{value:.3g}' for value in facts['mean_torque']))
        if 'evaluations' in facts:
            lines.append(f'{facts["evaluations"]} motions were tried in '
                         f'{facts["seconds"]:.1f} s')
        return '\n'.join([*lines, *facts.get('notes', ())])

    def plot(self, model: Model, limits: Limits | None = None) -> Any:
        """Return a matplotlib figure: the motion against its limits, and the accuracy to expect.

        Parameters
        ----------
        model : Model
            The nominal robot.
        limits : Limits, optional
            Limits besides those of the model.
        """
        return package('robodyn_ros.report.excitation_plot').excitation_figure(
            model, self, limits)

    def to_yaml(self) -> str:
        """Return the excitation as text that `from_yaml` reads."""
        return yaml.safe_dump({
            'joint_names': list(self.joint_names), 'period': float(self.period),
            'periods': int(self.periods), 'centre': self.centre.tolist(),
            'sine': self.sine.tolist(), 'cosine': self.cosine.tolist(), 'facts': self.facts,
        }, sort_keys=False, width=100)

    @classmethod
    def from_yaml(cls, source: str | Path) -> Excitation:
        """Read an excitation that was written by `to_yaml`.

        Parameters
        ----------
        source : str or Path
            The text itself, or the path of a file.

        Raises
        ------
        LogError
            A value is missing or has the wrong shape.
        """
        name = str(source) if isinstance(source, Path) else 'excitation'
        valid = 'a file that was written by `robodyn excite`'
        try:
            content = Section.read(source, name, _KEYS, error=LogError) \
                if isinstance(source, Path) else \
                Section.parse(source, name, _KEYS, error=LogError)
            centre = content.array('centre', (None,))
            sine = content.array('sine', (None, len(centre)))
            cosine = content.array('cosine', sine.shape)
            names = content.names('joint_names')
            if len(names) != len(centre):
                raise content.fail('joint_names', f'names {len(names)} joints',
                                   f'{len(centre)}, as many as centre has numbers')
            facts = content.section('facts')
            return cls(names, content.number('period', above=0, most=LONGEST_PERIOD),
                       content.integer('periods', least=1, most=MOST_PERIODS), centre, sine,
                       cosine, {key: facts[key] for key in facts})
        except (LogError, UnknownNameError) as error:
            raise LogError(f'is not an excitation: {error}', source=name, valid=valid) from None


class Basis:
    """The Fourier series at sample times as matrices: ``q = centre + positions @ x``.

    Each joint has a column of x with 2 K - 2 free numbers. For all their values, velocity and
    acceleration are zero at the start and end of a period.

    Parameters
    ----------
    period : float
        Period, s.
    harmonics : int
        Number K of harmonics, at least 2.
    samples : int
        Number of samples of one period.

    Raises
    ------
    ValueRangeError
        There are fewer than two harmonics.
    """

    def __init__(self, period: float, harmonics: int, samples: int):
        if harmonics < 2:
            raise ValueRangeError('harmonics', harmonics, 'at least 2, to start at rest')
        self.period, self.harmonics, self.samples = period, harmonics, samples
        k = np.arange(1, harmonics + 1)
        w = 2 * np.pi / period * k
        t = np.arange(samples) * period / samples
        s, c = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
        # coefficients fall with the order of a harmonic: scale them to a similar size
        self._scale = np.concatenate([1 / k, 1 / k])
        at_rest = np.zeros((2, 2 * harmonics))
        at_rest[0, :harmonics] = w * self._scale[:harmonics]
        at_rest[1, harmonics:] = w**2 * self._scale[harmonics:]
        free = scipy.linalg.null_space(at_rest / np.linalg.norm(at_rest, axis=1)[:, None])
        self._free = free * self._scale[:, None]
        self.positions = np.hstack([s, c]) @ self._free
        self.velocities = np.hstack([c * w, -s * w]) @ self._free
        self.accelerations = np.hstack([-s * w**2, -c * w**2]) @ self._free
        self.jerks = np.hstack([-c * w**3, s * w**3]) @ self._free
        # largest factor by which a trigonometric polynomial of order K can exceed its samples
        self.between = 1 / np.cos(np.pi * harmonics / samples)

    @property
    def free(self) -> int:
        """Number of coefficients of each joint besides its centre, 2 K - 2."""
        return self._free.shape[1]

    def motion(self, x: Array) -> Motion:
        """Return the motion at the samples for x, shape (1 + free, n), with the centre first.

        Raises
        ------
        ShapeError
            x has another shape.
        """
        if x.shape[0] != 1 + self.free:
            raise ShapeError('x', f'shape {x.shape}', f'({1 + self.free}, n)')
        return Motion(x[0] + self.positions @ x[1:], self.velocities @ x[1:],
                      self.accelerations @ x[1:], self.jerks @ x[1:])

    def pull(self, q: Array, qd: Array, qdd: Array, qddd: Array | None = None) -> Array:
        """Return the gradient of a scalar w.r.t. x, (1 + free, n), from that w.r.t. motion."""
        inner = self.positions.T @ q + self.velocities.T @ qd + self.accelerations.T @ qdd
        if qddd is not None:
            inner = inner + self.jerks.T @ qddd
        return np.vstack([q.sum(axis=0), inner])

    def excitation(self, x: Array, joint_names: tuple[str, ...], periods: int,
                   facts: dict[str, Any]) -> Excitation:
        """Return the excitation with the coefficients x."""
        coefficients = self._free @ x[1:]
        return Excitation(joint_names, self.period, periods, x[0].copy(),
                          coefficients[:self.harmonics], coefficients[self.harmonics:], facts)
