"""A robot in a scene of viser: links, meshes, inertia boxes, centres of mass, findings."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from robodyn_ros.check import CheckReport
from robodyn_ros.description.robot import Link, Shape
from robodyn_ros.description.solids import find_mesh, load_mesh
from robodyn_ros.dynamics.tree import build_tree, joint_transforms
from robodyn_ros.errors import DescriptionError, MissingPackageError
from robodyn_ros.excitation.capsules import Capsule
from robodyn_ros.model import Model
from robodyn_ros.packages import package
from robodyn_ros.spatial import Array, Inertial, quaternion_of

# of Okabe and Ito's palette
BODY, SUSPECT, INERTIA, CENTRE = (120, 130, 140), (213, 94, 0), (0, 114, 178), (230, 159, 0)
OTHER = (204, 121, 167)  # inertia boxes of the second model
CAPSULE = (0, 158, 115)
RADIUS = 0.05  # m, radius of the sphere at the centre of 1 kg; it grows with the mass's cube root


class RobotScene:
    """A robot in a scene.

    Parameters
    ----------
    scene : viser.SceneApi
        Where it is drawn.
    model : Model
        The robot.
    folders : iterable of Path
        Folders in which meshes are looked for.
    report : CheckReport, optional
        Links with issues are marked.
    beside : Model, optional
        Another model of the same robot, for example the identified one; its inertials are drawn
        in another colour.

    Attributes
    ----------
    notes : list of str
        Which geometry could not be drawn, and why.
    """

    def __init__(self, scene: Any, model: Model, folders: Iterable[Path] = (), *,
                 report: CheckReport | None = None, beside: Model | None = None):
        self.scene, self.model, self.notes = scene, model, list[str]()
        self._tree = build_tree(model)
        self._frames: dict[str, Any] = {}
        self._shapes: list[Any] = []
        self._inertials: list[Any] = []
        self._capsules: dict[str, Any] = {}
        issues: dict[str, list[str]] = {}
        for issue in report.issues if report else ():
            kind, _, name = issue.where.partition(' ')
            if kind == 'link':
                issues.setdefault(name, []).append(issue.text)
        others = {link.name: link for link in beside.description.links} if beside else {}
        for link in model.description.links:
            self._add_link(link, tuple(folders), issues.get(link.name, []), others.get(link.name))
        self.move(np.zeros(model.n))

    def move(self, q: Array) -> None:
        """Put the robot into a pose.

        Parameters
        ----------
        q : ndarray, shape (n,)
            Positions of the joints, rad or m.
        """
        bodies = body_poses(self._tree, q)
        for name, frame in self._frames.items():
            place = self.model.link_frames[name]
            rotation, origin = bodies[place.body] if place.body >= 0 else (np.eye(3), np.zeros(3))
            frame.wxyz = quaternion(rotation @ place.rotation)
            frame.position = origin + rotation @ place.translation

    def show_shapes(self, shown: bool) -> None:
        """Show or hide the geometry."""
        for handle in self._shapes:
            handle.visible = shown

    def show_inertials(self, shown: bool) -> None:
        """Show or hide inertia boxes and centres of mass."""
        for handle in self._inertials:
            handle.visible = shown

    def add_capsules(self, capsules: Iterable[Capsule]) -> None:
        """Draw capsules around links."""
        trimesh = package('trimesh')
        for capsule in capsules:
            start, end = np.array(capsule.start), np.array(capsule.end)
            length = float(np.linalg.norm(end - start))
            mesh = trimesh.creation.capsule(height=length, radius=capsule.radius, count=(12, 16))
            along = (end - start) / length if length > 0 else np.array([0.0, 0.0, 1.0])
            self._capsules[capsule.link] = self.scene.add_mesh_simple(
                f'/robot/{capsule.link}/capsule',
                np.asarray(mesh.vertices) - [0.0, 0.0, mesh.vertices[:, 2].mean()],
                np.asarray(mesh.faces), color=CAPSULE, opacity=0.2,
                position=(start + end) / 2, wxyz=quaternion(frame_along(along)))

    def mark_capsules(self, links: Iterable[str]) -> None:
        """Mark the capsules of some links, and no others."""
        for link, handle in self._capsules.items():
            colour = SUSPECT if link in links else CAPSULE
            if tuple(handle.color) != colour:
                handle.color = colour

    def show_capsules(self, shown: bool) -> None:
        """Show or hide the capsules."""
        for handle in self._capsules.values():
            handle.visible = shown

    def _add_link(self, link: Link, folders: tuple[Path, ...], issues: list[str],
                  other: Link | None) -> None:
        path = f'/robot/{link.name}'
        self._frames[link.name] = self.scene.add_frame(path, show_axes=False)
        colour = SUSPECT if issues else BODY
        # collision geometry replaces visual geometry whose file format is not supported
        why = self._add_shapes(path, link.visual, folders, colour)
        if why or not link.visual:
            why = self._add_shapes(path, link.collision, folders, colour) or (
                why if not link.collision else '')
        if why:
            self.notes.append(f'{link.name}: {why}')
        for name, one, tint in (('inertia', link, INERTIA), ('other', other, OTHER)):
            if one is not None and one.inertial is not None and one.inertial.mass > 0:
                self._add_inertial(f'{path}/{name}', one.inertial, tint)
        if issues:
            self._inertials.append(self.scene.add_label(
                f'{path}/issue', f'{link.name}: {"; ".join(one.split(":")[0] for one in issues)}'))

    def _add_shapes(self, path: str, shapes: tuple[Shape, ...], folders: tuple[Path, ...],
                    colour: tuple[int, int, int]) -> str:
        """Add geometry; return why a piece of it cannot be drawn, or an empty text."""
        try:
            for k, shape in enumerate(shapes):
                self._shapes.append(self._add_shape(f'{path}/shape{k}', shape, folders, colour))
        except (DescriptionError, MissingPackageError) as error:
            return str(error)
        return ''

    def _add_shape(self, name: str, shape: Shape, folders: tuple[Path, ...],
                   colour: tuple[int, int, int]) -> Any:
        """Add one piece of geometry, half transparent, so that inertials are seen in it."""
        place = {'position': shape.translation, 'wxyz': quaternion(shape.rotation),
                 'color': colour, 'opacity': 0.5}
        if shape.kind == 'box':
            return self.scene.add_box(name, dimensions=shape.size, **place)
        if shape.kind == 'sphere':
            return self.scene.add_icosphere(name, radius=shape.size[0], **place)
        trimesh = package('trimesh')
        if shape.kind == 'mesh':
            mesh = load_mesh(find_mesh(shape.file, folders))
            vertices = np.asarray(mesh.vertices) * np.asarray(shape.size)
        else:
            make = getattr(trimesh.creation, shape.kind)
            mesh = make(radius=shape.size[0], height=shape.size[1])
            vertices = np.asarray(mesh.vertices)
        return self.scene.add_mesh_simple(name, vertices, np.asarray(mesh.faces), side='double',
                                          **place)

    def _add_inertial(self, name: str, inertial: Inertial, colour: tuple[int, int, int]) -> None:
        """Add the box of uniform density with the same inertia, and the centre of mass."""
        size, rotation = inertia_box(inertial)
        self._inertials += [
            self.scene.add_box(f'{name}/box', dimensions=tuple(size), color=colour,
                               wireframe=True, position=inertial.com, wxyz=quaternion(rotation)),
            self.scene.add_icosphere(f'{name}/centre', radius=RADIUS * np.cbrt(inertial.mass) / 2,
                                     color=CENTRE if colour == INERTIA else colour,
                                     position=inertial.com)]


def inertia_box(inertial: Inertial) -> tuple[Array, Array]:
    """Return edges (m) and axes of the box of uniform density with the inertia of a body.

    A moment that no body can have gives an edge of zero.
    """
    moments, axes = np.linalg.eigh(inertial.inertia)
    if np.linalg.det(axes) < 0:
        axes[:, 0] *= -1
    squares = 6 * (moments.sum() - 2 * moments) / inertial.mass
    return np.sqrt(np.maximum(squares, 0.0)), axes


def frame_along(axis: Array) -> Array:
    """Return a rotation matrix whose z axis is a unit vector."""
    beside = np.eye(3)[np.argmin(np.abs(axis))]
    x = np.cross(beside, axis)
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(axis, x), axis])


def body_poses(tree: Any, q: Array) -> list[tuple[Array, Array]]:
    """Return rotation and origin of every body in the root frame."""
    poses: list[tuple[Array, Array]] = []
    for placement, parent in zip(joint_transforms(tree, q)[:tree.bodies], tree.parent,
                                 strict=False):
        rotation, origin = (np.eye(3), np.zeros(3)) if parent < 0 else poses[parent]
        poses.append((rotation @ placement.rotation, origin + rotation @ placement.translation))
    return poses


def quaternion(rotation: Array) -> Array:
    """Return a rotation matrix as a unit quaternion, w first."""
    return np.roll(quaternion_of(rotation), 1)
