"""Computes volume, centre of mass and inertia of homogeneous solids; finds mesh files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from robodyn_ros.description.packages import package_folders
from robodyn_ros.description.robot import Shape
from robodyn_ros.errors import DescriptionError, ValueRangeError
from robodyn_ros.files import read_regular
from robodyn_ros.packages import package
from robodyn_ros.spatial import Array, Inertial, point_inertia

MAX_MESH_BYTES = 100_000_000  # a million triangles in binary STL have 50 MB
MESH_TYPES = ('.stl', '.obj', '.ply', '.off', '.dae')
A_MESH = 'a mesh: ' + ', '.join(MESH_TYPES)


@dataclass(frozen=True)
class Solid:
    """A homogeneous solid.

    Attributes
    ----------
    volume : float
        m^3.
    com : ndarray, shape (3,)
        Centre of mass, m.
    moment : ndarray, shape (3, 3)
        Inertia tensor about the centre of mass for a density of 1 kg/m^3, m^5.
    points : ndarray, shape (k, 3)
        Points whose convex hull encloses the solid, m.
    note : str
        Assumptions that were made, for example for a mesh that is not closed.
    """

    volume: float
    com: Array
    moment: Array
    points: Array
    note: str = ''

    def inertial(self, *, mass: float | None = None, density: float | None = None) -> Inertial:
        """Return mass, centre and inertia for a mass (kg) or a density (kg/m^3).

        Raises
        ------
        ValueRangeError
            Neither or both are given, or the value is not above 0.
        """
        if (mass is None) == (density is None):
            raise ValueRangeError('mass, density', (mass, density), 'one of the two')
        given = mass if mass is not None else density
        if given is None or not (np.isfinite(given) and given > 0):
            raise ValueRangeError('mass' if density is None else 'density', given, 'a number > 0')
        whole = given if density is None else given * self.volume
        return Inertial(whole, self.com, whole / self.volume * self.moment)

    def moved(self, translation: Array, rotation: Array) -> Solid:
        """Return the solid in another frame: ``p -> rotation @ p + translation``."""
        return Solid(self.volume, rotation @ self.com + translation,
                     rotation @ self.moment @ rotation.T, self.points @ rotation.T + translation,
                     self.note)


def together(solids: Sequence[Solid]) -> Solid:
    """Return several solids as one; where they overlap, their volume counts twice."""
    volume = sum(solid.volume for solid in solids)
    com = sum((solid.volume * solid.com for solid in solids), np.zeros(3)) / volume
    moment = np.zeros((3, 3))
    for solid in solids:
        moment += solid.moment + solid.volume * point_inertia(solid.com - com)
    return Solid(volume, com, moment, np.concatenate([solid.points for solid in solids]),
                 '; '.join(dict.fromkeys(solid.note for solid in solids if solid.note)))


def solid_of(shape: Shape, folders: Iterable[Path] = ()) -> Solid:
    """Return a shape as a solid in its link's frame.

    Parameters
    ----------
    shape : Shape
        The shape.
    folders : iterable of Path
        Folders that are searched for meshes, besides the packages of the environment.

    Raises
    ------
    DescriptionError
        The mesh is missing or cannot be read.
    """
    if shape.kind == 'mesh':
        solid = mesh_solid(find_mesh(shape.file, folders), shape.size)
    else:
        solid = _PRIMITIVES[shape.kind](*shape.size)
    return solid.moved(shape.translation, shape.rotation)


def box(x: float, y: float, z: float) -> Solid:
    """Return a box with edges along x, y and z, m (Kolyubin App. 3)."""
    volume = x * y * z
    moment = volume / 12 * np.diag([y * y + z * z, x * x + z * z, x * x + y * y])
    corners = np.array(np.meshgrid([-x, x], [-y, y], [-z, z])).reshape(3, -1).T / 2
    return Solid(volume, np.zeros(3), moment, corners)


def sphere(radius: float) -> Solid:
    """Return a sphere; its radius is in m."""
    volume = 4 / 3 * np.pi * radius**3
    return Solid(volume, np.zeros(3), np.eye(3) * 0.4 * volume * radius**2,
                 box(2 * radius, 2 * radius, 2 * radius).points)


def cylinder(radius: float, length: float) -> Solid:
    """Return a cylinder along z; radius and length in m."""
    volume = np.pi * radius**2 * length
    across = volume * (3 * radius**2 + length**2) / 12
    return Solid(volume, np.zeros(3), np.diag([across, across, volume * radius**2 / 2]),
                 _prism(radius, length))


def capsule(radius: float, length: float) -> Solid:
    """Return a cylinder along z with a hemisphere at each end; radius and length in m."""
    ball, rod = sphere(radius), cylinder(radius, length)
    shift = length / 2 + 3 / 8 * radius  # centre of mass of a hemisphere
    own = ball.moment - ball.volume * point_inertia(np.array([0, 0, 3 / 8 * radius]))
    moment = rod.moment + own + ball.volume * point_inertia(np.array([0, 0, shift]))
    return Solid(rod.volume + ball.volume, np.zeros(3), moment,
                 _prism(radius, length + 2 * radius))


def _prism(radius: float, length: float, sides: int = 16) -> Array:
    """Return the corners of a prism that encloses a cylinder."""
    angles = 2 * np.pi * np.arange(sides) / sides
    ring = radius / np.cos(np.pi / sides) * np.array([np.cos(angles), np.sin(angles)])
    return np.concatenate([np.vstack([ring, np.full(sides, z)]).T
                           for z in (-length / 2, length / 2)])


_PRIMITIVES: dict[str, Callable[..., Solid]] = {
    'box': box, 'sphere': sphere, 'cylinder': cylinder, 'capsule': capsule}


def mesh_solid(file: Path, scale: Sequence[float] = (1.0, 1.0, 1.0)) -> Solid:
    """Return the solid that a closed mesh encloses; for an open mesh, its convex hull.

    Parameters
    ----------
    file : Path
        STL, OBJ, PLY, OFF, or DAE where pycollada is installed.
    scale : sequence of float
        Factors along x, y, z.

    Raises
    ------
    DescriptionError
        The file cannot be read, or the mesh encloses no volume.
    """
    mesh = load_mesh(file)
    try:
        mesh.apply_scale(np.abs(scale))
        note = ''
        if not mesh.is_volume:
            mesh, note = mesh.convex_hull, f'{file.name} is not closed: its convex hull'
        volume = float(mesh.volume)
    except Exception as error:  # trimesh raises many kinds of errors for a broken file
        raise DescriptionError(f'cannot be read: {type(error).__name__}: {error}',
                               element=str(file), valid=A_MESH) from None
    if not (np.isfinite(volume) and volume > 0):
        raise DescriptionError('encloses no volume', element=str(file), valid=A_MESH)
    mirror = np.diag(np.sign(scale))
    return Solid(volume, np.array(mesh.center_mass), np.array(mesh.moment_inertia),
                 np.array(mesh.vertices), note).moved(np.zeros(3), mirror)


def load_mesh(file: Path) -> Any:
    """Return a mesh file as a ``trimesh.Trimesh``.

    Raises
    ------
    DescriptionError
        The file cannot be read.
    """
    trimesh = package('trimesh')
    if file.suffix.lower() not in MESH_TYPES:
        raise DescriptionError('is not a mesh in a known format', element=str(file), valid=A_MESH)
    content = read_regular(file, MAX_MESH_BYTES)
    try:
        return trimesh.load_mesh(BytesIO(content), file_type=file.suffix[1:].lower(),
                                 skip_materials=True)
    except Exception as error:  # trimesh raises many kinds of errors for a broken file
        raise DescriptionError(f'cannot be read: {type(error).__name__}: {error}',
                               element=str(file), valid=A_MESH) from None


def find_mesh(name: str, folders: Iterable[Path] = ()) -> Path:
    """Return the file that ``package://``, ``file://`` or a relative path names.

    Raises
    ------
    DescriptionError
        There is no such file.
    """
    scheme, separator, rest = name.partition('://')
    places = list(folders)
    if not separator:
        candidates = [place / name for place in places]
    elif scheme == 'file':
        candidates = [Path(rest)]
    elif scheme in ('package', 'model'):
        owner, _, inside = rest.partition('/')
        candidates = [folder / inside for folder in package_folders(owner, places)]
    else:
        candidates = []
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    raise DescriptionError('is not found', element=repr(name[:200]),
                           valid='a mesh beside the description or in a ROS package')
