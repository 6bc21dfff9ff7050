"""`GazeboListener`: receives the joint states of a robot from Gazebo."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from robodyn_ros.simulation.gazebo import confirmation_topics, gazebo_topic
from robodyn_ros.simulation.gazebo_bindings import GazeboError, load_bindings

PATIENCE = 5.0  # s of wall time, timeout for Gazebo
SETTLED = 4  # clock messages with the same time after which a change of the time is complete


class GazeboListener:
    """The newest joint state of a robot, and the confirmations of its forces.

    Parameters
    ----------
    world, name : str
        Names of the world and of the robot in Gazebo.
    joints : tuple of str
        The joints that are measured, in the order of all arrays.
    on_state : callable, optional
        Called on a thread of Gazebo Transport for a new joint state, at most once a period.
    period : int
        Period of these calls in simulated time, ns. Gazebo before gz-sim 8.14 ignores the rate
        of its joint states, and publishes them in every physics step.

    Attributes
    ----------
    stamp : int
        Simulated time of the newest state, ns.
    count : int
        Number of states since `forget`; Gazebo repeats the last one while the world is paused.
    missing : tuple of str
        Joints that Gazebo does not have.
    position, velocity : ndarray, shape (n,)
        Positions and velocities in Gazebo, relative to the start position.
    taken : int
        Number of sets of forces that Gazebo has confirmed.
    interrupted : bool
        Whether all waiting has been ended.
    """

    def __init__(self, world: str, name: str, joints: tuple[str, ...],
                 on_state: Callable[[], None] | None = None, period: int = 0):
        gazebo = load_bindings()
        self.version = gazebo.version
        self.interrupted = False
        self.stamp = self.count = self.taken = 0
        self.missing: tuple[str, ...] = ()
        self.position = self.velocity = np.zeros(len(joints))
        self._world, self._name, self._joints = world, name, joints
        self._on_state, self._period = on_state, period
        self._called = 0  # simulated time of the last call of ``on_state``, ns
        self._heard = threading.Condition()
        self._last_heard = -np.inf  # s of time.monotonic
        self._messages = gazebo.messages
        self._node = gazebo.Node()
        self._topics = (gazebo_topic(f'/world/{world}/model/{name}/joint_state'),
                        confirmation_topics(name)[1])
        self._node.subscribe(self._messages['Model'], self._topics[0], self._on_message)
        self._node.subscribe(self._messages['Empty'], self._topics[1], self._on_taken)

    @property
    def silence(self) -> float:
        """Time since the last joint state, s of wall time; a paused Gazebo sends them too."""
        return time.monotonic() - self._last_heard

    def forget(self) -> None:
        """Restart the count of states."""
        with self._heard:
            self.count = 0

    def wait(self, condition: Callable[[], bool], what: str, patience: float = PATIENCE) -> None:
        """Wait until a condition on received messages is true, at most for ``patience`` seconds.

        Raises
        ------
        GazeboError
            The wait timed out, or the listener was interrupted.
        """
        with self._heard:
            if not self._heard.wait_for(lambda: self.interrupted or condition(),
                                        patience) or self.interrupted:
                raise self._missed(f'{what} of {self._name!r} in the world {self._world!r}',
                                   patience)

    def until(self, condition: Callable[[], Any], what: str) -> None:
        """Poll a condition until it is true; for errors see `wait`."""
        end = time.monotonic() + PATIENCE
        while not condition():
            if self.interrupted or time.monotonic() > end:
                raise self._missed(what)
            time.sleep(0.002)

    def _missed(self, what: str, patience: float = PATIENCE) -> GazeboError:
        return GazeboError(f'the connection to Gazebo was closed before {what}' if self.interrupted
                           else f'waited {patience:g} s for {what}')

    def change_time(self, change: Callable[[], Any], target: Callable[[int], int]) -> None:
        """Change the time of the world, and wait until the change is complete.

        Parameters
        ----------
        change : callable
            Requests the change from Gazebo.
        target : callable
            Returns the time after the change for a time before it, ns.
        """
        with self._clock() as times:
            end = target(times[-1])
            times.clear()
            change()
            self.until(lambda: times.count(end) >= SETTLED, f'the time {end * 1e-9:g} s')

    def clock(self) -> int:
        """Return the simulated time of the world, ns."""
        with self._clock() as times:
            return times[-1]

    @contextmanager
    def _clock(self) -> Iterator[list[int]]:
        """Collect the times of the world, the first `SETTLED` of which have arrived."""
        times: list[int] = []

        def on_clock(message: Any) -> None:
            times.append(message.sim.sec * 1_000_000_000 + message.sim.nsec)

        topic = gazebo_topic(f'/world/{self._world}/clock')
        self._node.subscribe(self._messages['Clock'], topic, on_clock)
        try:
            self.until(lambda: len(times) >= SETTLED, 'the clock')
            yield times
        finally:
            self._node.unsubscribe(topic)

    def interrupt(self) -> None:
        """End all waiting, now and later."""
        self.interrupted = True
        with self._heard:
            self._heard.notify_all()

    def close(self) -> None:
        """Stop listening."""
        self._on_state = None
        self.interrupt()
        for topic in self._topics:
            self._node.unsubscribe(topic)

    def _on_taken(self, message: Any) -> None:
        with self._heard:
            self.taken += 1
            self._heard.notify_all()

    def _on_message(self, message: Any) -> None:
        """Store a joint state; runs on a thread of Gazebo Transport, so it must not raise."""
        stamp = message.header.stamp.sec * 1_000_000_000 + message.header.stamp.nsec
        with self._heard:
            new = stamp != self.stamp or not self.count
            if new:
                axes = {joint.name: joint.axis1 for joint in message.joint}
                self.missing = tuple(name for name in self._joints if name not in axes)
                if not self.missing:
                    self.position = np.array([axes[name].position for name in self._joints])
                    self.velocity = np.array([axes[name].velocity for name in self._joints])
                self.stamp = stamp
            due = new and (not self.count or not 0 < stamp - self._called < self._period)
            if due:
                self._called = stamp
            self.count += 1
            self._last_heard = time.monotonic()
            self._heard.notify_all()
        if due and self._on_state is not None:
            self._on_state()
