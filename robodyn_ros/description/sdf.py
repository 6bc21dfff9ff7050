"""Reads SDF, the format of Gazebo and Drake, into a `RobotDescription`.

The reader follows the specification of SDFormat 1.12 (http://sdformat.org/spec): frame semantics,
nested and included models, and the meaning of axes in older versions. The XML is parsed with the
limits of ``xml.py``, and only local files are included.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from lxml import etree

from robodyn_ros.description.robot import Finding, RobotDescription
from robodyn_ros.description.sdf_bodies import link_of
from robodyn_ros.description.sdf_elements import (
    child_of,
    flag_of,
    is_extension,
    pose_of,
    text_of,
    vector_of,
)
from robodyn_ros.description.sdf_files import IncludedFiles, version_of
from robodyn_ros.description.sdf_frames import MODEL, WORLD, Frame, Frames, Scope
from robodyn_ros.description.sdf_joints import (
    Entry,
    connection_of,
    in_file,
    relative_to,
    with_drake_motor,
)
from robodyn_ros.description.sdf_robot import robot_of
from robodyn_ros.description.trim import MAX_LINKS, name_of
from robodyn_ros.description.xml import local_name
from robodyn_ros.errors import DescriptionError

DEFAULT_GRAVITY = (0.0, 0.0, -9.8)  # m/s^2, of a <world> that gives none
# content of models and worlds that has no effect on the dynamics of a robot
_IGNORED = set(
    'self_collide allow_auto_disable enable_wind static pose plugin gripper light actor physics '
    'scene gui atmosphere audio wind road spherical_coordinates population magnetic_field state '
    'gravity projector model_state placement_frame name'.split())


def read_sdf(root: etree._Element, file: Path | None = None) -> RobotDescription:
    """Read the robot of an SDF document.

    A robot that a joint connects to ``world``, or to a static model, has a fixed base; all others
    float. Joints that close loops become `RobotDescription.cuts`.

    Parameters
    ----------
    root : lxml element
        The ``<sdf>`` element.
    file : Path, optional
        Its file; documents without a file cannot include others.

    Raises
    ------
    DescriptionError
        The document is not one robot, or has something that is not understood. The message names
        the element, its line and what would be valid.
    """
    reader = _Reader()
    version = version_of(root)
    world = child_of(root, 'world', 'sdf', reader.findings)
    model = child_of(root, 'model', 'sdf', reader.findings)
    gravity = None
    if world is not None:
        reader.read(world, Scope('', WORLD, version), file)
        element = child_of(world, 'gravity')
        gravity = DEFAULT_GRAVITY if element is None else tuple(map(float, vector_of(
            element, 3, 'world')))
    elif model is not None:
        reader.read_model(model, Scope('', WORLD, version), file, top=True)
    else:
        raise DescriptionError('has no <model>', element='<sdf>', line=root.sourceline,
                               valid='a <model>, or a <world> with one robot')
    name = '' if model is None or world is not None else name_of(model)
    return reader.description(name, gravity)


class _Reader:
    """Collects links, joints and frames of all models, then resolves them."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self._frames = Frames()
        self._links: list[Entry] = []
        self._joints: list[Entry] = []
        self._files = IncludedFiles()

    def read(self, element: etree._Element, scope: Scope, file: Path | None, nested: int = 0,
             ) -> None:
        """Read the content of a ``<model>`` or ``<world>``."""
        shown = str(file) if nested else ''
        # joints last: in older versions a joint and a link may have one name
        for child in sorted(element, key=lambda child: child.tag == 'joint'):
            tag = local_name(child)
            if is_extension(child):
                self._ignore(tag, child, 'it is an extension of SDF')
            elif tag in ('link', 'joint'):
                self._read_part(child, scope, shown)
            elif tag == 'frame':
                self._read_frame(child, scope)
            elif tag == 'model':
                self.read_model(child, scope, file, nested)
            elif tag == 'include':
                self._include(child, scope, file, nested)
            elif tag not in _IGNORED:
                self._ignore(tag, child, 'it is not part of SDF')

    def read_model(self, model: etree._Element, outer: Scope, file: Path | None, nested: int = 0,
                   *, include: etree._Element | None = None, top: bool = False) -> None:
        """Read a model; the elements of ``<include>`` override those of the model itself."""
        name = text_of(include, 'name') or name_of(model)
        merge = include is not None and include.get('merge') in ('true', '1')
        where = f'model {name!r}'
        prefix = outer.prefix if merge or top else f'{outer.prefix}{name}::'
        frame = f'{prefix}_merged__{name}__model__' if merge else prefix + MODEL
        static = outer.static or flag_of(model, 'static', where) or flag_of(
            include, 'static', where)
        first = len(self._links)
        inner = Scope(prefix, frame, outer.version, static)
        self.read(model, inner, file, nested)
        links = [entry for entry in self._links[first:] if entry.scope is inner]
        canonical = inner.absolute(model.get('canonical_link') or '') if model.get(
            'canonical_link') else next((entry.name for entry in links or self._links[first:]), '')
        source = include if child_of(include, 'pose') is not None else model
        pose = child_of(source, 'pose', where, self.findings)
        placement = text_of(include, 'placement_frame') or model.get('placement_frame') or ''
        self._frames.add(frame, Frame(
            pose_of(pose, where), outer.absolute(relative_to(pose) or MODEL), canonical,
            inner.absolute(placement) if placement else '', model.sourceline))

    def _include(self, element: etree._Element, scope: Scope, file: Path | None,
                 nested: int) -> None:
        root, path = self._files.read(element, file, nested)
        try:
            version = version_of(root)
            model = child_of(root, 'model')
            if model is not None:
                self.read_model(model, replace(scope, version=version), path, nested + 1,
                                include=element)
            elif child_of(root, 'light') is None and child_of(root, 'actor') is None:
                raise DescriptionError('has no <model>', element='<sdf>', line=root.sourceline)
        except DescriptionError as error:
            raise error.within(str(path)) from None

    def _read_part(self, element: etree._Element, scope: Scope, file: str) -> None:
        """Collect a link or a joint, and its frame."""
        tag, name = local_name(element), scope.absolute(name_of(element))
        where = f'{tag} {name!r}'
        pose = child_of(element, 'pose', name, self.findings)
        above, attached = MODEL, ''
        if tag == 'joint':
            above = text_of(element, 'child')
            if not above:
                raise DescriptionError('has no <child>', element=where, line=element.sourceline,
                                       valid='<child>name of a link</child>')
            attached = scope.absolute(above)
        frame = self._frames.add(name, Frame(
            pose_of(pose, where), scope.absolute(relative_to(pose) or above), attached,
            line=element.sourceline), rename=tag == 'joint')
        entries = self._links if tag == 'link' else self._joints
        entries.append(Entry(name, frame, element, scope, file))
        if len(entries) > MAX_LINKS:
            raise DescriptionError(f'more than {MAX_LINKS} {tag}s', element=where,
                                   line=element.sourceline)

    def _read_frame(self, element: etree._Element, scope: Scope) -> None:
        name = scope.absolute(name_of(element))
        pose = child_of(element, 'pose', name, self.findings)
        attached = element.get('attached_to') or MODEL
        self._frames.add(name, Frame(
            pose_of(pose, f'frame {name!r}'), scope.absolute(relative_to(pose) or attached),
            scope.absolute(attached), line=element.sourceline))

    def _ignore(self, tag: str, element: etree._Element, why: str) -> None:
        self.findings.append(Finding(WORLD, tag, '', f'<{tag}> (line {element.sourceline})',
                                     False, why))

    def description(self, name: str, gravity: tuple[float, ...] | None) -> RobotDescription:
        """Return the robot, with all poses and names resolved."""
        self._frames.check()
        links, poses = {}, {WORLD: self._frames.pose(WORLD)}
        for entry in self._links:
            with in_file(entry.file):
                links[entry.name] = link_of(entry.name, entry.element, self.findings)
                poses[entry.name] = self._frames.pose(entry.name)
        connections = []
        for entry in self._joints:
            if not entry.scope.static:
                with in_file(entry.file):
                    connections.append(connection_of(entry, self._frames, self.findings))
        still = [entry.name for entry in self._links if entry.scope.static]
        robot = robot_of(name, links, poses, connections, still, self.findings)
        robot = replace(robot, gravity=gravity)
        names = {joint.name for joint in robot.joints}
        for entry in self._joints:
            if entry.name in names:
                robot = with_drake_motor(robot, entry.name, entry.element)
        return robot
