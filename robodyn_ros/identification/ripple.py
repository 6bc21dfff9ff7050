"""Torque ripple that an identification has found, see `ripple_choice`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from robodyn_ros.description.ripple import RippleLine
from robodyn_ros.model import Model
from robodyn_ros.model.kinds import JOINT_TORQUE_KINDS
from robodyn_ros.spatial import Array

if TYPE_CHECKING:
    from robodyn_ros.identification.linear_model import LinearModel


def known_ripple(linear: LinearModel) -> dict[int, tuple[RippleLine, ...]]:
    """Return the torque ripple that the description gives to the estimated bodies.

    It is empty for closed loops and for kinds that explain motor torques, which have no ripple.
    """
    if linear.kind not in JOINT_TORQUE_KINDS or linear.loops is not None:
        return {}
    return {body: lines for body in linear.bodies if (lines := tuple(
        RippleLine(int(n), s, c) for n, s, c in linear.model.ripple[body].tolist() if n))}


def lost_ripple(linear: LinearModel) -> list[str]:
    """Return a remark if the identified model lacks torque ripple that the description has."""
    model = linear.model
    lost = [model.body_joints[body] for body in linear.bodies
            if model.ripple[body].any() and body not in linear.friction.ripple]
    if not lost or linear.kind == 'drives':  # which leaves the links as they are
        return []
    why = 'these logs do not show it'
    if linear.kind not in JOINT_TORQUE_KINDS:
        why = f'the kind {linear.kind} has none'
    elif linear.loops is not None:
        why = 'robots with closed loops have none'
    return [f'the identified model lacks the torque ripple that the description gives to '
            f'{", ".join(lost)}: {why}']


def ripple_torque(model: Model, ripple: Mapping[int, tuple[RippleLine, ...]], q: Array) -> Array:
    """Return the torque ripple at positions of the joints, shape (N, n).

    Parameters
    ----------
    model : Model
        The robot.
    ripple : mapping of int to tuple of RippleLine
        The lines of bodies whose joints have ripple.
    q : ndarray, shape (N, n)
        rad or m.
    """
    found = np.zeros_like(q)
    for body, lines in ripple.items():
        for line in lines:
            found += np.outer(line.torque(q @ model.row[body]), model.row[body])
    return found
