"""`ModelHealth`: whether the identified model still fits a robot in free motion.

The residual of the momentum observer is averaged over windows of 0.1 s. The rms of these means in
the validation of the identification is the expected residual. A `DriftMemory` of ten minutes of
motion attributes the residual to friction, offset and gravity; one of eight hours is shown beside
it. A change is reported when it exceeds the largest one that a residual of MARGIN times the
expected one could imitate, see `Drift.sensitivity`, whatever the motion and the form of the
residual.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np

from robodyn_ros.description.section import Section
from robodyn_ros.dynamics import RobotDynamics
from robodyn_ros.observation.contacts import NONE
from robodyn_ros.observation.drift import TERMS, Drift, DriftMemory
from robodyn_ros.observation.momentum import MomentumObserver
from robodyn_ros.observation.windows import WINDOW, Window, Windows
from robodyn_ros.spatial import Array

MEMORIES = {'minutes': 600.0, 'days': 8 * 3600.0}  # s of a joint's motion
FEWEST = 60.0  # s of motion before a joint is judged
MARGIN = 1.25  # factor on the expected residual
ENDS = 0.7  # fraction of the bound below which a change ends
LEAST_CHANGE = 0.05  # smallest reported change, as a fraction of the model's friction or gravity
LARGER = 3.0  # factor on the expected residual; above it, an unexplained residual is reported
LEAST_FRICTION = 0.05  # of a change; a model with less friction than that gets no percentage
TOUCHED = 0.1  # weight of a window with a slow contact, which may be a change of friction
KEPT = 20  # number of changes that have ended and are still shown
FORMAT = 1  # version of the stored state's format
SETTLED = 0.3  # s after which the residual of a log has settled
SHORTEST = 3.0  # s of motion that each joint needs for an expected residual
SMALLEST = 1e-6  # N m or N, smallest expected residual
LATEST = 4e9  # s since 1970: the year 2096
RESIDUAL = 'residual'
KINDS = (*TERMS, RESIDUAL)


@dataclass(frozen=True)
class Change:
    """A difference between a joint and its identified model.

    Attributes
    ----------
    joint : str
        The joint.
    kind : str
        ``friction``, ``offset``, ``gravity`` or ``residual``.
    since, until : float
        Time at which it was found, and at which it ended (0: not yet), s since 1970.
    value, largest : float
        The present and the largest value, N m or N; relative to the model for gravity, and to the
        expected residual for ``residual``.
    relative : float
        The friction now, relative to that of the model; 0 if the model has nearly none.
    """

    joint: str
    kind: str
    since: float
    value: float
    largest: float
    relative: float = 0.0
    until: float = 0.0


class ModelHealth:
    """Compares free motion with the identified model; never changes the model.

    Parameters
    ----------
    dynamics : RobotDynamics
        The identified robot.
    expected : ndarray, shape (n,)
        Rms of the residual in the validation, N m or N, see `expected_residual`.
    """

    def __init__(self, dynamics: RobotDynamics, expected: Array):
        self._dynamics, self.expected = dynamics, expected
        self.names = tuple(dynamics.joints.joint_names)
        model = dynamics.model
        self.units = ['N' if model.prismatic[model.body_joints.index(name)] else 'N m'
                      for name in self.names]
        self.memories = {name: DriftMemory(len(self.names), time / WINDOW)
                         for name, time in MEMORIES.items()}
        self._windows = Windows(len(self.names))
        self.changes: tuple[Change, ...] = ()
        self.ended: deque[Change] = deque(maxlen=KEPT)

    def take_over(self, former: ModelHealth) -> None:
        """Continue with the estimates of the same model, for example with another payload."""
        self.memories, self.changes, self.ended = former.memories, former.changes, former.ended

    def update(self, t: float, q: Array, qd: Array, residual: Array, contact: str) -> None:
        """Take another state into account.

        Parameters
        ----------
        t : float
            Time of the state, s.
        q, qd, residual : ndarray, shape (n,)
            Positions (rad or m), velocities, and the residual of the observer (N m or N).
        contact : str
            ``none``, ``intended`` or ``accidental``; an accidental one is not free motion.
        """
        window = self._windows.add(t, q, qd, residual, contact)
        if window is not None and window.moving.any():
            self.add(window)

    def add(self, window: Window) -> None:
        """Take the means of a window into account."""
        direction = np.sign(window.qd)
        friction = self._dynamics.friction(window.qd, window.q) * direction
        regressors = np.stack([direction, window.qd, np.ones_like(direction),
                               self._dynamics.gravity(window.q)], axis=1)
        if not (np.isfinite(regressors).all() and np.isfinite(friction).all()):
            return
        weight = window.moving * (TOUCHED if window.touched else 1.0)
        for memory in self.memories.values():
            memory.add(regressors, -window.residual, friction, weight)

    def judge(self, now: float) -> tuple[Change, ...]:
        """Return the present changes.

        Parameters
        ----------
        now : float
            System time, s since 1970.
        """
        drift = self.memories['minutes'].estimate()
        before = {(one.joint, one.kind): one for one in self.changes}
        found: list[Change] = []
        for k, kind, value, bound in self.excesses(drift):
            name = self.names[k]
            last = before.get((name, kind))
            known = kind == RESIDUAL and any(one.joint == name for one in found)
            if abs(value) > bound * (ENDS if last is not None else 1.0) and not known:
                largest = max(value, last.largest if last else value, key=abs)
                found.append(Change(name, kind, last.since if last else now, value, largest,
                                    self._relative(drift, k) if kind == TERMS[0] else 0.0))
            elif last is not None:
                self.ended.append(replace(last, until=now))
        self.changes = tuple(found)
        return self.changes

    def excesses(self, drift: Drift) -> list[tuple[int, str, float, float]]:
        """Return the joint's index, kind, value and bound of every quantity that is judged."""
        rows: list[tuple[int, str, float, float]] = []
        for k, usual in enumerate(drift.friction):
            if drift.weight[k] * WINDOW < FEWEST:  # nothing is known yet
                rows += [(k, kind, 0.0, np.inf) for kind in KINDS]
                continue
            least = LEAST_CHANGE * abs(usual)
            noise = max(MARGIN * self.expected[k], drift.unexplained[k])
            for index, kind in enumerate(TERMS):
                bound = max(noise * drift.sensitivity[k, index],
                            LEAST_CHANGE if kind == 'gravity' else least)
                rows.append((k, kind, float(drift.values[k, index]), float(bound)))
            rows.append((k, RESIDUAL, float(drift.unexplained[k] / self.expected[k]),
                         float(max(LARGER, least / self.expected[k]))))
        return rows

    def _relative(self, drift: Drift, k: int) -> float:
        value, usual = drift.values[k, 0], drift.friction[k]
        return float(value / usual) if usual > LEAST_FRICTION * abs(value) else 0.0

    # texts ----------------------------------------------------------------------------------

    def text(self, now: float) -> str:
        """Return what differs from the model; empty if nothing does."""
        if not self.changes:
            return ''
        payload = any(one.kind == 'gravity' for one in self.changes)
        return '; '.join(self.sentence(one, now) for one in self.changes) + (
            '; identify again' + (', or tell ~/set_payload what the hand holds' if payload else
                                  ''))

    def sentence(self, one: Change, now: float) -> str:
        """Return a change in words."""
        since = f'since {_clock(one.since, now)}'
        if one.kind == RESIDUAL:
            return (f'joint {one.joint}: residual {one.value:.1f} times that of the validation '
                    f'{since}, not explained by friction, offset or gravity')
        side = 'above' if one.value > 0 else 'below'
        return f'joint {one.joint}: {one.kind} {self._amount(one)} {side} the identified model ' \
               f'{since}'

    def _amount(self, one: Change) -> str:
        part = one.value if one.kind == 'gravity' else one.relative
        if part:
            return f'{abs(part):.0%}'.replace('%', ' %')
        return f'{abs(one.value):.3g} {self.units[self.names.index(one.joint)]}'

    def values(self, now: float) -> dict[str, str]:
        """Return the estimates of each joint, and the changes that have ended, as texts."""
        both = {name: memory.estimate() for name, memory in self.memories.items()}
        found = {f'health {name}': '; '.join(
            f'{memory}: {self._estimate(drift, k)}' for memory, drift in both.items())
            for k, name in enumerate(self.names)}
        if self.ended:
            found['health, ended'] = '; '.join(
                f'{one.joint}: {one.kind} at most {one.largest:+.3g} from '
                f'{_clock(one.since, now)} to {_clock(one.until, now)}' for one in self.ended)
        return found

    def _estimate(self, drift: Drift, k: int) -> str:
        if not drift.weight[k]:
            return 'no free motion yet'
        coulomb, viscous, offset, gravity = drift.coefficients[k]
        unit = self.units[k]
        determined = drift.sensitivity[k] * self.expected[k]
        parts = [f'residual {drift.rms[k] / self.expected[k]:.2f} of the expected '
                 f'{self.expected[k]:.3g} {unit}']
        for index, text in enumerate((
                f'friction {drift.values[k, 0]:+.3g} {unit} of {drift.friction[k]:.3g} (Coulomb '
                f'{coulomb:+.3g}, viscous {viscous:+.3g})', f'offset {offset:+.3g} {unit}',
                f'gravity {gravity:+.1%}')):
            scale = (max(abs(drift.friction[k]), drift.rms[k]), drift.rms[k], 1.0)[index]
            if determined[index] < scale or abs(drift.values[k, index]) > determined[index]:
                parts.append(text)
        return f'{", ".join(parts)} ({drift.weight[k] * WINDOW:.0f} s)'

    # state ----------------------------------------------------------------------------------

    def to_dict(self, model: str) -> dict[str, Any]:
        """Return the state of the health of a model, given by its hash."""
        return {'format': FORMAT, 'model': model, 'joints': list(self.names),
                'memories': {name: one.to_dict() for name, one in self.memories.items()},
                'changes': [_stored(one) for one in self.changes],
                'ended': [_stored(one) for one in self.ended]}

    def restore(self, content: Mapping[str, Any], where: str, model: str) -> bool:
        """Take over the state of `to_dict`; return False if it is that of another model.

        Raises
        ------
        DescriptionError, UnknownNameError
            It is not such a state. The estimates then begin anew.
        """
        section = Section(content, where, ('format', 'model', 'joints', 'memories', 'changes',
                                           'ended'))
        if section.number('format') != FORMAT:
            raise section.fail('format', 'is unknown', str(FORMAT))
        if section.text('model') != model or section.names('joints') != self.names:
            return False
        parts = section.section('memories', MEMORIES)
        fresh = {name: DriftMemory(len(self.names), time / WINDOW)
                 for name, time in MEMORIES.items()}
        for name, one in fresh.items():
            one.restore(parts.section(name, one.to_dict()))
        changes, ended = (self._read(section, key) for key in ('changes', 'ended'))
        self.memories, self.changes = fresh, tuple(changes)
        self.ended.extend(ended)
        return True

    def _read(self, section: Section, key: str) -> list[Change]:
        found = []
        for entry in section.sections(key, Change.__dataclass_fields__)[:len(self.names) * len(
                KINDS) + KEPT]:
            joint, kind = entry.text('joint'), entry.text('kind')
            if joint not in self.names or kind not in KINDS:
                raise entry.fail('kind', f'is {kind!r} of {joint!r}'[:200],
                                 f'one of {", ".join(KINDS)} of a joint of the robot')
            found.append(Change(
                joint, kind, _seconds(entry, 'since'), entry.number('value'),
                entry.number('largest'), entry.number('relative'),
                _seconds(entry, 'until') if 'until' in entry else 0.0))
        return found


