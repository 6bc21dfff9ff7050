"""`Reaction`: what a controller does after an accidental contact, until it is acknowledged.

``yield`` compensates gravity with damping. ``stop`` does so for ``brake_time`` seconds, which
brakes the robot, and then fades to zero torque within ``ramp`` seconds; from then on, the robot's
own brakes must hold it. Without measured states, both fade to zero torque within ``ramp`` seconds.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from robodyn_ros.control.agreed_end import smooth_step
from robodyn_ros.control.player import ReferenceRefused
from robodyn_ros.control.tuning import NO_REACTION, STOP, Tuning

if TYPE_CHECKING:
    from robodyn_ros.control.controller import Controller

LONGEST_STEP = 0.1  # s by which a single command may advance a stop, however the clock jumps


class Reaction:
    """The reaction of a controller to the last contact.

    Attributes
    ----------
    kind : str
        ``stop`` or ``yield``; ``none`` if every contact was acknowledged.
    keep : float
        Fraction of the torque that is commanded now.
    delay : float or None
        Time from the stamp of the last contact to that of the first command that it changed, s.
    """

    def __init__(self) -> None:
        self.delay: float | None = None
        self._stamp = 0
        self.acknowledge()

    @property
    def active(self) -> bool:
        """Whether a contact has not been acknowledged yet."""
        return self.kind != NO_REACTION

    def begin(self, kind: str, stamp: int) -> None:
        """React to a contact with this stamp, ns."""
        self.acknowledge()
        self.kind, self.delay, self._stamp = kind, None, stamp

    def acknowledge(self) -> None:
        """End the reaction."""
        self.kind, self.keep = NO_REACTION, 1.0
        self._elapsed = 0.0
        self._last: int | None = None

    def check(self) -> None:
        """Raise an error if a contact was not acknowledged.

        Raises
        ------
        ReferenceRefused
            A contact was not acknowledged.
        """
        if self.active:
            raise ReferenceRefused('an accidental contact was not acknowledged; valid after '
                                   '~/acknowledge_contact')

    def tuned(self, tuning: Tuning) -> Tuning:
        """Return the tuning during the reaction; in a stop, friction helps to brake."""
        return replace(tuning, friction=0.0) if self.kind == STOP else tuning

    def advance(self, now: int, tuning: Tuning) -> float:
        """Return the fraction of the torque to command at a time, ns; a stop only lowers it."""
        if not self.active:
            return 1.0
        if self._last is not None:  # the fade begins with the last torque before the contact
            self.delay = (now - self._stamp) * 1e-9 if self.delay is None else self.delay
            self._elapsed += min(max((now - self._last) * 1e-9, 0.0), LONGEST_STEP)
        self._last = now
        late = self._elapsed - tuning.brake_time
        if self.kind == STOP and late > 0:
            faded = smooth_step(late / tuning.ramp) if tuning.ramp else 1.0
            self.keep = min(self.keep, 1.0 - faded)
        return self.keep

    def finish(self) -> None:
        """Note that zero torque is commanded; a stop remains at zero torque."""
        if self.kind == STOP:
            self.keep = 0.0


def react(controller: Controller, stamp: int, now: float) -> bool:
    """Let a controller react to an accidental contact; return whether a reaction begins.

    Its references are dropped, and new ones are refused until the contact is acknowledged. No
    reaction begins if the controller is not set to react, or is reacting already.

    Parameters
    ----------
    controller : Controller
        The controller.
    stamp : int
        Stamp of the contact, ns.
    now : float
        Monotonic time, s.
    """
    kind, reaction = controller.law.on_contact, controller.reaction
    if kind == NO_REACTION or reaction.active:
        return False
    reaction.begin(kind, stamp)
    controller.player.drop('accidental contact')
    if controller.law.tuning is None:
        controller.end(now, 'accidental contact')
    return True
