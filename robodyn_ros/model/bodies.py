"""The moving bodies of a description, with fixed and locked links merged into them."""

from __future__ import annotations

import numpy as np

from robodyn_ros.description.robot import Joint, Mimic, RobotDescription
from robodyn_ros.description.tree import joints_parent_first
from robodyn_ros.model.link_frame import LinkFrame
from robodyn_ros.spatial import (
    Array,
    axis_rotation,
    inertial_parameters,
    transform_inertial,
)

ROUND_OFF = 1e-15  # a few units in the last place of 1


class Bodies:
    """The moving bodies of a description, parents first, with the links that are fixed to them.

    Parameters
    ----------
    description : RobotDescription
        The robot.
    locked : dict of str to float
        Positions of the joints that do not move, rad or m.
    floating : bool
        Whether the velocities begin with the six of the base.

    Attributes
    ----------
    coordinates : list of Joint
        The joints with positions of their own: neither fixed, locked nor mimic.
    bodies : list of Joint
        The joint that moves each body.
    parents : list of int
        Index of each body's parent; -1 is the base.
    rotations, translations : list of ndarray, shape (3, 3) and (3,)
        Pose of each body's joint in the parent's frame at position 0; translations in m.
    frames : dict of str to LinkFrame
        Body and pose of each link.
    carried : dict of int to ndarray, shape (10,)
        Inertial parameters of each body, in its frame; key -1 is the base.
    """

    def __init__(self, description: RobotDescription, locked: dict[str, float],
                 floating: bool = False):
        self._first = 6 if floating else 0  # velocities of the base before those of the joints
        self.coordinates: list[Joint] = [
            joint for joint in description.joints
            if joint.type != 'fixed' and joint.mimic is None and joint.name not in locked]
        self.bodies: list[Joint] = []
        self.parents: list[int] = []
        self.rotations: list[Array] = []
        self.translations: list[Array] = []
        self.frames: dict[str, LinkFrame] = {}
        self.carried: dict[int, Array] = {-1: np.zeros(10)}
        self._inertials = {link.name: link.inertial for link in description.links}
        self._place(description.root, LinkFrame(-1, np.eye(3), np.zeros(3)))
        for joint, _ in joints_parent_first(description.root, description.joints):
            self._attach(joint, locked)

    def _attach(self, joint: Joint, locked: dict[str, float]) -> None:
        parent = self.frames[joint.parent]
        rotation = clean(parent.rotation @ joint.rotation)
        translation = parent.translation + parent.rotation @ joint.translation
        if joint.type == 'fixed' or joint.name in locked:
            position = locked.get(joint.name, 0.0)
            if joint.type == 'prismatic':
                translation = translation + rotation @ joint.axis * position
            elif joint.type != 'fixed':
                rotation = clean(rotation @ axis_rotation(joint.axis, position))
            self._place(joint.child, LinkFrame(parent.body, rotation, translation))
        else:
            self.bodies.append(joint)
            self.parents.append(parent.body)
            self.rotations.append(rotation)
            self.translations.append(clean(translation))
            self.carried[len(self.bodies) - 1] = np.zeros(10)
            self._place(joint.child, LinkFrame(len(self.bodies) - 1, np.eye(3), np.zeros(3)))

    def _place(self, link: str, frame: LinkFrame) -> None:
        self.frames[link] = frame
        inertial = self._inertials[link]
        if inertial is not None:
            self.carried[frame.body] = self.carried[frame.body] + transform_inertial(
                inertial_parameters(inertial), frame.rotation, frame.translation)

    def rows(self) -> Array:
        """Return the derivative of each body's joint velocity w.r.t. qd, (b, n)."""
        index = {joint.name: i for i, joint in enumerate(self.coordinates, self._first)}
        rows = np.zeros((len(self.bodies), self._first + len(self.coordinates)))
        for i, joint in enumerate(self.bodies):
            mimic = joint.mimic or Mimic(joint.name)
            rows[i, index[mimic.joint]] = mimic.multiplier
        return rows


def clean(values: Array) -> Array:
    """Replace the round-off of right angles (cos(pi/2) = 6e-17) by exact zeros and ones."""
    cleaned = np.where(np.abs(values) < ROUND_OFF, 0.0, values)
    return np.where(np.abs(np.abs(cleaned) - 1) < ROUND_OFF, np.sign(cleaned), cleaned)
