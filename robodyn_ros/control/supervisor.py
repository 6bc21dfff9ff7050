"""`Supervisor`: which law acts now, and what follows when state or reference are gone.

No clock and no ROS: it is told the time, the state and the reference, and answers with a torque.
Without a reference gravity is compensated; where the state is late, gravity at the last state is
held; where it stays out, torque goes to zero. A state that comes back begins with gravity again.

Every change, also of mode, model or reference, is bumpless: what the new torque differs by fades
within ``ramp`` seconds; but from zero gravity is compensated at once, or the arm would fall on.
No law has an integrator, so nothing winds up behind a limit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from robodyn_ros.control.laws import (
    Gains,
    computed_torque,
    elastic_feedforward_pd,
    feedforward_gravity,
    feedforward_pd,
    gravity_compensation,
    pd,
)
from robodyn_ros.control.reference import saturate
from robodyn_ros.description import Array
from robodyn_ros.dynamics import AnyDynamics, FlexibleDynamics

WAITING, GRAVITY, FOLLOWING = 'waiting', 'gravity compensation', 'following'
HOLDING, ZERO = 'holding', 'zero'
ELASTIC = 'elastic_feedforward_pd'
LAWS = ('gravity_compensation', 'pd', 'feedforward_pd', 'feedforward_gravity', 'computed_torque',
        ELASTIC)
LONGEST_STEP = 0.1  # s, over which a rate limit lets the torque change at once


@dataclass(frozen=True, eq=False)
class Tuning:
    """How the supervisor acts.

    Attributes
    ----------
    law : str
        One of `LAWS`; ``gravity_compensation`` follows no reference.
    gains : Gains
        N m/rad and N m s/rad (N/m, N s/m), of the laws with PD.
    acceleration_gains : Gains
        1/s^2 and 1/s, of ``computed_torque``.
    damping : ndarray, shape (n,)
        N m s/rad or N s/m, while gravity is compensated.
    friction : float
        Share of the measured velocity's friction that is compensated with gravity, 0 to 1.
    state_timeout : float
        s without a new state, after which it is stale.
    zero_after : float
        s without a new state, after which torque goes to zero.
    ramp : float
        s, of every transition.
    rate_limit : ndarray, shape (n,)
        Largest change of torque, N m/s or N/s; inf: none.
    flexible : FlexibleDynamics, optional
        Of an elastic arm whose motors are measured; ``elastic_feedforward_pd`` needs it.
    """

    law: str
    gains: Gains
    acceleration_gains: Gains
    damping: Array
    friction: float
    state_timeout: float
    zero_after: float
    ramp: float
    rate_limit: Array
    flexible: FlexibleDynamics | None = None


@dataclass(frozen=True, eq=False)
class Command:
    """What the supervisor answers.

    Attributes
    ----------
    torque : ndarray, shape (n,)
        N m or N; finite, within the effort limits.
    phase : str
        Which law acts.
    saturated : ndarray of bool, shape (n,)
        Joints whose torque was limited.
    """

    torque: Array
    phase: str
    saturated: Array


class Supervisor:
    """Chooses the law, fades between laws, limits torques.

    Parameters
    ----------
    on_phase : callable, optional
        ``on_phase(before, after)`` at each change of phase.
    """

    def __init__(self, on_phase: Callable[[str, str], None] | None = None):
        self.phase = WAITING
        self._on_phase = on_phase or (lambda before, after: None)
        self._key: tuple[object, ...] = ()
        self._torque: Array | None = None
        self._time = 0.0
        self._fade: tuple[float, Array] | None = None

    def command(self, now: float, dynamics: AnyDynamics, tuning: Tuning,
                state: tuple[Array, Array], age: float,
                reference: tuple[Array, ...] | None, token: object = None) -> Command:
        """Return the torque for now.

        Parameters
        ----------
        now : float
            s, of any clock that does not jump.
        dynamics : Dynamics or ClosedLoopDynamics
            Of the robot; another one counts as a transition.
        tuning : Tuning
            How to act.
        state : tuple of ndarray, shape (n,)
            Last measured q, qd.
        age : float
            s since it was new.
        reference : tuple of ndarray, shape (n,), optional
            q, qd, qdd to follow now, for an elastic arm two derivatives more; None: nothing to
            follow.
        token : object
            Another one, another reference: a transition.

        Raises
        ------
        FloatingPointError
            The torque is not finite. Nothing has changed.
        """
        phase = self._next(tuning, age, reference)
        torque = _law(phase, dynamics, tuning, state, reference)
        if not np.isfinite(torque).all():
            raise FloatingPointError('the torque is not finite')
        key = (phase, tuning.law if phase == FOLLOWING else '', dynamics,
               token if phase == FOLLOWING else None)
        last = self._torque
        if last is None or last.shape != torque.shape:
            last, self._fade = None, None
        elif key != self._key:
            self._fade = (now, last - torque) if self.phase != ZERO else None
        if phase != self.phase:
            before, self.phase = self.phase, phase
            self._on_phase(before, phase)
        self._key = key
        if self._fade is not None:
            since, difference = self._fade
            share = min(max((now - since) / tuning.ramp, 0.0), 1.0) if tuning.ramp else 1.0
            torque = torque + (1 - share * share * (3 - 2 * share)) * difference
            if share == 1.0:
                self._fade = None
        torque, saturated = saturate(torque, dynamics.joints.effort_limit)
        limited = np.isfinite(tuning.rate_limit)
        if last is not None and limited.any():
            step = np.where(limited, tuning.rate_limit, 0.0) * min(
                max(now - self._time, 0.0), LONGEST_STEP)
            torque = np.where(limited, np.clip(torque, last - step, last + step), torque)
        self._torque, self._time = torque, now
        return Command(torque, phase, saturated)

    def restart(self) -> None:
        """Go on after the clock jumped: there is nothing to fade from."""
        self._fade = self._torque = None

    def forget(self) -> None:
        """Begin as if nothing had been commanded."""
        self.phase, self._key, self._torque, self._fade = WAITING, (), None, None

    def _next(self, tuning: Tuning, age: float, reference: object) -> str:
        if age > tuning.zero_after:
            return ZERO
        if age > tuning.state_timeout:
            return ZERO if self.phase == ZERO else HOLDING
        if reference is None or tuning.law == 'gravity_compensation':
            return GRAVITY
        return FOLLOWING


def _law(phase: str, dynamics: AnyDynamics, tuning: Tuning, state: tuple[Array, Array],
         reference: tuple[Array, ...] | None) -> Array:
    q, qd = state
    if tuning.flexible is not None and phase in (HOLDING, GRAVITY):  # the links hang a bit lower
        q = tuning.flexible.links_at_rest(q)
    if phase == ZERO:
        return np.zeros_like(q)
    if phase == HOLDING:
        return dynamics.gravity(q)
    if phase == GRAVITY or reference is None:
        torque = gravity_compensation(dynamics, q, qd, tuning.damping)
        return torque + tuning.friction * dynamics.friction(qd, q) if tuning.friction else torque
    if tuning.flexible is not None:
        return elastic_feedforward_pd(tuning.flexible, q, qd, reference, tuning.gains)
    q_r, qd_r, qdd_r = reference[:3]
    if tuning.law == 'pd':
        return pd(q, qd, q_r, qd_r, tuning.gains)
    if tuning.law == 'computed_torque':
        return computed_torque(dynamics, q, qd, q_r, qd_r, qdd_r, tuning.acceleration_gains)
    law = feedforward_pd if tuning.law == 'feedforward_pd' else feedforward_gravity
    return law(dynamics, q, qd, q_r, qd_r, qdd_r, tuning.gains)
