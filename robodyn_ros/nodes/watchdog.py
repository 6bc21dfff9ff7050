"""The watchdog of a node that commands: a process of its own on the same command topics.

It is no thread of the process that it watches: it acts as well when that process is stopped, holds
its interpreter for seconds, crashes, or is killed. The node starts it with the parameter
``watchdog``; see `robodyn_ros.control.command_watchdog` for what it commands.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from robodyn_ros.control.command_watchdog import SIZE, CommandWatchdog, Pulse, Terms
from robodyn_ros.control.controller import Controller
from robodyn_ros.nodes.helper_process import HelperProcess, receive, send
from robodyn_ros.nodes.real_time import set_priority
from robodyn_ros.nodes.stamps import set_nanoseconds

WORK = 'watchdog'
PERIOD = 0.005  # s between two looks at the pulse
TELL_EVERY = 0.02  # s between two updates of what holds the robot
SAID_ZERO = 0.5  # s for which zero is repeated when the watched process is gone
LONGEST_END = 3  # s that the end of the process may take
BEGINS_WITHIN = 60.0  # s, within which the process looks for the first time
LEFT_ALONE = 0.5  # s without a look, after which it is not left to end by itself
STANDS = 2.0  # s without a look, after which the process does not count as alive
GOODBYE = 'goodbye'


@dataclass(frozen=True)
class Place:
    """Where the watchdog publishes.

    Attributes
    ----------
    name, namespace : str
        Name of the node that is watched.
    torque, commands : str
        Topics, resolved.
    priority : int
        Real-time priority of the node; the watchdog's is one higher. 0: ordinary scheduling.
    """

    name: str
    namespace: str
    torque: str
    commands: str
    priority: int = 0


class Watchdog:
    """The watched node's side: starts the process and keeps it informed.

    Parameters
    ----------
    helper : HelperProcess
        Starts the process.
    place : Place
        Where it publishes.

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
            self._connection, self.pid = helper.start(WORK, memory)
        finally:
            os.close(memory)
        self._started = time.monotonic()
        self._takeovers, self._told = 0, 0.0
        self._send((place, ()))

    @property
    def alive(self) -> bool:
        """Whether its process runs, and looks at the pulse."""
        looked = self.pulse.last_look
        late = time.monotonic() - (looked + STANDS if looked else self._started + BEGINS_WITHIN)
        if late >= 0:
            return False
        ended = select.poll()
        try:
            ended.register(self._connection, select.POLLIN)
        except ValueError:  # it was stopped
            return False
        return not ended.poll(0)  # it sends nothing but its end

    def tell(self, terms: Terms | None) -> None:
        """Tell how to act from now on."""
        self._send(terms)

    def follow(self, controller: Controller, now: float) -> None:
        """Say that the controller is alive, and every now and then what would hold its robot."""
        if now - self._told > TELL_EVERY:
            self._told = now
            self.pulse.holds(controller.holding_torque())
        self.pulse.beat(now, controller.armed)

    def took_over(self, controller: Controller, now: float) -> bool:
        """Let the controller go on from what the watchdog commanded; return whether it did."""
        count = self.pulse.takeovers
        if count == self._takeovers:
            return False
        self._takeovers = count
        self.pulse.beat(now, controller.armed)
        controller.taken_over(self.pulse.vectors(controller.law.dynamics.joints.n)[2])
        return True

    def stop(self) -> None:
        """End the process; nothing more is commanded."""
        self._send(GOODBYE)
        self._connection.close()
        looked = self.pulse.last_look
        if looked and time.monotonic() - looked > LEFT_ALONE:  # it stands still
            self.kill()

    def kill(self) -> None:
        """End a process that does not answer."""
        self._connection.close()
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def _send(self, value: Any) -> None:
        with suppress(OSError):
            self._connection.settimeout(1.0)
            send(self._connection, value)


def watch(argument: tuple[Any, socket.socket, tuple[int, ...]]) -> None:
    """Watch a node until it is gone; the work of the process."""
    place, connection, (memory,) = argument
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    import rclpy
    from rclpy.node import Node
    from rclpy.signals import SignalHandlerOptions
    from sensor_msgs.msg import JointState
    from std_msgs.msg import Float64MultiArray

    pulse = Pulse(memory)
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    node = Node(f'{place.name}_watchdog', namespace=place.namespace, use_global_arguments=False,
                start_parameter_services=False, enable_rosout=True)
    torque = node.create_publisher(JointState, place.torque, 10)
    commands = node.create_publisher(Float64MultiArray, place.commands, 10)
    if place.priority:
        set_priority(place.priority + 1)  # the node has said where it is not permitted
    watchdog, terms, dead, ended = CommandWatchdog(pulse), None, False, 0.0
    acting = False
    while True:
        now = time.monotonic()
        if not dead:
            news = _news(connection)
            if news == GOODBYE:
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
        if watchdog.acting != acting:  # said after the first command, since logging takes its time
            acting = watchdog.acting
            node.get_logger().error(
                f'{place.name} {"is gone" if dead else "gives no sign of life"}: the watchdog '
                'holds, then commands zero' if acting else
                f'{place.name} commands again: the watchdog ends')
        if dead and (watchdog.done or not acting):
            ended = ended or now
            if now - ended > SAID_ZERO:
                break
        time.sleep(PERIOD)
    # The middleware was once seen to spin for ever when its node was destroyed; the kernel's alarm
    # ends the process even then.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(LONGEST_END)
    with suppress(Exception):  # the system may be going down
        node.destroy_node()
        rclpy.try_shutdown()


def _news(connection: socket.socket) -> Any:
    """Return what the watched node sent: a tuple with terms, `GOODBYE`, EOFError, or None."""
    connection.settimeout(0.0)
    try:
        if not connection.recv(1, socket.MSG_PEEK):
            return EOFError
        value = receive(connection, time.monotonic() + 1.0)
    except BlockingIOError:
        return None
    except (OSError, EOFError):
        return EOFError
    return value if value == GOODBYE else (value,)
