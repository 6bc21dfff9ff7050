"""Turns the links and joints of an SDF, any graph, into a tree and the cuts that close its loops.

In SDF the frame of a link can lie beside its joint, several joints may lead to one link, and the
child of a joint may be nearer to the base than its parent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from robodyn_ros.description.robot import APART, Cut, Joint, Link, Mimic
from robodyn_ros.description.sdf_elements import Pose
from robodyn_ros.description.sdf_frames import WORLD
from robodyn_ros.errors import DescriptionError
from robodyn_ros.spatial import Array

ON_AXIS = 1e-12  # m, distance from the axis below which a link's origin lies on it
PARALLEL = 1e-6  # axes of a gearbox and of a hinge are parallel if 1 - |cosine| is smaller
HINGES = ('revolute', 'continuous')
CLOSING = ('fixed', *HINGES, 'ball')  # joints whose constraints coinciding points can express
# joints that must be in the tree come first, those that can only close a loop last
_ORDER = {'fixed': 0, 'prismatic': 1, 'universal': 1, 'screw': 1, 'revolute': 2, 'continuous': 2,
          'ball': 3}


@dataclass(frozen=True, eq=False)
class Axis:
    """An axis of a joint.

    Attributes
    ----------
    direction : ndarray, shape (3,)
        Unit vector in the world, at joint positions zero.
    limits : dict
        ``lower``, ``upper``, ``velocity``, ``effort``, ``damping`` and ``friction`` of `Joint`.
    mimic : Mimic or None
        What it follows.
    """

    direction: Array
    limits: Mapping[str, float] = field(default_factory=dict)
    mimic: Mimic | None = None


@dataclass(frozen=True, eq=False)
class Connection:
    """A joint of an SDF between two links, or between the world and a link.

    Attributes
    ----------
    position : ndarray, shape (3,)
        Origin of the joint in the world, m, at joint positions zero.
    axes : tuple of Axis
        Empty for a fixed or ball joint; two for a universal joint or gearbox.
    pitch : float
        Advance of a screw, m/rad.
    gear : tuple of (float, str) or None
        Ratio and reference link of a gearbox.
    """

    name: str
    type: str
    parent: str
    child: str
    position: Array
    axes: tuple[Axis, ...] = ()
    pitch: float = 0.0
    gear: tuple[float, str] | None = None
    line: int | None = None

    @property
    def where(self) -> str:
        """The name of the joint in error messages."""
        return f'joint {self.name!r}'

    def reversed(self) -> Connection:
        """Return the same joint with parent and child exchanged; positions keep their sign."""
        axes = tuple(replace(axis, direction=-axis.direction) for axis in reversed(self.axes))
        return replace(self, parent=self.child, child=self.parent, axes=axes)


class Groups:
    """Sets of links that are connected (union-find)."""

    def __init__(self) -> None:
        self._above: dict[str, str] = {}

    def find(self, name: str) -> str:
        """Return the representative of a link's set."""
        while (above := self._above.get(name, name)) != name:
            self._above[name] = self._above.get(above, above)
            name = above
        return name

    def join(self, one: str, other: str) -> bool:
        """Unite two sets; return False if they were one set already."""
        one, other = self.find(one), self.find(other)
        self._above[one] = other
        return one != other


def couple_gearboxes(connections: Sequence[Connection]) -> list[Connection]:
    """Replace each gearbox by the joint that follows another (theta_2 = -ratio * theta_1).

    Raises
    ------
    DescriptionError
        The gearbox does not couple two hinges of its reference link.
    """
    kept = {joint.name: joint for joint in connections if joint.gear is None}
    for box in connections:
        if box.gear is None:
            continue
        ratio, reference = box.gear
        found = [_hinge(link, reference, axis.direction, kept.values())
                 for link, axis in ((box.parent, box.axes[0]), (box.child, box.axes[-1]))]
        if None in found:
            raise DescriptionError(
                f'the gearbox does not couple two hinges of {reference!r}', element=box.where,
                line=box.line, valid='revolute joints between <gearbox_reference_body> and '
                '<parent> about <axis>, and between it and <child> about <axis2>')
        (leader, sign_1), (follower, sign_2) = found  # type: ignore[misc]
        axis = replace(follower.axes[0], mimic=Mimic(leader.name, -ratio * sign_1 * sign_2))
        kept[follower.name] = replace(follower, axes=(axis,))
    return list(kept.values())


def _hinge(link: str, reference: str, direction: Array, connections: Iterable[Connection],
           ) -> tuple[Connection, float] | None:
    """Return the hinge between a link and a reference, and its sign about a direction."""
    for joint in connections:
        if joint.type in HINGES and {joint.parent, joint.child} == {link, reference}:
            cosine = float(joint.axes[0].direction @ direction)
            if abs(abs(cosine) - 1.0) < PARALLEL:
                return joint, float(np.sign(cosine)) * (1.0 if joint.child == link else -1.0)
    return None


