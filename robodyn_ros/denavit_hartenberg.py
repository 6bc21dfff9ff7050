"""Denavit-Hartenberg tables as a second way to describe a robot (Kolyubin App. 2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.building import STANDARD_GRAVITY, build_model
from robodyn_ros.description import Array, Inertial, Joint, Link, RobotDescription
from robodyn_ros.errors import ShapeError, UnknownNameError
from robodyn_ros.model import Model
from robodyn_ros.motors import from_yaml

CONVENTIONS = ('standard', 'modified')


def model_from_dh(
    table: ArrayLike,
    inertials: Sequence[Inertial | None],
    *,
    convention: str = 'standard',
    prismatic: Sequence[bool] | None = None,
    lower: ArrayLike | None = None,
    upper: ArrayLike | None = None,
    gravity: ArrayLike = STANDARD_GRAVITY,
    motors: Mapping[str, Any] | None = None,
    rotor_model: str | None = None,
    name: str = 'robot',
) -> Model:
    """Build a model from a Denavit-Hartenberg table.

    Joints are ``joint1`` ... ``jointn``, links ``link0`` (root) ... ``linkn``. Link i's frame is
    the table's frame i in both conventions, so that is where its inertial is given.

    Parameters
    ----------
    table : array-like, shape (n, 4)
        Rows ``a, alpha, d, theta`` in m and rad; the joint's own position is added to theta, or to
        d where it slides. ``standard``: ``Rz(theta) Tz(d) Tx(a) Rx(alpha)``; ``modified``
        (Craig, Khalil): ``Rx(alpha) Tx(a) Rz(theta) Tz(d)``.
    inertials : sequence of Inertial or None, length n
        Of links 1 to n.
    convention : {'standard', 'modified'}
        Which of the two.
    prismatic : sequence of bool, optional
        Which joints slide; default: none.
    lower, upper : array-like, shape (n,), optional
        Joint limits, rad or m.
    gravity : array-like, shape (3,)
        m/s^2 in frame 0.
    motors, rotor_model
        As in `load_model`.
    name : str
        Of the robot.

    Raises
    ------
    ShapeError, UnknownNameError
        A table of another shape, lists of another length, an unknown convention.
    """
    if convention not in CONVENTIONS:
        raise UnknownNameError('convention', convention, CONVENTIONS)
    rows = np.asarray(table, np.float64)
    if rows.ndim != 2 or rows.shape[1] != 4 or not len(rows) or not np.isfinite(rows).all():
        raise ShapeError('table', f'shape {rows.shape}', '(n, 4), finite: a, alpha, d, theta')
    n = len(rows)
    slides = [False] * n if prismatic is None else list(prismatic)
    if len(inertials) != n or len(slides) != n:
        raise ShapeError('inertials and prismatic', f'{len(inertials)} and {len(slides)} entries',
                         f'{n} of each')
    limits = [np.broadcast_to(np.asarray(default if given is None else given, np.float64), (n,))
              for given, default in ((lower, -np.inf), (upper, np.inf))]
    links, joints = [Link('link0')], []
    # a joint's frame has z along its axis; in the standard convention the link's frame lies a
    # constant transform beyond it, which a fixed link carries
    for i, (a, alpha, d, theta) in enumerate(rows):
        turn, slide = _about_z(theta), np.array([0.0, 0.0, d])
        if convention == 'modified':
            rotation = _about_x(alpha)
            origin = np.array([a, 0.0, 0.0]) + rotation @ slide
            rotation, child = rotation @ turn, f'link{i + 1}'
        else:
            origin, rotation, child = slide, turn, f'axis{i + 1}'
        joints.append(Joint(f'joint{i + 1}', 'prismatic' if slides[i] else 'revolute', f'link{i}',
                            child, origin, rotation, np.array([0.0, 0.0, 1.0]),
                            float(limits[0][i]), float(limits[1][i])))
        if convention == 'standard':
            links.append(Link(child))
            joints.append(Joint(f'frame{i + 1}', 'fixed', child, f'link{i + 1}',
                                np.array([a, 0.0, 0.0]), _about_x(alpha), np.zeros(3)))
        links.append(Link(f'link{i + 1}', inertials[i]))
    description = RobotDescription(name, tuple(links), tuple(joints))
    if motors is not None:
        description = from_yaml(description, motors)
    return build_model(description, gravity=gravity, rotor_model=rotor_model)


def _about_x(angle: float) -> Array:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])


def _about_z(angle: float) -> Array:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