def expected_residual(dynamics: RobotDynamics,
                      motions: Iterable[tuple[Array, Array, Array, Array]]) -> Array | None:
    """Return the rms of the residual in motions without contact, shape (n,), N m or N.

    Parameters
    ----------
    dynamics : RobotDynamics
        The identified robot.
    motions : iterable of (t, q, qd, tau)
        Times, shape (N,); positions, velocities and torques, shape (N, n): data that the
        identification has not seen.

    Returns
    -------
    ndarray or None
        None if some joint moves for less than 3 s.
    """
    n = dynamics.joints.n
    squares, count = np.zeros(n), np.zeros(n)
    for t, q, qd, tau in motions:
        windows = Windows(n)
        residuals = MomentumObserver(dynamics).run(t, q, qd, tau)
        for row in zip(t, q, qd, residuals, strict=True):
            window = windows.add(*row, NONE)
            if window is not None and row[0] - t[0] > SETTLED:
                squares += window.moving * window.residual**2
                count += window.moving
    if (count < SHORTEST / WINDOW).any():
        return None
    return np.maximum(np.sqrt(squares / count), SMALLEST)


def read_expected_residual(source: Mapping[str, Any] | str | Path,
                           names: Iterable[str]) -> Array | None:
    """Read the section ``residual`` of a motor file; None if it has none.

    Raises
    ------
    DescriptionError
        It cannot be read, or lacks a joint.
    """
    content = Section.read(source, 'motor data')
    if 'residual' not in content:
        return None
    section = content.section('residual')
    return np.array([section.number(name, above=0.0) for name in names])


def _clock(time: float, now: float) -> str:
    """Return a local time of day, with its date unless it is today."""
    at, today = datetime.fromtimestamp(time), datetime.fromtimestamp(now)
    return f'{at:%H:%M}' if at.date() == today.date() else f'{at:%Y-%m-%d %H:%M}'


def _stored(one: Change) -> dict[str, Any]:
    times = {name: datetime.fromtimestamp(time, timezone.utc).isoformat(timespec='seconds')
             for name, time in (('since', one.since), ('until', one.until)) if time}
    return asdict(one) | {'since': None, 'until': None} | times


def _seconds(entry: Section, key: str) -> float:
    text = entry.text(key)
    try:
        time = datetime.fromisoformat(text).timestamp()
        if 0 <= time < LATEST:
            return time
    except (ValueError, OverflowError, OSError):
        pass
    raise entry.fail(key, f'is {text[:40]!r}', 'a time in ISO 8601 since 1970')
