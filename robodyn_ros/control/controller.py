"""`Controller`: computes torques from measured states and references.

Times of arrival are those of the system's monotonic clock (s); stamps and the open loop's clock
are in integer nanoseconds. It is not thread-safe: the caller must hold a lock.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from robodyn_ros.control.agreed_end import AgreedEnd
from robodyn_ros.control.player import ControlLaw, Player, Playing, ReferenceRefused
from robodyn_ros.control.reaction import Reaction
from robodyn_ros.control.reference import Reference, saturate
from robodyn_ros.control.state import Answer, State
from robodyn_ros.control.state_checks import StampAge, StateGuard
from robodyn_ros.control.supervisor import HOLDING, WAITING, ZERO, Supervisor
from robodyn_ros.control.tuning import Tuning
from robodyn_ros.errors import RobodynError
from robodyn_ros.spatial import Array

STANDING = 0.5  # s without progress after which the clock of the open loop counts as stopped


class Controller:
    """Responds to measured states and plays references for the joints of one robot.

    In the open loop (a `ControlLaw` without tuning) `tick` plays a reference against a clock;
    without a reference nothing is commanded. In the closed loop the `Supervisor` responds to every
    state with a torque, references run on the stamps of the states, and `tick` responds if states
    are late. When the law changes from closed to open loop, or the robot is replaced, commands end
    as described by `AgreedEnd`; `ending` is true meanwhile.

    Parameters
    ----------
    law : ControlLaw
        Dynamics, tuning and tolerances.
    warn : callable
        Called as ``warn(kind, text)`` with warnings for the user; the kind is used for counting.
    on_phase : callable
        Called as ``on_phase(before, after)`` when the supervisor changes its phase.
    """

    def __init__(self, law: ControlLaw, warn: Callable[[str, str], None],
                 on_phase: Callable[[str, str], None]):
        self.law = law
        self.player, self.reaction = Player(warn), Reaction()
        self.state: State | None = None
        self._warn = warn
        self._supervisor = Supervisor(on_phase)
        self._guard, self._ages = StateGuard(law.dynamics.joints), StampAge()
        self._last: Answer | None = None
        self._answered = 0.0  # time of that command, s
        self._end: tuple[AgreedEnd, float, int] | None = None  # with its start in s and in ns
        self._pose: Array | None = None  # of all joints, in the open loop
        self._clock, self._advanced = 0, 0.0  # open-loop clock, ns, and time of its last progress

    @property
    def phase(self) -> str:
        """Phase of the supervisor."""
        return self._supervisor.phase

    @property
    def ending(self) -> bool:
        """Whether commands are being brought to their end."""
        return self._end is not None

    @property
    def armed(self) -> bool:
        """Whether the watchdog must end the commands if this controller fails."""
        return self.ending or (self.commanding and (
            self.player.playing is not None if self.law.tuning is None
            else self.phase not in (WAITING, ZERO)))

    @property
    def commanding(self) -> bool:
        """Whether the last commanded torque is not zero."""
        return self._last is not None and bool(self._last.torque.any())

    def use(self, law: ControlLaw, now: float) -> None:
        """Use another law from now on, with the same joints.

        Parameters
        ----------
        law : ControlLaw
            The new law.
        now : float
            Monotonic time, s.
        """
        if (law.tuning is None) != (self.law.tuning is None):
            self.end(now, 'the mode changes')
            self.reaction.finish()
        if law.dynamics is not self.law.dynamics:
            self._pose = None
        self.law = law

    def end(self, now: float, why: str) -> None:
        """Bring the commands to their end: hold, then zero."""
        self.player.drop(why)
        last, tuning = self._last, self.law.tuning
        if self.ending or last is None or not last.torque.any():
            return
        if tuning is None:
            end = AgreedEnd.of_open_loop(last.torque, self.law.tolerances.ramp)
        elif self.phase == WAITING:
            return
        else:
            end = AgreedEnd(last.torque, self.holding_torque(), tuning.zero_after, tuning.ramp,
                            tuning.rate_limit)
        self._end = end, now, last.stamp + int((now - self._answered) * 1e9)
        self._supervisor.forget()
        self.state = None

    def holding_torque(self) -> Array:
        """Return the torque that holds the last pose, shape (n,), N m or N.

        It is zero if the pose is unknown or the torque not safe.
        """
        law, state = self.law, self.state
        if state is None or law.tuning is None:
            return np.zeros(law.dynamics.joints.n)
        return self.reaction.keep * self._supervisor.holding_torque(
            law.dynamics, law.tuning, state.q)

    def taken_over(self, torque: Array) -> None:
        """Continue after the watchdog has commanded, with its last torque, N m or N."""
        self.player.drop('commands were late, and the watchdog took over')
        self._supervisor.go_on_from(torque)
        self._last = Answer(torque, self._last.stamp if self._last is not None else 0)

    def forget(self) -> None:
        """Reset the controller, as if nothing had been measured or commanded."""
        self.player.take()
        self.reaction.finish()
        self.state = self._last = self._end = None
        self._supervisor.forget()

    def check(self, reference: Reference, stamp: int, now: float,
              clock: int) -> tuple[Playing, Array]:
        """Check whether a reference can be played; `play` then starts it.

        This does not change the controller, needs no lock, and may take some milliseconds.

        Parameters
        ----------
        reference : Reference
            The motion.
        stamp : int
            Start time, ns, on the clock of the states or, in the open loop, on the given clock;
            0: now.
        now : float
            Monotonic time, s.
        clock : int
            Time of the open loop's clock, ns.

        Returns
        -------
        playing : Playing
            The argument of `play`.
        tau : ndarray, shape (k, n)
            Torques at the points, N m or N, within the effort limits.

        Raises
        ------
        ReferenceRefused
            The reference has ended, is far from the robot or beyond its limits, states are
            missing, or a contact was not acknowledged.
        """
        self.reaction.check()
        law, state = self.law, self.state
        if law.tuning is None:
            playing, tau, saturated = self.player.check(law, reference, stamp, clock, None)
            if saturated.any():
                self._warn_saturated(saturated)
            return playing, tau
        if state is None:
            raise ReferenceRefused('there are no joint_states')
        age = now - state.arrived
        if age > law.tuning.state_timeout:
            raise ReferenceRefused('joint_states are stale')
        playing, tau, _ = self.player.check(law, reference, stamp, state.stamp + int(age * 1e9),
                                            state.q)
        return playing, tau

    def play(self, playing: Playing, now: float, clock: int) -> None:
        """Play a reference that was checked; it replaces the current one."""
        self.reaction.check()
        if self.law.tuning is not None and self.state is not None:
            clock = self.state.stamp + int((now - self.state.arrived) * 1e9)
        self.player.play(playing, clock)

    def _warn_saturated(self, over: Array) -> None:
        names = np.array(self.law.dynamics.joints.joint_names)[over]
        self._warn('saturated', f'torque limited to the effort limit: {", ".join(names)}')

    # time -----------------------------------------------------------------------------------

    def tick(self, now: float, clock: int) -> Answer | None:
        """Return the command that is due at a time, or None.

        Parameters
        ----------
        now : float
            Monotonic time, s.
        clock : int
            Time of the open loop's clock, ns.
        """
        self._ages.live(now)
        if self._end is not None:
            return self._go_on_ending(now)
        if self.law.tuning is None:
            return self._play(self.law, now, clock)
        if self.state is None:
            return None
        age = now - self.state.arrived
        if age <= self.law.tuning.state_timeout:
            return None
        return self._control(self.law, self.law.tuning, self.state, age)

    def _go_on_ending(self, now: float) -> Answer | None:
        if self._end is None:
            return None
        end, since, stamp = self._end
        elapsed = now - since
        if end.finished(elapsed):
            self._end = None
        torque, _ = saturate(end.torque(elapsed), self.law.dynamics.joints.effort_limit)
        return self._answer(torque, stamp + int(elapsed * 1e9), now)

    def _play(self, law: ControlLaw, now: float, clock: int) -> Answer | None:
        """Return the command in the open loop."""
        before, self._clock = self._clock, clock
        if clock != before:
            self._advanced = now
        if self.player.idle:
            return None
        if clock < before:
            self._warn('time_jump', 'the clock jumped back')
            self.end(now, 'the clock jumped back')
            return self._go_on_ending(now)
        sample = self.player.sample(law, clock)
        if sample is None:
            self._last = None
            return None
        if now - self._advanced > STANDING:
            if self._last is not None:
                self._warn('clock_stands', 'the clock does not advance: nothing is commanded')
                self._pause(now)
            return self._go_on_ending(now)
        try:
            self._pose = law.dynamics.positions(sample[0], near=self._pose)
            tau = law.dynamics.inverse_dynamics(*sample, near=self._pose) + self.player.presliding
            if law.residual is not None:
                tau = tau + law.residual.torque(sample[0], sample[1])
        except RobodynError as error:
            self.end(now, str(error))
            return self._go_on_ending(now)
        if not np.isfinite(tau).all():
            self._warn('not_finite', 'the torque is not finite')
            self.end(now, 'the torque is not finite')
            return self._go_on_ending(now)
        tau, over = saturate(tau, law.dynamics.joints.effort_limit)
        if over.any():
            self._warn_saturated(over)
        return self._answer(tau, clock, now)

    def _pause(self, now: float) -> None:
        """Bring the commands to their end, but keep the references."""
        kept = self.player.take()
        self.end(now, '')
        self.player.restore(kept)
        self._last = None

    # states ---------------------------------------------------------------------------------

    def on_state(self, q: Array, qd: Array, stamp: int, now: float) -> Answer | None:
        """Return the command for a measured state, or None.

        Parameters
        ----------
        q, qd : ndarray, shape (n,)
            Measured positions and velocities.
        stamp : int
            Stamp of the state, ns.
        now : float
            Time of its arrival on the monotonic clock, s.
        """
        law = self.law
        if law.tuning is None:
            return None
        if self.state is not None and stamp == self.state.stamp:
            self._warn('frozen', 'joint_states repeat a stamp: they are ignored')
            return None
        self._ages.live(now)
        age = self._ages.age(stamp, now, law.tuning.state_timeout)
        if age > law.tuning.state_timeout:
            self._warn('stale', f'joint_states arrive {age:.3f} s late: they are ignored')
            return None
        implausible = self._guard.check(q, qd, stamp)
        if implausible is not None:
            self._warn(implausible.kind, f'joint_states: {implausible.text}: ignored')
            return None
        if self._end is not None:  # commands of the previous law are still ending
            self._end = None
            if self._last is not None:
                self._supervisor.go_on_from(self._last.torque)
        state = State(q, qd, stamp, now)
        answer = self._control(law, law.tuning, state, 0.0)
        if answer is not None:
            self.state = state
        return answer

    def on_jump(self) -> None:
        """Continue after the stamps of the states jumped back."""
        self.player.drop('the stamps of joint_states jumped back')
        self._supervisor.restart()
        self._guard.restart()
        self._ages.restart()

    def _control(self, law: ControlLaw, tuning: Tuning, state: State, age: float) -> Answer | None:
        """Return the command for a state in the closed loop; an age of 0 means a new state."""
        now, tuning = state.stamp + int(age * 1e9), self.reaction.tuned(tuning)
        sample = self.player.sample_measured(law, now, state.q, not age)
        playing = self.player.playing
        try:
            command = self._supervisor.command(
                now * 1e-9, law.dynamics, tuning, (state.q, state.qd), age, sample,
                playing.token if playing is not None
                and len(playing.reference.times) > 1 else None,
                self.reaction.advance(now, tuning), self.player.presliding)
        except (FloatingPointError, RobodynError) as error:
            kind = 'not_finite' if isinstance(error, FloatingPointError) else 'pose_refused'
            self._warn(kind, f'{error}: this state is not answered')
            if age:  # not even holding is possible
                self.state = None
                self.end(state.arrived + age, str(error))
            return None
        if command.phase in (HOLDING, ZERO):
            self.player.drop('joint_states are missing')
        if command.saturated.any():
            self._warn_saturated(command.saturated)
        return self._answer(command.torque, now, state.arrived + age)

    def _answer(self, torque: Array, stamp: int, now: float) -> Answer:
        self._last, self._answered = Answer(torque, stamp), now
        return self._last
