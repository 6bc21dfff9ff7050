"""`ContactDetector`: decides from residuals whether something touches the robot."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robodyn_ros.model import Model
from robodyn_ros.observation.bands import Bands, Conditions
from robodyn_ros.observation.thresholds import ContactThresholds
from robodyn_ros.spatial import Array

NONE, INTENDED, ACCIDENTAL = 'none', 'intended', 'accidental'
CONFIRMED = 0.002  # s for which a fast residual must exceed its threshold
PERSISTS = 0.1  # s for which a slow residual must exceed its threshold
RELEASED = 0.7  # fraction of the threshold below which a contact ends
QUIET = 0.2  # s for which all residuals must be below this fraction


@dataclass(frozen=True)
class Contact:
    """A decision about contact.

    Attributes
    ----------
    state : str
        ``none``, ``intended`` (slow) or ``accidental`` (fast).
    joint : str
        The joint with the largest ratio of residual to threshold.
    link : str
        The child link of the last joint whose residual exceeds its threshold. The contact is on
        this link or on one behind it.
    direction : int
        Sign of the external torque of ``joint``.
    magnitude, threshold : float
        Residual and threshold of ``joint`` in the band with the larger ratio, N m or N.
    """

    state: str
    joint: str
    link: str
    direction: int
    magnitude: float
    threshold: float


class ContactDetector:
    """Compares the fast and the slow part of residuals with thresholds.

    A contact is accidental if the fast part exceeds its threshold, and intended if only the slow
    part does. An accidental contact stays accidental until it ends.

    Parameters
    ----------
    model : Model
        The robot.
    thresholds : ContactThresholds
        Largest residuals without contact.

    Attributes
    ----------
    offset : ndarray, shape (n,)
        Residuals that count as no contact, N m or N.
    deviation : ndarray, shape (n,)
        Standard deviation of the last residuals, N m or N.
    """

    def __init__(self, model: Model, thresholds: ContactThresholds):
        self.thresholds, self._names = thresholds, thresholds.joint_names
        children = {joint.name: joint.child for joint in model.description.joints}
        self._links = [children[name] for name in self._names]
        depth = [model.body_joints.index(name) for name in self._names]
        self._order = np.argsort(depth)  # parents come first
        self._bands = Bands(thresholds.separation)
        self._conditions = Conditions(thresholds.separation)
        self.reset()

    def reset(self) -> None:
        """Forget all residuals and the contact."""
        self._bands.reset()
        self._conditions.reset()
        self.offset: Array = np.zeros(len(self._names))
        self.deviation = self.thresholds.deviation
        self.state = NONE
        self._over: dict[str, float | None] = {'fast': None, 'slow': None}
        self._calm: float | None = None

    def zero(self, residual: Array) -> None:
        """Use a residual as the one that is measured without contact."""
        self.reset()
        self.offset = np.array(residual)

    def update(self, t: float, qd: Array, residual: Array, rate: Array | None = None) -> Contact:
        """Return the decision after another residual.

        Parameters
        ----------
        t : float
            Time, s.
        qd, residual : ndarray, shape (n,)
            Velocities (rad/s or m/s) and external torques (N m or N).
        rate : ndarray, shape (n,), optional
            Rate of the momentum, N m or N, `MomentumObserver.rate`; without it, the robot is
            assumed not to accelerate.
        """
        torque = residual - self.offset
        slow = self._bands.update(t, torque)
        fast = torque - slow
        conditions = self._conditions.update(t, qd, rate)
        self.deviation = self.thresholds.deviation_in(conditions)
        fast_limit, slow_limit = self.thresholds.at(qd, conditions)
        quick, steady = np.abs(fast) / fast_limit, np.abs(slow) / slow_limit
        accident = self._lasts('fast', t, quick.max() > 1, CONFIRMED)
        touched = self._lasts('slow', t, steady.max() > 1, PERSISTS)
        if accident or self.state == ACCIDENTAL:
            self.state = ACCIDENTAL
        elif touched:
            self.state = INTENDED
        self._release(t, max(quick.max(), steady.max()))
        in_fast = quick.max() >= steady.max()
        ratio, part = (quick, fast) if in_fast else (steady, slow)
        limit = fast_limit if in_fast else slow_limit
        joint = int(np.argmax(ratio))
        exceeding = [k for k in self._order if ratio[k] > 1]
        last = exceeding[-1] if exceeding else joint
        return Contact(self.state, self._names[joint], self._links[last],
                       int(np.sign(part[joint])), float(abs(part[joint])), float(limit[joint]))

    def _lasts(self, band: str, t: float, over: bool, time: float) -> bool:
        """Return whether a residual has exceeded its threshold for a time, s."""
        since = self._over[band]
        if not over or (since is not None and t < since):
            self._over[band] = t if over else None
            return False
        if since is None:
            self._over[band] = since = t
        return t - since >= time - 1e-9

    def _release(self, t: float, largest: float) -> None:
        """End the contact when all residuals have been small for a while."""
        if largest > RELEASED:
            self._calm = None
            return
        if self._calm is None or t < self._calm:
            self._calm = t
        if t - self._calm >= QUIET:
            self.state = NONE
