"""`Supervisor`: selects the control law, and acts if states or references are missing.

It has no clock of its own and is independent of ROS: given the time, the state and the reference,
it returns a torque. Without a reference it compensates gravity. If the state is late, it holds the
torque that compensates gravity at the last state; if the state stays away longer, the torque goes
to zero. When states arrive again, it starts again with gravity compensation.

Every change of mode, model or reference is bumpless: the difference between the old and the new
torque fades within ``ramp`` seconds. The only exception is the return from zero torque: gravity is
then compensated at once, since the arm would otherwise continue to fall. No control law has an
integrator, so there is no windup at a torque limit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from robodyn_ros.control.agreed_end import smooth_step
from robodyn_ros.control.laws import (
    computed_torque,
    elastic_feedforward_pd,
    feedforward_gravity,
    feedforward_pd,
    gravity_compensation,
    pd,
    pd_gravity,
)
from robodyn_ros.control.reference import saturate
from robodyn_ros.control.tuning import Tuning
from robodyn_ros.dynamics import RobotDynamics
from robodyn_ros.errors import RobodynError
from robodyn_ros.spatial import Array

WAITING, GRAVITY, FOLLOWING = 'waiting', 'gravity compensation', 'following'
HOLDING, ZERO = 'holding', 'zero'
LONGEST_STEP = 0.1  # s, longest time for which a rate limit lets the torque change in one command
FIRST_STEP = 0.001  # s, assumed period of commands before it is known
CAUTIOUS = 100  # commands after a jump of the clock during which its larger steps are ignored


@dataclass(frozen=True, eq=False)
class Command:
    """A torque command of the supervisor.

    Attributes
    ----------
    torque : ndarray, shape (n,)
        Torque, N m or N; finite and within the effort limits.
    phase : str
        Phase of the supervisor, one of the constants of this module.
    saturated : ndarray of bool, shape (n,)
        Joints whose torque was limited.
    """

    torque: Array
    phase: str
    saturated: Array


class Supervisor:
    """Selects the control law, fades between control laws, and limits torques.

    Parameters
    ----------
    on_phase : callable, optional
        Called as ``on_phase(before, after)`` at each change of phase.
    """

    def __init__(self, on_phase: Callable[[str, str], None] | None = None):
        self.phase = WAITING
        self._on_phase = on_phase or (lambda before, after: None)
        self._key: tuple[object, ...] = ()
        self._torque: Array | None = None
        self._time, self._period = 0.0, FIRST_STEP
        self._fade: tuple[float, Array] | None = None
        self._pose: Array | None = None  # of all joints, when last commanded
        self._restarted = False
        self._cautious = 0

    def command(self, now: float, dynamics: RobotDynamics, tuning: Tuning,
                state: tuple[Array, Array], age: float,
                reference: tuple[Array, ...] | None, token: object = None,
                keep: float = 1.0, presliding: Array | float = 0.0) -> Command:
        """Return the torque for the current time.

        Parameters
        ----------
        now : float
            Time on any clock, s; `restart` must be called when the clock jumps.
        dynamics : RobotDynamics
            The robot's dynamics; a different object than before counts as a transition.
        tuning : Tuning
            Control law, gains and limits.
        state : tuple of ndarray, shape (n,)
            Last measured q, qd.
        age : float
            Time since that state arrived, s.
        reference : tuple of ndarray, shape (n,), optional
            q, qd, qdd to follow now, and for an elastic arm the next two derivatives; None if
            there is no reference.
        token : object
            Identifies the reference; a different object than before counts as a transition.
        keep : float
            Fraction of the torque that is commanded, less than 1 while the robot is stopped.
        presliding : ndarray, shape (n,), optional
            What presliding adds to the friction of the reference, N m or N.

        Raises
        ------
        FloatingPointError
            The torque is not finite; the supervisor is unchanged.
        """
        phase = self._next(tuning, age, reference)
        pose = self._followed(phase, dynamics, tuning, state, reference)
        torque = keep * _law(phase, dynamics, tuning, state, reference, pose, presliding)
        if not np.isfinite(torque).all():
            raise FloatingPointError('the torque is not finite')
        torque, saturated = saturate(torque, dynamics.joints.effort_limit)
        key = (phase, tuning.law if phase == FOLLOWING else '', dynamics,
               token if phase == FOLLOWING else None, keep < 1.0)
        last = self._torque
        if last is not None and last.shape != torque.shape:  # of another robot
            last = None
        if last is None or self._restarted:
            self._fade = None
        elif key != self._key:
            self._fade = (now, last - torque) if self.phase != ZERO else None
        if phase != self.phase:
            before, self.phase = self.phase, phase
            self._on_phase(before, phase)
        self._key = key
        torque = self._faded(now, torque, tuning.ramp)
        if last is not None:
            torque = _rate_limited(torque, last, tuning.rate_limit, self._elapsed(now))
        # The last torque, to which both refer, may be beyond the limits of a model changed since.
        torque, _ = saturate(torque, dynamics.joints.effort_limit)
        self._torque, self._time, self._pose = torque, now, pose
        self._restarted = False
        return Command(torque, phase, saturated)

    def _faded(self, now: float, torque: Array, ramp: float) -> Array:
        """Return the torque, plus what remains of its difference to that before a transition."""
        if self._fade is None:
            return torque
        since, difference = self._fade
        faded = smooth_step((now - since) / ramp) if ramp else 1.0
        if faded == 1.0:
            self._fade = None
        return torque + (1 - faded) * difference

    def _elapsed(self, now: float) -> float:
        """Return the time since the last command for the rate limit, s.

        A clock that jumps, or stamps from two clocks in turn, must not let the torque change
        faster. For a while after a jump, a step therefore counts as one period at most.
        """
        elapsed = min(max(now - self._time, 0.0), LONGEST_STEP)
        if self._restarted:
            self._cautious = CAUTIOUS
            return self._period
        if self._cautious:
            self._cautious -= 1
            return min(elapsed, self._period)
        if elapsed > 0:
            self._period = min(elapsed, 1.1 * self._period)  # ignores single gaps
        return elapsed

    def restart(self) -> None:
        """Continue after the clock jumped: without fading, but with the rate limit."""
        self._fade, self._restarted = None, True

    def go_on_from(self, torque: Array) -> None:
        """Continue from a torque that the watchdog has commanded, N m or N: fade from it."""
        self._torque, self._key, self._fade = torque, ('elsewhere',), None
        if self.phase in (WAITING, ZERO):
            self.phase = GRAVITY  # so that the first command fades

    def holding_torque(self, dynamics: RobotDynamics, tuning: Tuning, q: Array) -> Array:
        """Return the torque that holds a pose, N m or N; zero if that is not safe.

        Parameters
        ----------
        dynamics : RobotDynamics
            The robot's dynamics.
        tuning : Tuning
            Control law, gains and limits.
        q : ndarray, shape (n,)
            The pose, rad or m.
        """
        zero = np.zeros(dynamics.joints.n)
        if self.phase in (WAITING, ZERO):
            return zero
        try:
            links = q if tuning.flexible is None else tuning.flexible.links_at_rest(q)
            torque, _ = saturate(dynamics.gravity(links, near=self._pose),
                                 dynamics.joints.effort_limit)
        except RobodynError:
            return zero
        return torque if np.isfinite(torque).all() else zero

    def forget(self) -> None:
        """Reset the supervisor, as if nothing had been commanded."""
        self.phase, self._key, self._torque, self._fade = WAITING, (), None, None
        self._restarted, self._cautious, self._period = False, 0, FIRST_STEP
        self._pose = None

    def _followed(self, phase: str, dynamics: RobotDynamics, tuning: Tuning,
                  state: tuple[Array, Array],
                  reference: tuple[Array, ...] | None) -> Array | None:
        """Return the pose of all joints at which the control law evaluates closed loops."""
        last = self._pose
        if last is not None and last.shape != (dynamics.model.n,):  # of another robot
            last = None
        if not dynamics.cuts or phase == ZERO:
            return last
        if phase != FOLLOWING or reference is None:
            return dynamics.positions(state[0], near=last)
        if tuning.law == 'pd':
            return last
        q = reference[0] if tuning.law == 'feedforward_pd' else state[0]
        return dynamics.positions(q, near=last)

    def _next(self, tuning: Tuning, age: float, reference: object) -> str:
        """Return the phase that follows from the age of the state and the reference."""
        if age > tuning.zero_after:
            return ZERO
        if age > tuning.state_timeout:
            return ZERO if self.phase == ZERO else HOLDING
        if reference is None or tuning.law == 'gravity_compensation':
            return GRAVITY
        return FOLLOWING


def _rate_limited(torque: Array, last: Array, limit: Array, elapsed: float) -> Array:
    """Return the torque, at most ``limit`` times the elapsed time away from the last one."""
    limited = np.isfinite(limit)
    step = np.where(limited, limit, 0.0) * elapsed
    return np.where(limited, np.clip(torque, last - step, last + step), torque)


def _law(phase: str, dynamics: RobotDynamics, tuning: Tuning, state: tuple[Array, Array],
         reference: tuple[Array, ...] | None, near: Array | None,
         presliding: Array | float) -> Array:
    q, qd = state
    if tuning.flexible is not None and phase in (HOLDING, GRAVITY):
        q = tuning.flexible.links_at_rest(q)  # the measured q is that of the motors
    if phase == ZERO:
        return np.zeros_like(q)
    if phase == HOLDING:
        return dynamics.gravity(q, near=near)
    if phase == GRAVITY or reference is None:
        torque = gravity_compensation(dynamics, q, qd, tuning.damping, near)
        if not tuning.friction:
            return torque
        return torque + tuning.friction * dynamics.friction(qd, q, near=near)
    if tuning.flexible is not None:
        return elastic_feedforward_pd(tuning.flexible, q, qd, reference, tuning.gains)
    q_r, qd_r, qdd_r = reference[:3]
    if tuning.law == 'pd':
        return pd(q, qd, q_r, qd_r, tuning.gains)
    if tuning.law == 'pd_gravity':
        return pd_gravity(dynamics, q, qd, q_r, qd_r, tuning.gains, near)
    if tuning.law == 'computed_torque':
        return computed_torque(dynamics, q, qd, q_r, qd_r, qdd_r, tuning.acceleration_gains,
                               near) + presliding
    law = feedforward_pd if tuning.law == 'feedforward_pd' else feedforward_gravity
    torque = law(dynamics, q, qd, q_r, qd_r, qdd_r, tuning.gains, near) + presliding
    return torque if tuning.residual is None else torque + tuning.residual.torque(q_r, qd_r)
