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
import scipy.interpolate

from robodyn_ros.control.laws import automatic_gains
from robodyn_ros.dynamics import RobotDynamics
from robodyn_ros.errors import IdentificationError
from robodyn_ros.identification.identify import segments_for
from robodyn_ros.identification.log import Log
from robodyn_ros.identification.result import Result
from robodyn_ros.identification.signals import Segment
from robodyn_ros.spatial import Array

HORIZONS = (0.1, 0.5, 2.0)  # s
STARTS = 24  # at most, evenly over the motion
STEP = 1e-3  # s, of the simulation
WIDTH = 0.01  # rad/s or m/s, over which Coulomb friction changes its sign
SLOPE = 1e-3  # rad/s or m/s, for the derivative of friction
KINDS = ('rigid', 'lumped', 'links')  # whose torque is that of the joints


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
    """

    joint_names: tuple[str, ...]
    horizons: tuple[float, ...]
    starts: int
    open_loop: Array
    closed_loop: Array
    description: Array

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


def roll_out(result: Result, logs: Log | Sequence[Log], *,
             horizons: Sequence[float] = HORIZONS) -> Rollout:
    """Simulate the identified model along logs, and compare positions.

    The model is the physically consistent one, ``result.model``. Coulomb friction changes its sign
    over 0.01 rad/s or m/s, and steps of 1 ms are implicit in friction. The controller of the
    closed loop has the gains of `automatic_gains`.

    Parameters
    ----------
    result : Result
        What `identify` returned.
    logs : Log or sequence of Log
        Logs that the fit has not seen.
    horizons : sequence of float
        Times after the start at which positions are compared, s.

    Raises
    ------
    IdentificationError
        If the robot has closed loops, the kind does not explain the torques of joints, or the
        logs are shorter than the shortest horizon.
    """
    whole = result.linear.whole
    if whole.cuts or result.linear.kind not in KINDS:
        raise IdentificationError(f'a rollout of the kind {result.linear.kind!r}'
                                  + (' with closed loops' if whole.cuts else '')
                                  + ' is not available; valid: a tree, and the kinds '
                                  + ', '.join(KINDS))
    segments = [s for s in segments_for(result, [logs] if isinstance(logs, Log) else list(logs))
                if not s.loaded]
    longest = max((float(s.t[-1] - s.t[0]) for s in segments), default=0.0)
    possible = tuple(sorted(h for h in horizons if 0 < h < longest))
    if not possible:
        raise IdentificationError(f'the longest motion lasts {longest:.3g} s; valid: '
                                  f'longer than {min(horizons):g} s')
    motions = [_Motion(s) for s in segments if s.t[-1] - s.t[0] > possible[-1]]
    starts = [(motion, float(t)) for motion in motions for t in np.linspace(
        motion.first, motion.last - possible[-1], max(1, STARTS // len(motions)))]
    identified, description = (whole.with_model(model, friction_width=WIDTH)
                               for model in (result.model, whole.model))
    gains = automatic_gains(identified)
    return Rollout(
        tuple(whole.joint_names), possible, len(starts),
        _errors(identified, starts, possible, None),
        _errors(identified, starts, possible, (gains.kp, gains.kd)),
        _errors(description, starts, possible, None))


class _Motion:
    """A measured motion as a function of time."""

    def __init__(self, segment: Segment):
        tau = segment.tau if segment.extra is None else segment.tau - segment.extra
        self.first, self.last = float(segment.t[0]), float(segment.t[-1])
        self.values = scipy.interpolate.make_interp_spline(
            segment.t, np.concatenate([segment.q, segment.qd, tau], axis=1), k=1)


def _errors(dynamics: RobotDynamics, starts: list[tuple[_Motion, float]],
            horizons: tuple[float, ...], gains: tuple[Array, Array] | None) -> Array:
    """Return root mean squares of the position errors, shape (horizons, n).

    Each step solves ``(M + step D) dv = step M qdd``, in which D is the slope of friction and of
    the controller: light joints with much friction would need far smaller steps otherwise.
    """
    n = dynamics.n
    steps = round(horizons[-1] / STEP)
    grid = (np.arange(steps + 1)) * STEP
    measured = np.stack([motion.values(t + grid) for motion, t in starts], axis=1)
    q, qd = measured[0, :, :n].copy(), measured[0, :, n:2 * n].copy()
    kp, kd = (np.zeros(n), np.zeros(n)) if gains is None else gains
    found, wanted = [], {round(h / STEP) for h in horizons}
    with np.errstate(all='ignore'):
        for k in range(steps):
            middle = 0.5 * (measured[k] + measured[k + 1])
            tau = middle[:, 2 * n:] + kp * (middle[:, :n] - q) + kd * (middle[:, n:2 * n] - qd)
            slope = (dynamics.friction(qd + SLOPE, q) - dynamics.friction(qd - SLOPE, q)) \
                / (2 * SLOPE)
            mass = dynamics.mass_matrix(q)
            push = STEP * np.einsum('kij,kj->ki', mass, dynamics.forward_dynamics(q, qd, tau))
            mass[:, range(n), range(n)] += STEP * (np.maximum(slope, 0.0) + kd)
            before = qd
            qd = qd + np.linalg.solve(mass, push[..., None])[..., 0]
            q = q + STEP / 2 * (before + qd)
            if k + 1 in wanted:
                error = np.sqrt(((q - measured[k + 1, :, :n]) ** 2).mean(axis=0))
                found.append(np.where(np.isfinite(error), error, np.inf))
    return np.array(found)
