"""Validation by rollout: the identified model is simulated along a held-out motion.

Torques that are predicted well can still add up to a wrong motion: an error of friction or inertia
grows with time where one of noise does not. The simulation starts at measured states and is
driven by the measured torques, alone (open loop) or with a controller that leads it back to the
measured motion (closed loop).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robodyn_ros.control.laws import automatic_gains
from robodyn_ros.dynamics import Dynamics, RobotDynamics
from robodyn_ros.errors import IdentificationError, ValueRangeError
from robodyn_ros.identification.signals import Segment
from robodyn_ros.identification.simulate import simulate_along
from robodyn_ros.model import Model
from robodyn_ros.spatial import Array

HORIZONS = (0.1, 0.5, 2.0)  # s
STARTS = 24  # at most, evenly over the motion
STEP = 2e-3  # s, of the simulation
WIDTH = 0.01  # rad/s or m/s, over which Coulomb friction changes its sign
MOVES = 1e-3  # rad or m; a joint that travels less is not judged


@dataclass(frozen=True, eq=False)
class Rollout:
    """Position errors of simulations along measured motions.

    Attributes
    ----------
    joint_names : tuple of str
        The n joints.
    horizons : tuple of float
        Times after the start, s; those that the motion is long enough for.
    starts : int
        Number of starts.
    open_loop, closed_loop, description : ndarray, shape (horizons, n)
        Root mean square of the position errors over the starts, rad or m: of the identified model
        under the measured torque; the same with a controller; of the description under the
        measured torque. Infinite where a simulation diverges.
    travelled : ndarray, shape (horizons, n)
        Root mean square of the distances that the robot itself moved, rad or m.
    """

    joint_names: tuple[str, ...]
    horizons: tuple[float, ...]
    starts: int
    open_loop: Array
    closed_loop: Array
    description: Array
    travelled: Array

    def worst(self) -> tuple[str, float, float] | None:
        """Return the joint with the largest open-loop error over the distance that it travelled.

        Returns
        -------
        tuple of (str, float, float) or None
            The joint, that ratio, and the shortest horizon in s, at which it is taken. None if no
            joint moves.
        """
        moves = self.travelled[0] > MOVES
        if not moves.any():
            return None
        ratio = np.where(moves, self.open_loop[0] / np.where(moves, self.travelled[0], 1.0), 0.0)
        k = int(np.argmax(ratio))
        return self.joint_names[k], float(ratio[k]), self.horizons[0]

    def to_text(self) -> str:
        """Return the errors as a table."""
        width = max(map(len, self.joint_names))
        head = ''.join(f'{f"{horizon:g} s":>10}' for horizon in self.horizons)
        lines = [f'  position error after ({self.starts} starts), rad or m']
        for title, errors in (('open loop', self.open_loop), ('closed loop', self.closed_loop),
                              ('description, open loop', self.description)):
            lines.append(f'  {title}\n    {"":{width}}{head}')
            lines += [f'    {name:{width}}' + ''.join(f'{error:10.2g}' for error in errors[:, k])
                      for k, name in enumerate(self.joint_names)]
        return '\n'.join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the errors as plain data; rad or m, by horizon and joint."""
        def table(errors: Array) -> dict[str, dict[str, float | None]]:
            return {f'{horizon:g} s': {
                name: float(error) if np.isfinite(error) else None
                for name, error in zip(self.joint_names, row, strict=True)}
                for horizon, row in zip(self.horizons, errors, strict=True)}

        return {'starts': self.starts, 'open_loop': table(self.open_loop),
                'closed_loop': table(self.closed_loop), 'description': table(self.description)}


def roll_out_along(dynamics: RobotDynamics, identified: Model, segments: Sequence[Segment], *,
                   horizons: Sequence[float] = HORIZONS) -> Rollout:
    """Simulate an identified model and its description along measured motions.

    Parameters
    ----------
    dynamics : RobotDynamics
        The description.
    identified : Model
        The identified model.
    segments : sequence of Segment
        The measured motions, with the torques of the joints.
    horizons : sequence of float
        Times after the start at which positions are compared, s.

    Raises
    ------
    IdentificationError
        If the robot has closed loops, or the motions are shorter than the shortest horizon.
    ValueRangeError
        There are no horizons, or one that is not above 0.
    """
    if not len(horizons) or not all(0 < horizon < np.inf for horizon in horizons):
        raise ValueRangeError('horizons', list(horizons), 'one or more times above 0, s')
    if dynamics.cuts:
        raise IdentificationError('a rollout of a robot with closed loops is not available; '
                                  'valid: a tree')
    longest = max((float(s.t[-1] - s.t[0]) for s in segments), default=0.0)
    possible = tuple(sorted(h for h in horizons if h < longest))
    if not possible:
        raise IdentificationError(f'the longest motion lasts {longest:.3g} s; valid: '
                                  f'longer than {min(horizons):g} s')
    long = [s for s in segments if s.t[-1] - s.t[0] > possible[-1]]
    each = max(1, STARTS // len(long))
    steps = round(possible[-1] / STEP)
    measured = np.concatenate([_measured(s, np.linspace(
        s.t[0], s.t[-1] - steps * STEP, each), steps) for s in long], axis=1)
    starts, n = measured.shape[1], dynamics.n
    after = [round(horizon / STEP) for horizon in possible]
    model, description = (dynamics.with_model(m, friction_width=WIDTH, shared_code=True).tree
                          for m in (identified, dynamics.model))
    gains = automatic_gains(model)
    on = np.repeat([[0.0], [1.0]], starts, axis=0)  # open loop, then closed loop
    errors = _errors(model, np.tile(measured, (1, 2, 1)), after, on * gains.kp, on * gains.kd)
    away = measured[after, :, :n] - measured[0, :, :n]
    free = np.zeros((starts, n))
    return Rollout(
        tuple(dynamics.joint_names), possible, starts, _rms(errors[:, :starts]),
        _rms(errors[:, starts:]), _rms(_errors(description, measured, after, free, free)),
        _rms(away))


def _measured(segment: Segment, starts: Array, steps: int) -> Array:
    """Return positions, velocities and torques from each start, shape (steps + 1, starts, 3 n)."""
    tau = segment.tau if segment.extra is None else segment.tau - segment.extra
    t = starts + STEP * np.arange(steps + 1)[:, None]
    values = np.concatenate([segment.q, segment.qd, tau], axis=1)
    place = np.clip(np.searchsorted(segment.t, t, side='right') - 1, 0, len(segment.t) - 2)
    part = ((t - segment.t[place]) / (segment.t[place + 1] - segment.t[place]))[..., None]
    return np.asarray((1 - part) * values[place] + part * values[place + 1])


def _errors(dynamics: Dynamics, measured: Array, after: Sequence[int], kp: Array, kd: Array,
            ) -> Array:
    """Return differences from the measured positions, shape (horizons, starts, n)."""
    n = dynamics.n
    return np.array([q - measured[k, :, :n] for k, (q, _) in enumerate(
        simulate_along(dynamics, measured[:after[-1] + 1], STEP, kp, kd)) if k in after])


def _rms(errors: Array) -> Array:
    """Return root mean squares over the starts, shape (horizons, n); infinite if divergent."""
    with np.errstate(all='ignore'):
        rms = np.sqrt((errors**2).mean(axis=1))
    return np.where(np.isfinite(rms), rms, np.inf)
