"""The watchdog of a controlling node: a separate process that publishes on the same topics.

Since it is a process and not a thread, it also acts if the watched process is stopped, blocks its
interpreter for seconds, crashes, or is killed. The node starts it if the parameter ``watchdog`` is
true; for its commands see `robodyn_ros.control.command_watchdog`.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from robodyn_ros.control.command_watchdog import SIZE, CommandWatchdog, Pulse, Terms
from robodyn_ros.control.controller import Controller
from robodyn_ros.nodes.helper_process import HelperProcess, receive, send
from robodyn_ros.nodes.real_time import set_priority
from robodyn_ros.nodes.stamps import set_nanoseconds

TASK = 'watchdog'
PERIOD = 0.005  # s between two checks of the pulse
UPDATE_PERIOD = 0.02  # s between two updates of the holding torque
ZERO_REPEATED = 0.5  # s for which zero is repeated after the watched process has ended
LONGEST_END = 3  # s, time limit for the end of the process
BEGINS_WITHIN = 60.0  # s, time limit for the first check of the process
KILLED_AFTER = 0.5  # s without a check, after which the process is killed when it should end
ALIVE_FOR = 2.0  # s without a check, after which the process no longer counts as alive
END = 'end'  # message that ends the process


@dataclass(frozen=True)
class Place:
    """The node and the topics of a watchdog.

    Attributes
    ----------
    name, namespace : str
        Name of the watched node.
    torque, commands : str
        Resolved topics of the commands.
    priority : int
        Real-time priority of the node; that of the watchdog is one higher. 0: no real-time
        priority.
    """

    name: str
    namespace: str
    torque: str
    commands: str
    priority: int = 0


class Watchdog:
    """Starts the process of a watchdog, and keeps it informed; used by the watched node.

    Parameters
    ----------
    helper : HelperProcess
        Starts the process.
    place : Place
        The watched node and its topics.

    Raises
    ------
    HelperError
        The process cannot be started.
    """

    def __init__(self, helper: HelperProcess, place: Place):
        memory = os.memfd_create('robodyn_watchdog')
        os.ftruncate(memory, SIZE)
        try:
            self.pulse = Pulse(memory)
            self._connection, self.pid = helper.start(TASK, memory)
        finally:
            os.close(memory)
        self._started = time.monotonic()
        self._takeovers, self._updated = 0, 0.0
        self._send((place, ()))

    @property
    def alive(self) -> bool:
        """Whether the process is running and checks the pulse."""
        checked = self.pulse.last_check
        alive_until = checked + ALIVE_FOR if checked else self._started + BEGINS_WITHIN
        if time.monotonic() >= alive_until:
            return False
        ended = select.poll()
        try:
            ended.register(self._connection, select.POLLIN)
        except ValueError:  # already stopped
            return False
        return not ended.poll(0)  # the connection becomes readable only when the process ends

    def send_terms(self, terms: Terms | None) -> None:
        """Send the terms by which the watchdog acts from now on."""
        self._send(terms)

    def follow(self, controller: Controller, now: float) -> None:
        """Signal that the controller is alive, and regularly update the holding torque."""
        if now - self._updated > UPDATE_PERIOD:
            self._updated = now
            self.pulse.holds(controller.holding_torque())
        self.pulse.beat(now, controller.armed)

    def took_over(self, controller: Controller, now: float) -> bool:
        """If the watchdog has commanded, let the controller continue from there; return if so."""
        count = self.pulse.takeovers
        if count == self._takeovers:
            return False
        self._takeovers = count
        self.pulse.beat(now, controller.armed)
        controller.taken_over(self.pulse.vectors(controller.law.dynamics.joints.n)[2])
        return True

    def stop(self) -> None:
        """End the process; nothing more is commanded."""
        self._send(END)
        self._connection.close()
        checked = self.pulse.last_check
        if checked and time.monotonic() - checked > KILLED_AFTER:  # it is suspended
            self.kill()

    def kill(self) -> None:
        """Kill a process that does not respond."""
        self._connection.close()
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def _send(self, value: Any) -> None:
        with suppress(OSError):
            self._connection.settimeout(1.0)
            send(self._connection, value)


def ros_arguments(words: list[str]) -> list[str]:
    """Return the arguments from ``--ros-args`` on, for example the enclave.

    Those before are the arguments of another program, such as ``robodyn run NODE -r FROM:=TO``.
    """
    return words[words.index('--ros-args'):] if '--ros-args' in words else []


def watch(argument: tuple[Any, socket.socket, tuple[int, ...]]) -> None:
    """Watch a node until it has ended; the task of the process."""
    place, connection, (memory,) = argument
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    import rclpy
    from rclpy.node import Node
    from rclpy.signals import SignalHandlerOptions
    from sensor_msgs.msg import JointState
    from std_msgs.msg import Float64MultiArray

    pulse = Pulse(memory)
    rclpy.init(args=ros_arguments(sys.argv), signal_handler_options=SignalHandlerOptions.NO)
    node = Node(f'{place.name}_watchdog', namespace=place.namespace, use_global_arguments=False,
                start_parameter_services=False, enable_rosout=True)
    torque = node.create_publisher(JointState, place.torque, 10)
    commands = node.create_publisher(Float64MultiArray, place.commands, 10)
    if place.priority:
        set_priority(place.priority + 1)  # the node has warned if this is not permitted
    watchdog, terms, dead, ended = CommandWatchdog(pulse), None, False, 0.0
    acting = False
    while True:
        now = time.monotonic()
        if not dead:
            news = _news(connection)
            if news == END:
                break
            if news is EOFError:
                dead = True
            elif news is not None:
                terms = news[0]
        answer = watchdog.tick(terms, dead, now)
        if answer is not None and terms is not None:
            effort, stamp = answer
            message = JointState(name=terms.names, effort=effort.tolist())
            set_nanoseconds(message.header.stamp, stamp)
            torque.publish(message)
            commands.publish(Float64MultiArray(data=effort[list(terms.order)].tolist()))
        if watchdog.acting != acting:  # logged after the first command, since logging takes time
            acting = watchdog.acting
            node.get_logger().error(
                f'{place.name} {"is gone" if dead else "gives no sign of life"}: the watchdog '
                'holds, then commands zero' if acting else
                f'{place.name} commands again: the watchdog ends')
        if dead and (watchdog.done or not acting):
            ended = ended or now
            if now - ended > ZERO_REPEATED:
                break
        time.sleep(PERIOD)
    # The middleware may hang when its node is destroyed; the alarm of the kernel then ends the
    # process.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(LONGEST_END)
    with suppress(Exception):  # the system may be going down
        node.destroy_node()
        rclpy.try_shutdown()


def _news(connection: socket.socket) -> Any:
    """Return what the watched node has sent: a tuple of terms, `END`, EOFError, or None."""
    connection.settimeout(0.0)
    try:
        if not connection.recv(1, socket.MSG_PEEK):
            return EOFError
        value = receive(connection, time.monotonic() + 1.0)
    except BlockingIOError:
        return None
    except (OSError, EOFError):
        return EOFError
    return value if value == END else (value,)
