"""Checks a link: whether its inertial is consistent, and whether it fits the geometry."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from robodyn_ros.check.report import Issue, shown
from robodyn_ros.description.robot import Joint, Link, Shape
from robodyn_ros.description.solids import Solid, solid_of, together
from robodyn_ros.errors import DescriptionError
from robodyn_ros.model import Model
from robodyn_ros.spatial import Inertial

LIGHTEST = 50.0  # kg/m^3, half of a light foam core; hollow arms have several hundred
HEAVIEST = 12000.0  # kg/m^3; lead has 11340
NEGLIGIBLE = 1e-3  # kg; lighter links are mostly placeholders, whose geometry is not checked
FARTHEST_OUTSIDE = 0.5  # largest distance of a centre of mass from the geometry, over its size
PLACEHOLDER = 5e-3  # m; a collision geometry that is smaller in all directions is a placeholder
PLACEHOLDER_RATIO = 0.25  # or one that is smaller than this fraction of the visual geometry
LARGEST_GYRATION = 2.0  # m, radius of gyration of a link; wrong units give 30 and more
LONGEST_ARM = 2.0  # m, distance of a centre of mass from the link's frame
INERTIA_MARGIN = 1.5  # factor by which an inertia may exceed the largest one in the bounding box
TRIANGLE_MARGIN = 1e-3  # relative, for the triangle inequality of values rounded to a few digits
ROUND_OFF = 1e-9  # relative to the largest moment
SMALLEST_SIZE = 1e-3  # m; round-off is at least that of the moments of a body of this size
LEAST_EXCESS = 1e-12  # kg m^2; a smaller excess over the triangle inequality is round-off


def check_link(link: Link, model: Model, joint: Joint | None, folders: tuple[Path, ...] | None,
               issues: list[Issue]) -> dict[str, Any]:
    """Return the facts of a link, and append issues to a list.

    Parameters
    ----------
    link : Link
        The link.
    model : Model
        The robot.
    joint : Joint or None
        The joint whose child it is; None for the root link.
    folders : tuple of Path or None
        Folders that are searched for meshes; None: no file is opened.
    issues : list of Issue
        Receives the issues.
    """
    where = f'link {link.name}'
    facts: dict[str, Any] = {'link': link.name, 'mass_kg': 0.0, 'centre_of_mass_m': None,
                             'principal_moments_kg_m2': None}
    body = model.link_frames[link.name].body
    if link.inertial is None:
        moves = joint is not None and joint.type != 'fixed' and not link.added
        if moves and body >= 0 and model.inertial_parameters[body, 6] == 0:
            issues.append(Issue('warning', where, 'the link moves and has no <inertial>, so its '
                                'mass is taken as zero; valid: <inertial> with <mass> and '
                                '<inertia>'))
        return facts
    inertial = link.inertial
    moments = np.linalg.eigvalsh(inertial.inertia).tolist()
    facts |= {'mass_kg': inertial.mass, 'centre_of_mass_m': inertial.com.tolist(),
              'principal_moments_kg_m2': moments}
    found = _check_inertial(inertial)
    if body < 0:  # fixed to the root: without effect on the dynamics, but still an error
        issues += [Issue('warning', where, text) for severity, text in found
                   if severity == 'fault']
    else:
        light = 0 < inertial.mass <= NEGLIGIBLE
        issues += [Issue('warning' if light else severity, where, text)
                   for severity, text in found]
    if inertial.mass > 0:
        facts['radius_of_gyration_m'] = float(np.sqrt(max(moments[2], 0.0) / inertial.mass))
        texts = _check_geometry(link, inertial, folders, facts)
        if body >= 0 and inertial.mass > NEGLIGIBLE:
            issues += [Issue('warning', where, text) for text in texts]
        if joint is None:
            facts['note'] = 'root link: it does not move'
    return facts


def _check_inertial(inertial: Inertial) -> list[tuple[str, str]]:
    """Return severity and text of everything that is wrong with an inertial by itself."""
    found = []
    moments = np.linalg.eigvalsh(inertial.inertia)
    largest = max(float(np.abs(moments).max()), inertial.mass * SMALLEST_SIZE**2)
    moments[np.abs(moments) < ROUND_OFF * largest] = 0.0
    size = float(moments[2])
    if moments[0] < 0:
        found.append(('fault', f'principal moments {shown(moments)}: one is negative, which is '
                               'impossible for a rigid body'))
    elif moments[2] > (moments[0] + moments[1]) * (1 + TRIANGLE_MARGIN) + LEAST_EXCESS:
        found.append(('fault', f'principal moments {shown(moments)} violate the triangle '
                               'inequality: each is at most the sum of the other two'))
    elif inertial.mass > 0 and size == 0:
        found.append(('warning', f'a point mass: {inertial.mass:g} kg without inertia'))
    if inertial.mass == 0 and size > 0:
        found.append(('fault', 'an inertia without a mass'))
    if inertial.mass > 0:
        gyration = float(np.sqrt(max(size, 0.0) / inertial.mass))
        if gyration > LARGEST_GYRATION:
            found.append(('warning', f'its radius of gyration is {gyration:.2f} m; is its inertia '
                                     'given in kg m^2?'))
        arm = float(np.linalg.norm(inertial.com))
        if arm > LONGEST_ARM:
            found.append(('warning', f'its centre of mass lies {arm:.2f} m from its frame'))
    return found


def _check_geometry(link: Link, inertial: Inertial, folders: tuple[Path, ...] | None,
                    facts: dict[str, Any]) -> list[str]:
    """Return what is implausible about an inertial, given the geometry of the link."""
    collision = _solid(link.collision, folders, facts)
    visual = _solid(link.visual, folders, {})  # often in an unsupported format: not reported
    if collision is not None and _is_placeholder(collision, visual):
        facts['geometry'] = 'its collision geometry is a placeholder'
        collision = None
    if collision is not None:
        facts['density_kg_m3'] = density = inertial.mass / collision.volume
        if not LIGHTEST <= density <= HEAVIEST:
            like = 'lighter than foam' if density < LIGHTEST else 'denser than lead'
            return [f'{inertial.mass:.4g} kg in {collision.volume:.3g} m^3 of collision '
                    f'geometry: {density:.3g} kg/m^3, {like}']
    solid = _together(collision, visual)
    return [] if solid is None else _check_bounding_box(inertial, solid)


def _extent(solid: Solid) -> float:
    """Return the diagonal of the bounding box, m."""
    return float(np.linalg.norm(np.ptp(solid.points, axis=0)))


def _is_placeholder(collision: Solid, visual: Solid | None) -> bool:
    """Return whether a collision geometry is tiny, or far smaller than the visual geometry."""
    return bool(np.ptp(collision.points, axis=0).max() < PLACEHOLDER) or (
        visual is not None and _extent(collision) < PLACEHOLDER_RATIO * _extent(visual))


def _check_bounding_box(inertial: Inertial, solid: Solid) -> list[str]:
    """Return what does not fit into the bounding box of the geometry."""
    found = []
    lower, upper = solid.points.min(axis=0), solid.points.max(axis=0)
    size = _extent(solid)
    outside = float(np.linalg.norm(np.maximum(0, np.maximum(lower - inertial.com,
                                                            inertial.com - upper))))
    if outside > FARTHEST_OUTSIDE * size:
        found.append(f'its centre of mass lies {outside:.3g} m outside its geometry, which '
                     f'measures {size:.3g} m')
    corners = np.array(np.meshgrid(*zip(lower, upper, strict=True))).reshape(3, -1).T
    farthest = float(np.linalg.norm(corners - inertial.com, axis=1).max())
    largest = float(np.linalg.eigvalsh(inertial.inertia)[2])
    most = inertial.mass * farthest**2
    if largest > INERTIA_MARGIN * most:
        found.append(f'its inertia {largest:.3g} kg m^2 is too large for its geometry: '
                     f'{inertial.mass:.4g} kg within {farthest:.3g} m have at most {most:.3g}')
    return found


def _solid(shapes: tuple[Shape, ...], folders: tuple[Path, ...] | None,
           facts: dict[str, Any]) -> Solid | None:
    """Return the shapes as one solid; None if there are none, or one cannot be read."""
    if not shapes or (folders is None and any(shape.kind == 'mesh' for shape in shapes)):
        return None
    try:
        solid = together([solid_of(shape, folders or ()) for shape in shapes])
    except DescriptionError as error:
        facts['geometry'] = str(error)
        return None
    if solid.note:
        facts['geometry'] = solid.note
    return solid


def _together(*solids: Solid | None) -> Solid | None:
    there = [solid for solid in solids if solid is not None]
    return together(there) if there else None
