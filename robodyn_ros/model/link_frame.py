"""`LinkFrame`: where a link is on the body that carries it."""

from __future__ import annotations

from dataclasses import dataclass

from robodyn_ros.spatial import Array


@dataclass(frozen=True)
class LinkFrame:
    """The frame of a link in the frame of the body that it is fixed to; body -1 is the root."""

    body: int
    rotation: Array
    translation: Array
