"""Joints of a URDF with several degrees of freedom: ``floating`` and ``planar``.

A floating joint between the environment and the robot says that the base of the robot moves
freely. A planar joint becomes two prismatic joints and a revolute one.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from robodyn_ros.description.robot import Finding, Joint, Link
from robodyn_ros.description.tree import joints_parent_first
from robodyn_ros.errors import DescriptionError
from robodyn_ros.spatial import Array, axis_rotation


def expand_planar(links: tuple[Link, ...], joints: tuple[Joint, ...],
                  ) -> tuple[tuple[Link, ...], tuple[Joint, ...]]:
    """Replace each planar joint NAME by the joints ``NAME_x``, ``NAME_y`` and ``NAME_yaw``.

    The first two move along two axes of the plane, which are x and y of the joint's frame if the
    normal is z; the third turns about the normal.

    Raises
    ------
    DescriptionError
        A link or joint of such a name exists already.
    """
    names = {*(link.name for link in links), *(joint.name for joint in joints)}
    more: list[Link] = []
    expanded: list[Joint] = []
    for joint in joints:
        if joint.type != 'planar':
            expanded.append(joint)
            continue
        parts = [f'{joint.name}_{part}' for part in ('x', 'y', 'yaw')]
        taken = names.intersection(parts)
        if taken:
            raise DescriptionError(f'the planar joint needs the name {min(taken)!r}, which is '
                                   'taken', element=f'joint {joint.name!r}', line=joint.line,
                                   valid='another name of the link or joint')
        along_x, along_y = _plane(joint.axis)
        more += [Link(part, line=joint.line, added=True) for part in parts[:2]]
        inner = replace(joint, translation=np.zeros(3), rotation=np.eye(3))
        expanded += [
            replace(joint, name=parts[0], type='prismatic', child=parts[0], axis=along_x),
            replace(inner, name=parts[1], type='prismatic', parent=parts[0], child=parts[1],
                    axis=along_y),
            replace(inner, name=parts[2], type='continuous', parent=parts[1])]
    return (*links, *more), tuple(expanded)


def _plane(normal: Array) -> tuple[Array, Array]:
    """Return the axes onto which the shortest rotation from z to the normal turns x and y."""
    across = np.cross([0.0, 0.0, 1.0], normal)
    length = float(np.linalg.norm(across))
    axis = across / length if length else np.array([1.0, 0.0, 0.0])
    turn = axis_rotation(axis, float(np.arctan2(length, normal[2])))
    return turn[:, 0], turn[:, 1]


def release_base(links: tuple[Link, ...], joints: tuple[Joint, ...], findings: list[Finding],
                 ) -> tuple[tuple[Link, ...], tuple[Joint, ...], bool]:
    """Remove the floating joint at the root and the links before it.

    Parameters
    ----------
    links, joints : tuple
        A tree.
    findings : list of Finding
        A finding about the removed joint is appended to this list.

    Returns
    -------
    links, joints : tuple
        The robot from its base on.
    floating : bool
        Whether there was such a joint.

    Raises
    ------
    DescriptionError
        A floating joint is not the only moving joint between the root and the rest of the robot.
    """
    free = [joint for joint in joints if joint.type == 'floating']
    if not free:
        return links, joints, False
    base = free[0]
    carried = {base.child, *(joint.child for joint, _ in joints_parent_first(base.child, joints))}
    for joint in joints:
        inside = joint.parent in carried
        if joint is not base and (joint.type == 'floating' or (
                joint.type != 'fixed' and not inside)):
            wrong = joint if joint.type == 'floating' else base
            raise DescriptionError(
                "type 'floating' is not supported in this place", element=f'joint {wrong.name!r}',
                line=wrong.line, valid='one floating joint, between the environment and the base '
                'of the robot')
    still = [link.name for link in links if link.name not in carried]
    moved = base.translation.any() or not np.array_equal(base.rotation, np.eye(3))
    findings.append(Finding(
        base.name, 'type', 'floating', f'joint {base.name!r}', True,
        f'{base.child!r} is a floating base, whose pose is given in the frame of '
        f'{base.parent!r}; links of the environment: {", ".join(still)}'
        + ('; the <origin> of the joint is not used' if moved else '')))
    return (tuple(link for link in links if link.name in carried),
            tuple(joint for joint in joints if joint.parent in carried), True)
