"""`ContactListener`: lets a controller react to the contacts that an observer finds."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from std_srvs.srv import Trigger

from robodyn_interfaces.msg import Contact
from robodyn_ros.control import Controller
from robodyn_ros.control.reaction import react
from robodyn_ros.control.tuning import NO_REACTION
from robodyn_ros.nodes.fast_path import DEPTH, FastSubscriptions
from robodyn_ros.nodes.parameters import declare
from robodyn_ros.nodes.stamps import nanoseconds

if TYPE_CHECKING:
    from robodyn_ros.nodes.base import DynamicsNode

SENSOR_DATA = QoSProfile(depth=DEPTH, reliability=ReliabilityPolicy.BEST_EFFORT)
SILENT = 1.0  # s without a contact message, after which the node warns
STATES = (Contact.NONE, Contact.INTENDED, Contact.ACCIDENTAL)


class ContactListener:
    """Subscribes to contacts while the node is to react to them, and serves their acknowledgement.

    Parameters
    ----------
    node : DynamicsNode
        The node, with the parameters of `declare`.
    lock : threading.RLock
        Guards the controller.
    """

    def __init__(self, node: DynamicsNode, lock: Any):
        self._node, self._lock = node, lock
        self._controller: Controller | None = None
        self._fast: FastSubscriptions | None = None
        self._changing = threading.Lock()
        self._configured = False
        self._heard = 0.0  # monotonic time of the last message
        self._last: Contact | None = None
        self._cause = ''  # of the reaction

    @staticmethod
    def declare(node: Node) -> None:
        """Declare topic and timeout; ``on_contact`` is a parameter of the tuning."""
        declare(node, 'contact_topic', 'observer/contact', 'topic of contacts '
                '(robodyn_interfaces/Contact), used unless on_contact is none', read_only=True)
        declare(node, 'contact_timeout', 0.1, 'largest difference between the stamps of a contact '
                'and of the joint states, s; other contacts are ignored', range_=(0.001, 600.0))

    def set_up(self) -> None:
        """Create the service, and the subscription if it is needed."""
        node = self._node
        node.keep(node.create_service, node.destroy_service, Trigger, '~/acknowledge_contact',
                  self._on_acknowledge)
        self._configured = True
        self._subscribe()

    def stop(self) -> None:
        """End the subscription."""
        self._configured = False
        self._subscribe()

    def follow(self, controller: Controller | None) -> None:
        """Let this controller react from now on."""
        self._controller = controller
        self._subscribe()

    def _subscribe(self) -> None:
        wanted = self._configured and self._reacts()
        with self._changing:
            if wanted == (self._fast is not None):
                return
            if self._fast is not None:
                self._fast.stop()
                self._fast = None
                return
            self._heard, self._last = time.monotonic(), None
            self._fast = FastSubscriptions(self._node, self._node.on_failure)
            self._fast.add(Contact, self._node.get_parameter('contact_topic').value,
                           self._on_contact, SENSOR_DATA)
            self._fast.start()

    def _reacts(self) -> bool:
        controller = self._controller
        return controller is not None and controller.law.on_contact != NO_REACTION

    # messages -------------------------------------------------------------------------------

    def _on_contact(self, message: Contact) -> None:
        node, controller = self._node, self._controller
        if controller is None or not node.active:
            return
        problem = self._problem(controller, message)
        if problem:
            node.warn('contact_refused', f'a contact is ignored: {problem}')
            return
        age = self._age(controller, nanoseconds(message.header.stamp))
        limit = node.get_parameter('contact_timeout').value
        if abs(age) > limit:
            node.warn('contact_stale', f'a contact is ignored: its stamp is {abs(age):.3f} s '
                      f'{"behind" if age > 0 else "ahead of"} the joint states; valid: at most '
                      f'{limit:g} s')
            return
        self._heard, self._last = time.monotonic(), message
        if message.state != Contact.ACCIDENTAL:
            return
        with self._lock:
            new = controller is self._controller and react(
                controller, nanoseconds(message.header.stamp), time.monotonic())
        if new:
            self._cause = f'joint {message.joint}, link {message.link}'
            node.warn('contact', f'accidental contact at {self._cause}: '
                                 f'{controller.reaction.kind}, until ~/acknowledge_contact')

    @staticmethod
    def _problem(controller: Controller, message: Contact) -> str:
        """Return what is wrong with a message; empty if it can be used."""
        names = controller.law.dynamics.joints.joint_names
        if message.state not in STATES:
            return f'its state is {message.state}; valid: {", ".join(map(str, STATES))}'
        if not np.isfinite([message.magnitude, message.threshold]).all():
            return 'its magnitude or threshold is not finite'
        if message.joint not in names:
            return f'its joint is {message.joint[:80]!r}; valid: {", ".join(names[:20])}'
        return ''

    def _age(self, controller: Controller, stamp: int) -> float:
        """Return how far a stamp is behind the clock of the controller, s."""
        state = controller.state
        if controller.law.tuning is None or state is None:
            now = self._node.get_clock().now().nanoseconds
        else:
            now = state.stamp
        return (now - stamp) * 1e-9

    def _on_acknowledge(self, request: Trigger.Request,
                        response: Trigger.Response) -> Trigger.Response:
        controller, last = self._controller, self._last
        if controller is None or not controller.reaction.active:
            response.message = 'there is no contact to acknowledge'
        elif last is not None and last.state == Contact.ACCIDENTAL and not self._silent():
            response.message = (f'the contact at joint {last.joint} persists: '
                                f'{last.magnitude:.3g} N m (N), threshold {last.threshold:.3g}; '
                                'remove what touches the robot, or call ~/zero of the observer')
        else:
            with self._lock:
                controller.reaction.acknowledge()
            response.success = True
            response.message = f'the contact at {self._cause} is acknowledged'
            self._node.report('info', response.message)
        return response

    def _silent(self) -> bool:
        return time.monotonic() - self._heard > SILENT

    # diagnostics ----------------------------------------------------------------------------

    def problem(self) -> str:
        """Return what the user must know; empty if there is nothing."""
        controller = self._controller
        if controller is not None and controller.reaction.active:
            return (f'{controller.reaction.kind} after an accidental contact at {self._cause}: '
                    'waiting for ~/acknowledge_contact')
        if self._fast is not None and self._silent():
            return 'no messages about contacts arrive, so that the node cannot react to contacts'
        return ''

    def check(self) -> None:
        """Warn if no messages about contacts arrive."""
        if self._fast is not None and self._silent():
            self._node.warn('no_contacts', 'waiting for contacts on the topic '
                            f'{self._node.get_parameter("contact_topic").value}: without them the '
                            'node cannot react')

    def values(self) -> dict[str, Any]:
        """Return values for /diagnostics."""
        controller = self._controller
        if controller is None or (self._fast is None and not controller.reaction.active):
            return {}
        delay = controller.reaction.delay
        return {'reaction': controller.reaction.kind,
                'reaction_delay': '' if delay is None else f'{delay:.6f}'}
