"""Links and joints must be a tree, and mimic joints must follow joints that move."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from robodyn_ros.description import Finding, Joint, Link
from robodyn_ros.errors import DescriptionError


def check_tree(links: tuple[Link, ...], joints: tuple[Joint, ...]) -> None:
    """Every link but one has exactly one parent, and all hang on that one."""
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
    reached = set(roots)
    children: dict[str, list[str]] = {}
    for joint in joints:
        children.setdefault(joint.parent, []).append(joint.child)
    stack = list(roots)
    while stack:
        for child in children.get(stack.pop(), []):
            reached.add(child)
            stack.append(child)
    for name, lost in names.items():
        if name not in reached:
            raise DescriptionError('is part of a cycle', element=f'link {name!r}', line=lost.line,
                                   valid='a tree of links')


def check_mimics(joints: tuple[Joint, ...], findings: list[Finding]) -> tuple[Joint, ...]:
    """Refuse chains of mimics; free those that mimic what does not move."""
    by_name = {joint.name: joint for joint in joints}
    checked = []
    for joint in joints:
        target = by_name.get(joint.mimic.joint) if joint.mimic else None
        if joint.mimic is None:
            pass
        elif target is None or target.type == 'fixed':
            findings.append(Finding(joint.name, 'mimic', joint.mimic.joint,
                                    f'<mimic> (line {joint.line})', False,
                                    'no such moving joint: it moves on its own'))
            joint = replace(joint, mimic=None)
        elif target.mimic is not None:
            where = f'joint {joint.name!r}'
            raise DescriptionError(f'mimics {target.name!r}, which itself mimics '
                                   f'{target.mimic.joint!r}', element=where, line=joint.line,
                                   valid='a joint that is not a mimic')
        checked.append(joint)
    return tuple(checked)


def _some(names: Any) -> str:
    listed = [str(name) for name in names]
    return ', '.join(listed[:20]) + (', ...' if len(listed) > 20 else '')


