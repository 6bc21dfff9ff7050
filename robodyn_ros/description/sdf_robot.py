"""Chooses the robot among the links and joints of an SDF, and builds its description."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from robodyn_ros.description.robot import (
    BALL_IS_HINGES,
    Finding,
    Joint,
    Link,
    RobotDescription,
)
from robodyn_ros.description.sdf_elements import Pose
from robodyn_ros.description.sdf_frames import WORLD
from robodyn_ros.description.sdf_tree import (
    CLOSING,
    Connection,
    Groups,
    couple_gearboxes,
    cut_of,
    divide,
    joints_of,
    root_of,
    split,
)
from robodyn_ros.description.tree import check_mimics
from robodyn_ros.errors import DescriptionError

LISTED = 10  # names in a message


def robot_of(name: str, links: Mapping[str, Link], poses: Mapping[str, Pose],
             connections: Sequence[Connection], still: Sequence[str],
             findings: list[Finding]) -> RobotDescription:
    """Return the one robot of a document.

    Parameters
    ----------
    name : str
        Its name; '' for a world, whose robot is named after its model.
    links : mapping of str to Link
        All links.
    poses : mapping of str to Pose
        Their poses in the world at joint positions zero, and that of ``world``.
    connections : sequence of Connection
        All joints of models that are not static.
    still : sequence of str
        Links of static models.
    findings : list of Finding
        Findings are appended to this list.

    Raises
    ------
    DescriptionError
        There is no robot, or there are several.
    """
    used = {link for joint in connections for link in (joint.parent, joint.child)}
    around = [link for link in still if link not in used]
    if around:
        findings.append(Finding(WORLD, 'static', ', '.join(around[:LISTED]), 'SDF', False,
                                'these links do not move'))
    carriers = [Connection(f'{link} static', 'fixed', WORLD, link, np.zeros(3))
                for link in still if link in used]
    members = _members(links, (*connections, *carriers), set(around))
    connections = couple_gearboxes([joint for joint in (*connections, *carriers)
                                    if joint.child in members])
    root = root_of(members, connections)
    tree, closing = divide(connections, root)
    for joint in [joint for joint in closing if joint.type not in CLOSING]:
        tree_part, closure = split(joint)
        tree.append(tree_part)
        closing[closing.index(joint)] = closure
        poses = {**poses, tree_part.child: poses[joint.child]}
        links = {**links, tree_part.child: Link(
            tree_part.child, line=joint.line, added=True)}
        members.append(tree_part.child)
    for joint in tree:
        if joint.type == 'ball':
            findings.append(Finding(joint.name, 'ball', ', '.join(
                f'{joint.name}_{letter}' for letter in 'xyz'), 'SDF', True, BALL_IS_HINGES))
    built: list[Link] = [Link(WORLD)] if root == WORLD else []
    built += [links[link] for link in members]
    joints: list[Joint] = []
    for connection in tree:
        more, massless = joints_of(connection, poses)
        joints += more
        built += massless
    cuts = tuple(cut_of(joint, poses) for joint in closing)
    if cuts:
        findings.append(Finding(WORLD, 'loops', ', '.join(joint.name for joint in closing[
            :LISTED]), 'SDF', True, 'these joints close loops: Dynamics leaves them open, '
            'ClosedLoopDynamics closes them'))
    for joint in closing:
        if any(axis.limits.get('damping') or axis.limits.get('friction') for axis in joint.axes):
            findings.append(Finding(joint.name, 'dynamics', '', 'SDF', False,
                                    'joints that close loops have no friction'))
    _check_names(built, joints)
    moving = check_mimics(tuple(_named_mimic(joint, connections) for joint in joints), findings)
    robot = RobotDescription(name or 'robot', tuple(built), moving, findings=tuple(findings),
                             floating=root != WORLD, cuts=cuts)
    return robot if name else _short(robot)


def _members(links: Mapping[str, Link], connections: Sequence[Connection],
             around: set[str]) -> list[str]:
    """Return the links of the only group of connected links that can move."""
    groups = Groups()
    for joint in connections:
        groups.join(joint.parent, joint.child)
    bodies: dict[str, list[str]] = {}
    for link in links:
        if link not in around:
            bodies.setdefault(groups.find(link), []).append(link)
    fixed = groups.find(WORLD)
    moving = {groups.find(joint.child) for joint in connections if joint.type != 'fixed'}
    robots = [group for group in bodies if group != fixed or group in moving]
    if not robots:
        raise DescriptionError('no link can move', element='<sdf>',
                               valid='a model that is not static, with joints or without a joint '
                               "to 'world'")
    if len(robots) > 1:
        raise DescriptionError(
            f'it has {len(robots)} groups of links that move independently of each other, one '
            f'link of each: {", ".join(bodies[group][0] for group in robots[:LISTED])}',
            element='<sdf>', valid='one robot, without movable objects around it')
    return bodies[robots[0]]


def _check_names(links: Sequence[Link], joints: Sequence[Joint]) -> None:
    """Refuse names of added links and joints that the document uses already."""
    for kind, parts in (('link', links), ('joint', joints)):
        seen: set[str] = set()
        for part in parts:
            if part.name in seen:
                raise DescriptionError('is defined twice, or has the name of a part that is '
                                       'added to it', element=f'{kind} {part.name!r}',
                                       line=part.line, valid='another name')
            seen.add(part.name)


def _named_mimic(joint: Joint, connections: Sequence[Connection]) -> Joint:
    """Return a joint whose mimic names the axis of a universal joint that it follows."""
    if joint.mimic is None:
        return joint
    leader, separator, _ = joint.mimic.joint.partition(' axis2')
    universal = any(one.name == leader and one.type == 'universal' for one in connections)
    if universal:
        leader += '_axis2' if separator else '_axis'
    return replace(joint, mimic=replace(joint.mimic, joint=leader))


def _short(robot: RobotDescription) -> RobotDescription:
    """Return a robot whose names lack the prefix ``MODEL::`` if a world has only one model."""
    models = {link.name.partition('::')[0] for link in robot.links
              if '::' in link.name} | {'' for link in robot.links
                                       if '::' not in link.name and link.name != WORLD}
    if len(models) != 1 or '' in models:
        return robot
    model = models.pop()

    def short(name: str) -> str:
        return name.removeprefix(f'{model}::')

    joints = [replace(joint, name=short(joint.name), parent=short(joint.parent),
                      child=short(joint.child), mimic=joint.mimic and replace(
                          joint.mimic, joint=short(joint.mimic.joint)))
              for joint in robot.joints]
    return replace(
        robot, name=model, joints=tuple(joints),
        links=tuple(replace(link, name=short(link.name)) for link in robot.links),
        cuts=tuple(replace(cut, links=(short(cut.links[0]), short(cut.links[1])))
                   for cut in robot.cuts),
        findings=tuple(replace(finding, joint=short(finding.joint))
                       for finding in robot.findings))
