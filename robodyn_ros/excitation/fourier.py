"""`Excitation`: a periodic motion of finite Fourier series that starts and ends at rest (5.13)."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import yaml
from numpy.typing import ArrayLike

from robodyn_ros.description import Array
from robodyn_ros.errors import LogError, ShapeError, ValueRangeError


class Motion(NamedTuple):
    """Positions and derivatives, shape (N, n) each; rad or m, and per s, s^2, s^3."""

    q: Array
    qd: Array
    qdd: Array
    qddd: Array


@dataclass(frozen=True, eq=False)
class Excitation:
    """A motion for identification, ready to play.

    ``q_j(t) = centre_j + sum_k sine_kj sin(k w t) + cosine_kj cos(k w t)``, w = 2 pi / period.

    Attributes
    ----------
    joint_names : tuple of str
        The n joints.
    period : float
        s.
    periods : int
        How often it is played.
    centre : ndarray, shape (n,)
        rad or m.
    sine, cosine : ndarray, shape (K, n)
        rad or m.
    facts : dict
        How it was found: criterion, scaling, values reached.
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
        """K."""
        return len(self.sine)

    @property
    def duration(self) -> float:
        """All periods, s."""
        return self.period * self.periods

    def at(self, t: ArrayLike) -> Motion:
        """Return the motion at times; before and after it the robot rests.

        Parameters
        ----------
        t : array-like, shape () or (N,)
            s, from the start.

        Returns
        -------
        Motion
            Of shape (n,) or (N, n).
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
        """Return times (N,) and the motion at a rate (Hz), both ends included."""
        if not (np.isfinite(rate) and rate > 0):
            raise ValueRangeError('rate', rate, 'a number > 0 Hz')
        t = np.linspace(0, self.duration, int(np.ceil(self.duration * rate)) + 1)
        return t, self.at(t)

    def to_yaml(self) -> str:
        """Return it as text that `from_yaml` reads."""
        return yaml.safe_dump({
            'joint_names': list(self.joint_names), 'period': float(self.period),
            'periods': int(self.periods), 'centre': self.centre.tolist(),
            'sine': self.sine.tolist(), 'cosine': self.cosine.tolist(), 'facts': self.facts,
        }, sort_keys=False, width=100)

    @classmethod
    def from_yaml(cls, source: str | Path) -> Excitation:
        """Read what `to_yaml` wrote.

        Parameters
        ----------
        source : str or Path
            The text, or the path of a file.

        Raises
        ------
        LogError
            Something is missing or of the wrong shape.
        """
        name = str(source) if isinstance(source, Path) else 'excitation'
        try:
            text = source.read_text(encoding='utf-8') if isinstance(source, Path) else source
            content = yaml.safe_load(text)
            centre, sine, cosine = (np.array(content[key], np.float64)
                                    for key in ('centre', 'sine', 'cosine'))
            made = cls(tuple(map(str, content['joint_names'])), float(content['period']),
                       int(content['periods']), centre, sine, cosine,
                       dict(content.get('facts') or {}))
        except (OSError, yaml.YAMLError, KeyError, TypeError, ValueError) as error:
            raise LogError(f'is no excitation: {type(error).__name__}: {error}', source=name,
                           valid='what `robodyn excite` writes') from None
        n = len(made.joint_names)
        finite = all(np.isfinite(x).all() for x in (made.centre, made.sine, made.cosine))
        if made.centre.shape != (n,) or made.sine.ndim != 2 or made.sine.shape[1] != n or \
                made.sine.shape != made.cosine.shape or not finite or \
                not 0 < made.period < 1e4 or not 1 <= made.periods < 1e4:
            raise LogError('is no excitation: shapes or numbers do not fit', source=name,
                           valid='what `robodyn excite` writes')
        return made


class Basis:
    """The series at sample times as matrices: ``q = centre + positions @ x``, and derivatives.

    A column of x has 2 K - 2 free numbers for each joint, which leave velocity and acceleration
    zero at the start and end of a period.

    Parameters
    ----------
    period : float
        s.
    harmonics : int
        K, at least 2.
    samples : int
        Over one period.
    """

    def __init__(self, period: float, harmonics: int, samples: int):
        if harmonics < 2:
            raise ValueRangeError('harmonics', harmonics, 'at least 2, to start at rest')
        self.period, self.harmonics, self.samples = period, harmonics, samples
        k = np.arange(1, harmonics + 1)
        w = 2 * np.pi / period * k
        t = np.arange(samples) * period / samples
        s, c = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
        # numbers of about 1 for every harmonic: coefficients fall with its order
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
        # between samples a trigonometric polynomial of order K is at most this much larger
        self.between = 1 / np.cos(np.pi * harmonics / samples)

    @property
    def free(self) -> int:
        """Free numbers of each joint, the centre not counted: 2 K - 2."""
        return self._free.shape[1]

    def motion(self, x: Array) -> Motion:
        """Motion of the samples; x of shape (1 + free, n), the centre first."""
        if x.shape[0] != 1 + self.free:
            raise ShapeError('x', f'shape {x.shape}', f'({1 + self.free}, n)')
        return Motion(x[0] + self.positions @ x[1:], self.velocities @ x[1:],
                      self.accelerations @ x[1:], self.jerks @ x[1:])

    def pull(self, q: Array, qd: Array, qdd: Array, qddd: Array | None = None) -> Array:
        """Gradient by x of a scalar with these gradients by the motion; shape (1 + free, n)."""
        inner = self.positions.T @ q + self.velocities.T @ qd + self.accelerations.T @ qdd
        if qddd is not None:
            inner = inner + self.jerks.T @ qddd
        return np.vstack([q.sum(axis=0), inner])

    def excitation(self, x: Array, joint_names: tuple[str, ...], periods: int,
                   facts: dict[str, Any]) -> Excitation:
        """Return the series of x."""
        coefficients = self._free @ x[1:]
        return Excitation(joint_names, self.period, periods, x[0].copy(),
                          coefficients[:self.harmonics], coefficients[self.harmonics:], facts)
