"""`WatchdogKeeper`: starts the watchdog of a node; replaces it where it dies or stands still."""

from __future__ import annotations

from robodyn_ros.control.command_watchdog import Terms
from robodyn_ros.control.controller import Controller
from robodyn_ros.nodes.base import DynamicsNode
from robodyn_ros.nodes.helper_process import HelperError, HelperProcess
from robodyn_ros.nodes.watchdog import Place, Watchdog
from robodyn_ros.spatial import Array


class WatchdogKeeper:
    """The watchdog of a node, whichever process it runs in.

    Parameters
    ----------
    node : DynamicsNode
        The node that is watched.
    helper : HelperProcess
        Starts the processes.
    place : Place
        Where they publish.
    """

    def __init__(self, node: DynamicsNode, helper: HelperProcess, place: Place):
        self._node, self._helper, self._place = node, helper, place
        self._watchdog: Watchdog | None = None
        self._terms: Terms | None = None
        self._stopped = False
        self._start()

    def look(self) -> None:
        """Start another one, in the background, where there is none or it does not act."""
        watchdog = self._watchdog
        if self._stopped or (watchdog is not None and watchdog.alive):
            return
        self._node.warn('watchdog_lost', 'the watchdog has died or stands still: it is started '
                                         'again')
        self._node.newest_in_background('watchdog', self._replace)

    def tell(self, terms: Terms) -> None:
        """Tell how to act from now on."""
        self._terms = terms
        if self._watchdog is not None:
            self._watchdog.tell(terms)

    def follow(self, controller: Controller, now: float) -> None:
        """Say that the controller is alive, and every now and then what would hold its robot."""
        if self._watchdog is not None:
            self._watchdog.follow(controller, now)

    def command(self, torque: Array, stamp: int) -> None:
        """Say what was commanded last, N m or N, and its stamp, ns."""
        if self._watchdog is not None:
            self._watchdog.pulse.command(torque, stamp)

    def disarm(self, now: float) -> None:
        """Say that there is nothing to bring to an end."""
        if self._watchdog is not None:
            self._watchdog.pulse.beat(now, False)

    def notice_takeover(self, controller: Controller, now: float) -> None:
        """Let the controller go on from what the watchdog commanded, if it did."""
        if self._watchdog is not None and self._watchdog.took_over(controller, now):
            self._node.warn('taken_over', 'this process stood still, and the watchdog commanded '
                                          'in its place')

    def stop(self) -> None:
        """End it; nothing more is commanded."""
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
            watchdog.tell(self._terms)
        self._watchdog = watchdog

    def _replace(self) -> None:
        """It may take seconds; meanwhile control goes on."""
        lost = self._watchdog
        if self._stopped or (lost is not None and lost.alive):
            return
        if lost is not None:
            lost.kill()
        self._start()
        if self._stopped:  # meanwhile
            self.stop()
