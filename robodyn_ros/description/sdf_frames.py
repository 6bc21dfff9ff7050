"""Frames of an SDF: poses relative to each other, and the links to which they are attached."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from robodyn_ros.description.sdf_elements import IDENTITY, Pose, compose, inverse
from robodyn_ros.errors import DescriptionError, UnknownNameError

WORLD, MODEL = 'world', '__model__'


@dataclass(frozen=True)
class Scope:
    """Where names are valid: a model or the world.

    Attributes
    ----------
    prefix : str
        Prefix of the names in the scope; ends with ``::`` for nested models.
    frame : str
        The absolute name of the frame of the model, or ``world``.
    version : tuple of int
        Version of the SDF file.
    static : bool
        Whether nothing in the scope moves.
    """

    prefix: str
    frame: str
    version: tuple[int, ...]
    static: bool = False

    def absolute(self, name: str) -> str:
        """Return the absolute name for a name that is valid within the scope."""
        if name == WORLD:
            return WORLD
        return self.frame if name == MODEL else self.prefix + name


@dataclass(frozen=True)
class Frame:
    """A frame: its pose in another one, and what it is attached to.

    Attributes
    ----------
    pose : Pose
        In the frame ``relative_to``.
    relative_to, attached_to : str
        Absolute names; for a link, ``attached_to`` is ''.
    placement : str
        Absolute name of the frame to which ``pose`` applies; '' if it is this frame.
    line : int or None
        Where it is defined.
    """

    pose: Pose
    relative_to: str
    attached_to: str = ''
    placement: str = ''
    line: int | None = None


class Frames:
    """All frames of a document, by absolute name."""

    def __init__(self) -> None:
        self._frames: dict[str, Frame] = {}
        self._poses: dict[str, Pose] = {WORLD: IDENTITY}

    def add(self, name: str, frame: Frame, *, rename: bool = False) -> str:
        """Add a frame and return its name; with ``rename``, a taken name gets ``_joint``.

        Raises
        ------
        DescriptionError
            The name is taken.
        """
        if rename and name in self._frames:
            name += '_joint'
        if name in self._frames or name == WORLD:
            raise DescriptionError('the name is taken', element=repr(name), line=frame.line,
                                   valid='names of links, joints, frames and models that occur '
                                   'once in a model')
        self._frames[name] = frame
        return name

    def find(self, name: str, line: int | None) -> str:
        """Return the full name of a frame, link or joint; a model's name means its frame.

        Raises
        ------
        UnknownNameError
            There is no such frame.
        """
        for candidate in (name, f'{name}::{MODEL}'):
            if candidate in self._frames or candidate == WORLD:
                return candidate
        place = f' (line {line})' if line else ''
        raise UnknownNameError(f'frame{place}', name, self._frames)

    def check(self) -> None:
        """Raise an error if a frame leads to one that does not exist, or in a cycle."""
        for name in self._frames:
            self.pose(name)
            self.link(name)

    def pose(self, name: str) -> Pose:
        """Return the pose of a frame in the world, at joint positions zero."""
        chain = self._chain(name, self._poses)
        for passed in reversed(chain[:-1]):
            frame = self._frames[passed]
            self._poses[passed] = compose(self._poses[self._above(frame)],
                                          self._own(passed, frame))
        return self._poses[name]

    def link(self, name: str) -> str:
        """Return the link to which a frame is attached, or ``world``."""
        passed: list[str] = []
        while name != WORLD and self._frames[name].attached_to:
            if name in passed:
                raise self._cycle('attached_to', passed)
            passed.append(name)
            frame = self._frames[name]
            name = self.find(frame.attached_to, frame.line)
        return name

    def _above(self, frame: Frame) -> str:
        return self.find(frame.relative_to, frame.line)

    def _own(self, name: str, frame: Frame) -> Pose:
        """Return the pose in the frame above."""
        if not frame.placement:
            return frame.pose
        pose = IDENTITY
        for passed in self._chain(self.find(frame.placement, frame.line), (name,))[:-1]:
            pose = compose(self._own(passed, self._frames[passed]), pose)
        return compose(frame.pose, inverse(pose))

    def _chain(self, name: str, until: Container[str]) -> list[str]:
        """Return a frame and the chain of frames it is relative to, up to one in ``until``."""
        chain, passed = [name], {name}
        while chain[-1] not in until:
            if chain[-1] == WORLD:
                raise DescriptionError(f'{name!r} is not inside the model that it places',
                                       element='placement_frame', valid='a frame of the model')
            chain.append(self._above(self._frames[chain[-1]]))
            if chain[-1] in passed:
                raise self._cycle('relative_to', chain)
            passed.add(chain[-1])
        return chain

    def _cycle(self, attribute: str, passed: list[str]) -> DescriptionError:
        return DescriptionError(f'{attribute} leads in a cycle: {" -> ".join(passed[:10])}',
                                element=repr(passed[0]), line=self._frames[passed[0]].line,
                                valid='frames that lead to that of the model')