def divide(connections: Sequence[Connection], root: str) -> tuple[list[Connection],
                                                                  list[Connection]]:
    """Divide joints into those of a tree and those that close its loops.

    In the tree, the parent of each joint is nearer to the root than the child. Both lists are in
    the order of the document.
    """
    groups = Groups()
    tree = {joint.name for joint in sorted(connections, key=lambda joint: _ORDER[joint.type])
            if groups.join(joint.parent, joint.child)}
    beside: dict[str, list[Connection]] = {}
    for joint in connections:
        if joint.name in tree:
            beside.setdefault(joint.parent, []).append(joint)
            beside.setdefault(joint.child, []).append(joint)
    turned: dict[str, Connection] = {}
    waiting = [root]
    while waiting:
        link = waiting.pop()
        for joint in beside.get(link, ()):
            if joint.name not in turned:
                turned[joint.name] = joint if joint.parent == link else joint.reversed()
                waiting.append(turned[joint.name].child)
    return ([turned[joint.name] for joint in connections if joint.name in turned],
            [joint for joint in connections if joint.name not in tree])


def cut_of(joint: Connection, poses: Mapping[str, Pose]) -> Cut:
    """Return the points that coincide where a joint of a type in `CLOSING` closes a loop."""
    directions: list[Array] = [axis.direction for axis in joint.axes]
    if joint.type == 'fixed':
        directions = list(np.eye(3)[:2])
    points = [joint.position, *(joint.position + APART * way for way in directions)]
    return Cut((joint.parent, joint.child), np.array([
        [poses[link][0].T @ (point - poses[link][1]) for link in (joint.parent, joint.child)]
        for point in points]))


def split(joint: Connection) -> tuple[Connection, Connection]:
    """Return a joint that moves a massless link, and the fixed joint that closes the loop there.

    This serves joints whose constraints coinciding points cannot express.
    """
    link = f'{joint.name} end'
    return replace(joint, child=link), Connection(
        joint.name, 'fixed', link, joint.child, joint.position, line=joint.line)


def joints_of(joint: Connection, poses: Mapping[str, Pose]) -> tuple[list[Joint], list[Link]]:
    """Return a joint of the tree as joints of a description, and the massless links between them.

    A universal joint becomes two hinges, ``NAME_axis`` and ``NAME_axis2``, a ball joint three,
    ``NAME_x``, ``NAME_y`` and ``NAME_z``, about the axes of its link, and a screw a hinge and a
    slide ``NAME_advance`` that follows it. If the axis of a hinge does not pass through the origin
    of its link, the hinge moves a massless link ``NAME frame``, to which the link is fixed.
    """
    (above, start), (turn, end) = poses[joint.parent], poses[joint.child]
    offset = turn.T @ (end - joint.position)  # of the link's origin from that of the joint
    axes = [turn.T @ axis.direction for axis in joint.axes]
    beside = joint.type not in ('fixed', 'prismatic') and any(
        np.abs(np.cross(axis, offset)).max() > ON_AXIS for axis in axes)
    beside = beside or (joint.type in ('universal', 'ball') and bool(offset.any()))
    links: list[Link] = []
    joints: list[Joint] = []
    parent = joint.parent
    place = joint.position if beside else end
    translation, rotation = above.T @ (place - start), above.T @ turn

    def add(name: str, kind: str, child: str, axis: Array, **more: object) -> None:
        nonlocal parent, translation, rotation
        joints.append(Joint(name, kind, parent, child, translation, rotation, axis,
                            line=joint.line, **more))  # type: ignore[arg-type]
        if child != joint.child:
            links.append(Link(child, line=joint.line, added=True))
        parent, translation, rotation = child, np.zeros(3), np.eye(3)

    last = f'{joint.name} frame' if beside else joint.child
    if joint.type == 'universal':
        first, second = joint.axes
        names = [f'{joint.name}_axis', f'{joint.name}_axis2']
        add(names[0], 'revolute', names[0], axes[0], **first.limits, mimic=first.mimic)
        add(names[1], 'revolute', last, axes[1], **second.limits, mimic=second.mimic)
    elif joint.type == 'ball':
        for letter, axis in zip('xyz', np.eye(3), strict=True):
            name = f'{joint.name}_{letter}'
            add(name, 'continuous', last if letter == 'z' else name, axis)
    elif joint.type == 'screw':
        only, slide = joint.axes[0], f'{joint.name}_advance'
        add(joint.name, 'revolute', slide, axes[0], **only.limits, mimic=only.mimic)
        add(slide, 'prismatic', last, axes[0], mimic=Mimic(joint.name, joint.pitch))
    elif joint.type == 'fixed':
        add(joint.name, 'fixed', last, np.array([1.0, 0.0, 0.0]))
    else:
        add(joint.name, joint.type, last, axes[0], **joint.axes[0].limits,
            mimic=joint.axes[0].mimic)
    if beside:
        translation = offset
        add(f'{joint.child} mount', 'fixed', joint.child, np.array([1.0, 0.0, 0.0]))
    return joints, links


def root_of(links: Sequence[str], connections: Sequence[Connection]) -> str:
    """Return ``world`` if a joint leads to it, else the first link that is no joint's child."""
    if any(WORLD in (joint.parent, joint.child) for joint in connections):
        return WORLD
    children = {joint.child for joint in connections}
    return next((link for link in links if link not in children), links[0])
