"""`WatchdogKeeper`: starts the watchdog of a node, and a new one if it dies or is suspended."""

from __future__ import annotations

from robodyn_ros.control.command_watchdog import Terms
from robodyn_ros.control.controller import Controller
from robodyn_ros.nodes.base import DynamicsNode
from robodyn_ros.nodes.helper_process import HelperError, HelperProcess
from robodyn_ros.nodes.watchdog import Place, Watchdog
from robodyn_ros.spatial import Array


class WatchdogKeeper:
    """The watchdog of a node; hides that its process may be replaced.

    Parameters
    ----------
    node : DynamicsNode
        The watched node.
    helper : HelperProcess
        Starts the processes.
    place : Place
        Name of the node, and topics on which the watchdog publishes.
    """

    def __init__(self, node: DynamicsNode, helper: HelperProcess, place: Place):
        self._node, self._helper, self._place = node, helper, place
        self._watchdog: Watchdog | None = None
        self._terms: Terms | None = None
        self._stopped = False
        self._start()

    def check(self) -> None:
        """Start a new watchdog in the background if there is none or it does not respond."""
        watchdog = self._watchdog
        if self._stopped or (watchdog is not None and watchdog.alive):
            return
        self._node.warn('watchdog_lost', 'the watchdog has died or is suspended: it is '
                                         'restarted')
        self._node.newest_in_background('watchdog', self._replace)

    def send_terms(self, terms: Terms) -> None:
        """Send the terms by which the watchdog acts from now on."""
        self._terms = terms
        if self._watchdog is not None:
            self._watchdog.send_terms(terms)

    def follow(self, controller: Controller, now: float) -> None:
        """Send a sign of life of the controller, and at intervals its holding torque."""
        if self._watchdog is not None:
            self._watchdog.follow(controller, now)

    def command(self, torque: Array, stamp: int) -> None:
        """Send the last command (N m or N) and its stamp (ns)."""
        if self._watchdog is not None:
            self._watchdog.pulse.command(torque, stamp)

    def disarm(self, now: float) -> None:
        """Tell the watchdog that there are no commands to bring to an end."""
        if self._watchdog is not None:
            self._watchdog.pulse.beat(now, False)

    def notice_takeover(self, controller: Controller, now: float) -> None:
        """Let the controller continue from the commands of the watchdog if there were any."""
        if self._watchdog is not None and self._watchdog.took_over(controller, now):
            self._node.warn('taken_over', 'this process was suspended, and the watchdog '
                                          'commanded in its place')

    def stop(self) -> None:
        """Stop the watchdog; it sends no further commands."""
        self._stopped = True
        watchdog, self._watchdog = self._watchdog, None
        if watchdog is not None:
            watchdog.stop()

    def _start(self) -> None:
        try:
            watchdog = Watchdog(self._helper, self._place)
        except HelperError as error:
            self._node.report('error', f'there is no watchdog: {error}')
            return
        if self._terms is not None:
            watchdog.send_terms(self._terms)
        self._watchdog = watchdog

    def _replace(self) -> None:
        """Start a new watchdog; this may take seconds, while control continues."""
        lost = self._watchdog
        if self._stopped or (lost is not None and lost.alive):
            return
        if lost is not None:
            lost.kill()
        self._start()
        if self._stopped:  # meanwhile
            self.stop()
