"""Denavit-Hartenberg tables as a second way to describe a robot (Kolyubin App. 2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.description.motor_yaml import from_yaml
from robodyn_ros.description.robot import Joint, Link, RobotDescription
from robodyn_ros.errors import ShapeError, UnknownNameError
from robodyn_ros.numerics import real_array
from robodyn_ros.spatial import Inertial, axis_rotation

X, Z = np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0])
CONVENTIONS = ('standard', 'modified')


def description_from_dh(
    table: ArrayLike,
    inertials: Sequence[Inertial | None] | None = None,
    *,
    convention: str = 'standard',
    prismatic: Sequence[bool] | None = None,
    lower: ArrayLike | None = None,
    upper: ArrayLike | None = None,
    motors: Mapping[str, Any] | None = None,
    name: str = 'robot',
) -> RobotDescription:
    """Return the description of a Denavit-Hartenberg table; for parameters see `model_from_dh`.

    Raises
    ------
    ShapeError, UnknownNameError
        The table or a list has the wrong shape, or the convention is unknown.
    """
    if convention not in CONVENTIONS:
        raise UnknownNameError('convention', convention, CONVENTIONS)
    rows = real_array('table', table, (None, 4))
    if not len(rows) or not np.isfinite(rows).all():
        raise ShapeError('table', 'no rows, or numbers that are not finite',
                         '(n, 4), finite: a, alpha, d, theta')
    n = len(rows)
    bodies = [None] * n if inertials is None else list(inertials)
    slides = [False] * n if prismatic is None else list(prismatic)
    if len(bodies) != n or len(slides) != n:
        raise ShapeError('inertials and prismatic', f'{len(bodies)} and {len(slides)} entries',
                         f'{n} of each')
    limits = [np.full(n, default) if given is None else real_array(limit, given, (n,))
              for limit, given, default in (('lower', lower, -np.inf), ('upper', upper, np.inf))]
    links, joints = [Link('link0')], []
    # a joint's frame has z along its axis; in the standard convention the link's frame lies a
    # constant transform beyond it, which a fixed link carries
    for i, (a, alpha, d, theta) in enumerate(rows):
        turn, slide = axis_rotation(Z, theta), np.array([0.0, 0.0, d])
        if convention == 'modified':
            rotation = axis_rotation(X, alpha)
            origin = np.array([a, 0.0, 0.0]) + rotation @ slide
            rotation, child = rotation @ turn, f'link{i + 1}'
        else:
            origin, rotation, child = slide, turn, f'axis{i + 1}'
        joints.append(Joint(f'joint{i + 1}', 'prismatic' if slides[i] else 'revolute', f'link{i}',
                            child, origin, rotation, Z,
                            float(limits[0][i]), float(limits[1][i])))
        if convention == 'standard':
            links.append(Link(child, added=True))
            joints.append(Joint(f'frame{i + 1}', 'fixed', child, f'link{i + 1}',
                                np.array([a, 0.0, 0.0]), axis_rotation(X, alpha), np.zeros(3)))
        links.append(Link(f'link{i + 1}', bodies[i]))
    description = RobotDescription(name, tuple(links), tuple(joints))
    return description if motors is None else from_yaml(description, motors)
