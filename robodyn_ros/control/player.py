"""`Player`: accepts references, plays one against a clock, and monitors how it is followed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from robodyn_ros.control.reference import Reference
from robodyn_ros.control.reference_checks import (
    check_limits,
    check_start,
    check_torque,
    efforts,
)
from robodyn_ros.control.resting_direction import PreslidingState, RestingDirection
from robodyn_ros.control.tuning import (
    NO_REACTION,
    Tolerances,
    Tuning,
    residual_of,
    tolerances_of,
    tuning_of,
)
from robodyn_ros.dynamics import RobotDynamics
from robodyn_ros.dynamics.residual_torque import ResidualTorque
from robodyn_ros.errors import RobodynError
from robodyn_ros.spatial import Array

SAME = 1e-3, 1e-2  # rad or m, and per second: tolerance for a reference that continues another


class ReferenceRefused(RobodynError):
    """A reference was rejected; the message says why, and what would be valid.

    Attributes
    ----------
    kind : str
        ``reference_refused`` or ``reference_stale``, used for counting.
    """

    def __init__(self, text: str, kind: str = 'reference_refused'):
        self.kind = kind
        super().__init__(text)


@dataclass(frozen=True, eq=False)
class ControlLaw:
    """A control law with its dynamics, tuning and tolerances; always replaced as a whole.

    Attributes
    ----------
    dynamics : RobotDynamics
        The robot's dynamics.
    tuning : Tuning or None
        Settings of the closed loop; None for the open loop.
    tolerances : Tolerances
        When references end, and how far the robot may be from them.
    on_contact : str
        Reaction to an accidental contact, one of `REACTIONS`.
    residual : ResidualTorque or None
        A bounded torque beyond the robot's dynamics, which is added to feed-forward torques.
    """

    dynamics: RobotDynamics
    tuning: Tuning | None
    tolerances: Tolerances
    on_contact: str = NO_REACTION
    residual: ResidualTorque | None = None

    @classmethod
    def of(cls, values: Mapping[str, Any], dynamics: RobotDynamics) -> ControlLaw:
        """Return the law for named values.

        Raises
        ------
        RobodynError
            A value is invalid; the message names it.
        """
        residual = residual_of(values, dynamics.joints.joint_names)
        return cls(dynamics, tuning_of(values, dynamics, residual),
                   tolerances_of(values, dynamics.joints.n),
                   values.get('on_contact', NO_REACTION), residual)


@dataclass(frozen=True, eq=False)
class Playing:
    """A reference that is being played.

    Attributes
    ----------
    reference : Reference
        The motion.
    start : int
        Start time, ns; 0: at the next state.
    begun : bool
        Whether it has started with the robot near its first point.
    judged : bool
        Whether the robot has reached its end in time.
    token : object
        Shared by references that continue one another without a change of motion.
    """

    reference: Reference
    start: int
    begun: bool = False
    judged: bool = False
    token: object = field(default_factory=object)

    def lifetime(self, tolerances: Tolerances) -> int:
        """Return how long the reference is played, ns from its start.

        It ends with its last point. If it ends at rest, it is held for another ``hold`` seconds. A
        single point, as in a stream of setpoints, is valid for ``setpoint_timeout`` seconds.
        """
        extra = 0.0
        if len(self.reference.times) == 1:
            extra = tolerances.setpoint_timeout
        elif self.reference.ends_at_rest:
            extra = max(tolerances.hold, tolerances.goal_time if self._has_goal(tolerances)
                        else 0.0)
        return int((self.reference.duration + extra) * 1e9)

    @staticmethod
    def _has_goal(tolerances: Tolerances) -> bool:
        return bool(np.isfinite(tolerances.goal).any())


class Player:
    """Plays one reference after another.

    Parameters
    ----------
    warn : callable
        Called as ``warn(kind, text)`` with warnings for the user; the kind is used for counting.
    """

    def __init__(self, warn: Callable[[str, str], None]):
        self._warn = warn
        self.playing: Playing | None = None
        self._next: Playing | None = None  # replaces `playing` at its own start time
        self._direction, self._past = RestingDirection(), PreslidingState()
        self.presliding: Array | float = 0.0  # torque of presliding friction at the last sample

    @property
    def idle(self) -> bool:
        """Whether there is neither a current nor a next reference."""
        return self.playing is None and self._next is None

    def take(self) -> tuple[Playing | None, Playing | None]:
        """Return the current and the next reference, and remove them."""
        taken, self.playing, self._next = (self.playing, self._next), None, None
        return taken

    def restore(self, taken: tuple[Playing | None, Playing | None]) -> None:
        """Play the references again that `take` has returned."""
        self.playing, self._next = taken

    def drop(self, why: str, kind: str = 'reference_dropped') -> None:
        """Stop playing the current reference and the next one, if there are any."""
        self._direction.forget()
        self._past.forget()
        if not self.idle:
            self.take()
            self._warn(kind, f'the reference is dropped: {why}')

    def play(self, playing: Playing, clock: int) -> None:
        """Play a reference that was checked; it replaces the current one when it starts.

        A long motion may come in overlapping pieces that have the same stamp and continue one
        another; such a piece does not count as a new start.

        Parameters
        ----------
        playing : Playing
            The result of `check`.
        clock : int
            Current time, ns, on the clock of the start time.
        """
        self._begin_next(clock)
        before = self.playing
        if before is not None and clock < playing.start != before.start:
            self._next = playing
            return
        self._next = None
        if before is not None and before.start == playing.start != 0 and clock >= before.start:
            time = (clock - before.start) * 1e-9
            apart = [np.abs(old - new).max() for old, new in zip(
                before.reference.sample(time), playing.reference.sample(time), strict=True)]
            if apart[0] <= SAME[0] and apart[1] <= SAME[1]:
                playing = replace(playing, begun=before.begun, token=before.token)
        self.playing = playing

    def _begin_next(self, now: int) -> None:
        if self._next is not None and now >= self._next.start:
            self.playing, self._next = self._next, None

    @staticmethod
    def check(law: ControlLaw, reference: Reference, stamp: int, clock: int,
              q: Array | None) -> tuple[Playing, Array, Array]:
        """Check whether a reference can be played; this may take some milliseconds.

        Parameters
        ----------
        law : ControlLaw
            Dynamics, tuning and tolerances.
        reference : Reference
            The motion.
        stamp : int
            Start time, ns; 0: now.
        clock : int
            Current time, ns, on the same clock.
        q : ndarray, shape (n,), optional
            Measured positions, rad or m; None in the open loop, where the position and velocity
            limits of the robot are not checked.

        Returns
        -------
        playing : Playing
            The argument of `play`.
        tau : ndarray, shape (k, n)
            Torques at the points, N m or N, within the effort limits.
        saturated : ndarray of bool, shape (n,)
            Joints whose torque was limited.

        Raises
        ------
        ReferenceRefused
            The reference has ended, is far from the robot, or exceeds its limits.
        """
        joints = law.dynamics.joints
        try:
            tau, saturated = efforts(reference, law.dynamics, law.residual)
            if q is not None:
                check_limits(reference, joints)
        except RobodynError as error:
            raise ReferenceRefused(str(error)) from None
        start = stamp or (0 if q is not None else clock)
        playing = Playing(reference, start)
        if start and clock > start + playing.lifetime(law.tolerances):
            late = (clock - start) * 1e-9 - reference.duration
            raise ReferenceRefused(f'it ended {late:.3f} s ago; valid: a stamp of 0 (now), or one '
                                   'with which it has not ended', 'reference_stale')
        if q is not None:
            try:
                check_start(reference, max(clock - (start or clock), 0) * 1e-9, q,
                            law.tolerances.start, joints)
                check_torque(reference, law.dynamics, law.residual)
            except RobodynError as error:
                raise ReferenceRefused(str(error)) from None
        return playing, tau, saturated

    def sample(self, law: ControlLaw, now: int) -> tuple[Array, Array, Array] | None:
        """Return q, qd and qdd, shape (n,), of the reference at a time (ns).

        None if no reference is played then.
        """
        time = self._time(law, now)
        playing = self.playing
        if time is None or playing is None:
            return None
        q, qd, qdd = playing.reference.sample(time)
        return q, self._moving(law, q, qd), qdd

    def sample_measured(self, law: ControlLaw, now: int, q: Array, new: bool) -> Any:
        """Return the reference at a time, or None, and compare it with the measured positions.

        The reference is dropped if the robot is too far from it: at its start
        (``start_tolerance``), on its way (``path_tolerance``), or at its end
        (``goal_tolerance``).

        Parameters
        ----------
        law : ControlLaw
            Dynamics, tuning and tolerances.
        now : int
            The time, ns.
        q : ndarray, shape (n,)
            Measured positions, rad or m.
        new : bool
            Whether the positions were measured at that time.

        Returns
        -------
        tuple of ndarray, shape (n,), or None
            q, qd, qdd; for an elastic arm also the next two derivatives.
        """
        if self.playing is not None and not self.playing.start:
            self.playing = replace(self.playing, start=now)
        time = self._time(law, now)
        if time is None or self.playing is None:
            return None
        flexible = law.tuning is not None and law.tuning.flexible is not None
        reference = self.playing.reference
        sample = reference.derivatives(time) if flexible else reference.sample(time)
        if new and not self._follows(law, time, q, sample[0]):
            return None
        return sample[0], self._moving(law, sample[0], sample[1]), *sample[2:]

    def _moving(self, law: ControlLaw, q: Array, qd: Array) -> Array:
        """Return velocities that give friction its direction, and update `presliding`."""
        qd = self._direction(law.dynamics, qd)
        self.presliding = self._past(law.dynamics, q, qd)
        return qd

    def _time(self, law: ControlLaw, now: int) -> float | None:
        """Return the time since the start of the reference (s), None before and after it."""
        self._begin_next(now)
        playing = self.playing
        if playing is None or now < playing.start:
            return None
        if now > playing.start + playing.lifetime(law.tolerances):
            self.playing = None
            return None
        return (now - playing.start) * 1e-9

    def _follows(self, law: ControlLaw, time: float, q: Array, wanted: Array) -> bool:
        """Compare the measured positions with the reference; drop it if they are too far off."""
        playing, tolerances = self.playing, law.tolerances
        if playing is None:
            return False
        if not playing.begun:
            try:
                check_start(playing.reference, time, q, tolerances.start, law.dynamics.joints)
            except RobodynError as error:
                self.drop(str(error), 'reference_refused')
                return False
            playing = self.playing = replace(playing, begun=True)
        away = np.abs(wanted - q)
        if (away > tolerances.path).any():
            self._drop_beyond('path_tolerance', away, tolerances.path, law)
            return False
        late = time - playing.reference.duration
        if late >= 0 and not playing.judged and len(playing.reference.times) > 1:
            if (away <= tolerances.goal).all():
                self.playing = replace(playing, judged=True)
            elif late >= tolerances.goal_time:
                self._drop_beyond('goal_tolerance', away, tolerances.goal, law)
                return False
        return True

    def _drop_beyond(self, name: str, away: Array, tolerance: Array, law: ControlLaw) -> None:
        joint = int(np.argmax(away / tolerance))
        self.drop(f'joint {law.dynamics.joints.joint_names[joint]!r} is {away[joint]:.3g} rad or '
                  f'm from it; valid: at most {name}, {tolerance[joint]:g}', name)
