"""`Controller`: measured states and references in, torques out.

It has no clock: arrivals are times of the system's monotonic clock (s), stamps and the clock of
the open loop are whole nanoseconds. It is not thread-safe; its user holds a lock.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from robodyn_ros.control.agreed_end import AgreedEnd
from robodyn_ros.control.player import Law, Player, Playing, ReferenceRefused
from robodyn_ros.control.reference import Reference, saturate
from robodyn_ros.control.state import Answer, State
from robodyn_ros.control.state_checks import StampAge, StateGuard
from robodyn_ros.control.supervisor import HOLDING, WAITING, ZERO, Supervisor
from robodyn_ros.control.tuning import Tuning
from robodyn_ros.errors import RobodynError
from robodyn_ros.spatial import Array

STANDING = 0.5  # s without an advance, after which the clock of the open loop stands still


class Controller:
    """Answers measured states and plays references for the joints of one robot.

    In the open loop (a `Law` without tuning) `tick` plays a reference against a clock; without a
    reference nothing is commanded. In the closed loop every state is answered by a torque of the
    `Supervisor`, references run against the stamps of the states, and `tick` answers in place of
    states that are late.

    When the law changes from closed to open, or the robot is replaced, commands end as `AgreedEnd`
    says; `ending` is true until then.

    Parameters
    ----------
    law : Law
        What it acts by.
    warn : callable
        Called as ``warn(kind, text)`` with what the user should know; the kind is for counting.
    on_phase : callable
        Called as ``on_phase(before, after)`` when the supervisor changes its phase.
    """

    def __init__(self, law: Law, warn: Callable[[str, str], None],
                 on_phase: Callable[[str, str], None]):
        self.law = law
        self.player = Player(warn)
        self.state: State | None = None
        self._warn = warn
        self._supervisor = Supervisor(on_phase)
        self._guard, self._ages = StateGuard(law.dynamics.joints), StampAge()
        self._last: Answer | None = None
        self._end: tuple[AgreedEnd, float, int] | None = None  # with its begin, s and ns
        self._pose: Array | None = None  # of all joints, in the open loop
        self._clock, self._advanced = 0, 0.0  # of the open loop: ns, and when it last advanced

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
        """Whether something must bring commands to their end if this stops."""
        return self.ending or (self.commanding and (
            self.player.playing is not None if self.law.tuning is None
            else self.phase not in (WAITING, ZERO)))

    @property
    def commanding(self) -> bool:
        """Whether a torque other than zero was commanded last."""
        return self._last is not None and bool(self._last.torque.any())

    def use(self, law: Law, now: float) -> None:
        """Act by another law from now on; the joints are the same.

        Parameters
        ----------
        law : Law
            The new law.
        now : float
            Monotonic time, s.
        """
        if (law.tuning is None) != (self.law.tuning is None):
            self.end(now, 'the mode changes')
        if law.dynamics is not self.law.dynamics:
            self._pose = None
        self.law = law

    def end(self, now: float, why: str) -> None:
        """Bring what is commanded to its end: hold, then zero."""
        self.player.drop(why)
        last, tuning = self._last, self.law.tuning
        if self.ending or last is None or not last.torque.any():
            return
        if tuning is None:
            n = len(last.torque)
            end = AgreedEnd(last.torque, np.zeros(n), 0.0, self.law.tolerances.ramp,
                            np.full(n, np.inf))
        elif self.phase == WAITING:
            return
        else:
            end = AgreedEnd(last.torque, self.holding_torque(), tuning.zero_after, tuning.ramp,
                            tuning.rate_limit)
        self._end = end, now, last.stamp
        self._supervisor.forget()
        self.state = None

    def holding_torque(self) -> Array:
        """Return what holds the robot where it was last; zero where that is not known or safe."""
        zero = np.zeros(self.law.dynamics.joints.n)
        if self.state is None or self.law.tuning is None or self.phase in (WAITING, ZERO):
            return zero
        flexible = self.law.tuning.flexible
        try:
            q = self.state.q if flexible is None else flexible.links_at_rest(self.state.q)
            torque, _ = saturate(self.law.dynamics.gravity(q, near=self._supervisor.pose),
                                 self.law.dynamics.joints.effort_limit)
        except RobodynError:
            return zero
        return torque if np.isfinite(torque).all() else zero

    def last_torque(self) -> Array:
        """Return what was commanded last, shape (n,), N m or N."""
        return self._last.torque if self._last is not None else np.zeros(
            self.law.dynamics.joints.n)

    def taken_over(self, torque: Array) -> None:
        """Go on after something else has commanded in its place, with this torque last."""
        self.player.drop('commands were late, and the watchdog took over')
        self._supervisor.go_on_from(torque)
        self._last = Answer(torque, self._last.stamp if self._last is not None else 0)

    def forget(self) -> None:
        """Begin as if nothing had been measured or commanded."""
        self.player.playing = self.state = self._last = self._end = None
        self._supervisor.forget()

    def check(self, reference: Reference, stamp: int, now: float,
              clock: int) -> tuple[Playing, Array]:
        """Check whether a reference can be played; `play` begins to.

        It changes nothing and may take some milliseconds: it needs no lock.

        Parameters
        ----------
        reference : Reference
            The motion.
        stamp : int
            When it begins, ns: on the clock of the states, in the open loop on the given clock; 0:
            now.
        now : float
            Monotonic time, s.
        clock : int
            Time of the open loop's clock, ns.

        Returns
        -------
        playing : Playing
            For `play`.
        tau : ndarray, shape (k, n)
            Torques at the points, N m or N, within the effort limits.

        Raises
        ------
        ReferenceRefused
            It is over, far from the robot, or beyond its limits; or states are missing.
        """
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
        """Play a reference that was checked; it replaces the one that is played."""
        if self.law.tuning is not None and self.state is not None:
            clock = self.state.stamp + int((now - self.state.arrived) * 1e9)
        self.player.play(playing, clock)

    def _warn_saturated(self, over: Array) -> None:
        names = np.array(self.law.dynamics.joints.joint_names)[over]
        self._warn('saturated', f'torque limited to the effort limit: {", ".join(names)}')

    # time -----------------------------------------------------------------------------------

    def tick(self, now: float, clock: int) -> Answer | None:
        """Answer the passing of time.

        Parameters
        ----------
        now : float
            Monotonic time, s.
        clock : int
            Time of the open loop's clock, ns.
        """
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
        return self._answer(torque, stamp + int(elapsed * 1e9))

    def _play(self, law: Law, now: float, clock: int) -> Answer | None:
        """Answer in the open loop."""
        before, self._clock = self._clock, clock
        if clock != before:
            self._advanced = now
        if self.player.playing is None:
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
            tau = law.dynamics.inverse_dynamics(*sample, near=self._pose)
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
        return self._answer(tau, clock)

    def _pause(self, now: float) -> None:
        """Bring commands to their end, and keep the reference."""
        playing, self.player.playing = self.player.playing, None
        self.end(now, '')
        self.player.playing, self._last = playing, None

    # states ---------------------------------------------------------------------------------

    def on_state(self, q: Array, qd: Array, stamp: int, now: float) -> Answer | None:
        """Answer a measured state.

        Parameters
        ----------
        q, qd : ndarray, shape (n,)
            Measured positions and velocities.
        stamp : int
            Its stamp, ns.
        now : float
            When it arrived, monotonic time, s.
        """
        law = self.law
        if law.tuning is None:
            return None
        if self.state is not None and stamp == self.state.stamp:
            self._warn('frozen', 'joint_states repeat a stamp: they are ignored')
            return None
        age = self._ages.age(stamp, now, law.tuning.state_timeout)
        if age > law.tuning.state_timeout:
            self._warn('stale', f'joint_states arrive {age:.3f} s late: they are ignored')
            return None
        implausible = self._guard.check(q, qd, stamp)
        if implausible is not None:
            self._warn(implausible.kind, f'joint_states: {implausible.text}: ignored')
            return None
        if self._end is not None:  # what an earlier law left
            self._end = None
            if self._last is not None:
                self._supervisor.go_on_from(self._last.torque)
        state = State(q, qd, stamp, now)
        answer = self._control(law, law.tuning, state, 0.0)
        if answer is not None:
            self.state = state
        return answer

    def on_jump(self) -> None:
        """Go on after the stamps of the states jumped back."""
        self.player.drop('the stamps of joint_states jumped back')
        self._supervisor.restart()
        self._guard.restart()
        self._ages.restart()

    def _control(self, law: Law, tuning: Tuning, state: State, age: float) -> Answer | None:
        """Answer a state in the closed loop; an age of 0: it is new."""
        now = state.stamp + int(age * 1e9)
        sample = self.player.sample_measured(law, now, state.q, not age)
        playing = self.player.playing
        try:
            command = self._supervisor.command(
                now * 1e-9, law.dynamics, tuning, (state.q, state.qd), age, sample,
                playing.token if playing is not None
                and len(playing.reference.times) > 1 else None)
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
        return self._answer(command.torque, now)

    def _answer(self, torque: Array, stamp: int) -> Answer:
        self._last = Answer(torque, stamp)
        return self._last
