"""Checks that links and joints form a tree, walks it, and resolves mimic joints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from robodyn_ros.description.robot import Finding, Joint, Link, Mimic
from robodyn_ros.errors import DescriptionError, UnknownNameError


def check_tree(links: tuple[Link, ...], joints: tuple[Joint, ...]) -> None:
    """Check that every link but the root has one parent, and that all are connected to the root.

    Raises
    ------
    DescriptionError
        A link does not exist or has two parents, or there are several roots or a cycle.
    """
    names = {link.name: link for link in links}
    parent_joint: dict[str, Joint] = {}
    for joint in joints:
        where = f'joint {joint.name!r}'
        for role, link in (('parent', joint.parent), ('child', joint.child)):
            if link not in names:
                raise DescriptionError(f'{role} link {link!r} does not exist', element=where,
                                       line=joint.line, valid=_some(names))
        if joint.parent == joint.child:
            raise DescriptionError(f'link {joint.child!r} is its own parent', element=where,
                                   line=joint.line)
        if joint.child in parent_joint:
            raise DescriptionError(
                f'link {joint.child!r} is already the child of joint '
                f'{parent_joint[joint.child].name!r}', element=where, line=joint.line,
                valid='a tree: one parent joint for each link')
        parent_joint[joint.child] = joint
    roots = [name for name in names if name not in parent_joint]
    if len(roots) > 1:
        raise DescriptionError(f'has {len(roots)} root links: {_some(roots)}',
                               element=f'link {roots[1]!r}', line=names[roots[1]].line,
                               valid='one link without a parent')
    reached = {*roots, *(joint.child for root in roots
                         for joint, _ in joints_parent_first(root, joints))}
    for name, lost in names.items():
        if name not in reached:
            raise DescriptionError('is part of a cycle', element=f'link {name!r}', line=lost.line,
                                   valid='a tree of links')


def joints_parent_first(root: str, joints: Iterable[Joint]) -> Iterator[tuple[Joint, int]]:
    """Walk a tree depth first; the joints of one link come in the order in which they are given.

    Parameters
    ----------
    root : str
        The link at which the walk begins.
    joints : iterable of Joint
        All joints.

    Yields
    ------
    joint : Joint
        A joint; the joints between it and the root come before it.
    depth : int
        Number of joints between its child link and the root, 1 for a joint of the root.
    """
    children: dict[str, list[Joint]] = {}
    for joint in joints:
        children.setdefault(joint.parent, []).append(joint)
    stack = [(joint, 1) for joint in reversed(children.get(root, []))]
    while stack:
        joint, depth = stack.pop()
        yield joint, depth
        stack += [(child, depth + 1) for child in reversed(children.get(joint.child, []))]


def check_mimics(joints: tuple[Joint, ...], findings: list[Finding]) -> tuple[Joint, ...]:
    """Resolve chains of mimic joints, and release joints that mimic a fixed joint.

    A joint that mimics another mimic joint follows the joint at the end of the chain, with the
    multipliers and offsets along the chain combined.

    Parameters
    ----------
    joints : tuple of Joint
        All joints of a robot.
    findings : list of Finding
        Findings about changes are appended to this list.

    Returns
    -------
    joints : tuple of Joint
        The same joints; each mimic joint now follows an independent joint.

    Raises
    ------
    UnknownNameError
        A joint mimics a joint that does not exist.
    DescriptionError
        Joints mimic each other, or a joint mimics itself.
    """
    by_name = {joint.name: joint for joint in joints}
    checked = []
    for joint in joints:
        mimic, passed = joint.mimic, [joint.name]
        while mimic is not None:
            target = by_name.get(mimic.joint)
            if target is None:
                raise UnknownNameError(f'joint that {passed[-1]!r} (line {joint.line}) mimics',
                                       mimic.joint, [
                                           name for name in by_name if name != joint.name])
            if target.name in passed:
                raise DescriptionError(f'mimics itself: {" -> ".join(passed)} -> {target.name}',
                                       element=f'joint {joint.name!r}', line=joint.line,
                                       valid='a chain of mimics that ends at a joint without one')
            if target.mimic is None:
                break
            passed.append(target.name)
            mimic = Mimic(target.mimic.joint, mimic.multiplier * target.mimic.multiplier,
                          mimic.multiplier * target.mimic.offset + mimic.offset)
        if mimic is not None and by_name[mimic.joint].type == 'fixed':
            findings.append(Finding(joint.name, 'mimic', mimic.joint,
                                    f'<mimic> (line {joint.line})', False,
                                    'that joint is fixed: this one moves on its own'))
            mimic = None
        elif len(passed) > 1:
            findings.append(Finding(joint.name, 'mimic', ' -> '.join(passed[1:]),
                                    f'<mimic> (line {joint.line})', True,
                                    f'resolved to {mimic.joint!r}' if mimic else ''))
        checked.append(replace(joint, mimic=mimic))
    return tuple(checked)


def _some(names: Any) -> str:
    listed = [str(name) for name in names]
    return ', '.join(listed[:20]) + (', ...' if len(listed) > 20 else '')


