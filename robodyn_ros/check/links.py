"""Checks a link: its inertial by itself, and against its geometry."""

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

LIGHTEST = 50.0  # kg/m^3: half of a light foam core; hollow arms have several hundred
HEAVIEST = 12000.0  # kg/m^3: lead has 11340
NEGLIGIBLE = 1e-3  # kg: lighter links are mostly placeholders, their geometry is not checked
FARTHEST_OUTSIDE = 0.5  # of the geometry's size: how far outside a centre of mass may lie
PLACEHOLDER = 5e-3  # m: no collision shape that is meant is smaller in all directions
PLACEHOLDER_RATIO = 0.25  # of the visual geometry's size: nor so much smaller than what is seen
LARGEST_GYRATION = 2.0  # m: radius of gyration of a link; wrong units give 30 and more
LONGEST_ARM = 2.0  # m: distance of a centre of mass from the link's frame
INERTIA_MARGIN = 1.5  # how far an inertia may exceed what fits into a bounding box
TRIANGLE_MARGIN = 1e-3  # of the triangle inequality: descriptions round to a few digits
ROUND_OFF = 1e-9  # of the largest moment
SMALLEST_SIZE = 1e-3  # m: moments of a body of 1 mm, by which round-off is measured as well
LEAST_EXCESS = 1e-12  # kg m^2: a smaller excess over the triangle inequality is round-off


def check_link(link: Link, model: Model, joint: Joint | None, folders: tuple[Path, ...] | None,
               issues: list[Issue]) -> dict[str, Any]:
    """Return the facts of a link, and add the issues found.

    Parameters
    ----------
    link : Link
        The link.
    model : Model
        The robot.
    joint : Joint or None
        The joint whose child it is; None for the root link.
    folders : tuple of Path or None
        Where meshes are looked for; None: no file is opened.
    issues : list of Issue
        Issues are added here.
    """
    where = f'link {link.name}'
    facts: dict[str, Any] = {'link': link.name, 'mass_kg': 0.0, 'centre_of_mass_m': None,
                             'principal_moments_kg_m2': None}
    body = model.link_frames[link.name].body
    if link.inertial is None:
        moves = joint is not None and joint.type != 'fixed'
        if moves and body >= 0 and model.inertial_parameters[body, 6] == 0:
            issues.append(Issue('warning', where, 'the link moves and has no <inertial>, so it '
                                'counts as weightless; valid: <inertial> with <mass> and '
                                '<inertia>'))
        return facts
    inertial = link.inertial
    moments = np.linalg.eigvalsh(inertial.inertia).tolist()
    facts |= {'mass_kg': inertial.mass, 'centre_of_mass_m': inertial.com.tolist(),
              'principal_moments_kg_m2': moments}
    found = _check_inertial(inertial)
    if body < 0:  # fixed to the root: it affects no dynamics, but the file is wrong all the same
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
    """Severity and text of what is wrong with an inertial, whatever the geometry."""
    found = []
    moments = np.linalg.eigvalsh(inertial.inertia)
    largest = max(float(np.abs(moments).max()), inertial.mass * SMALLEST_SIZE**2)
    moments[np.abs(moments) < ROUND_OFF * largest] = 0.0
    size = float(moments[2])
    if moments[0] < 0:
        found.append(('fault', f'principal moments {shown(moments)}: one is negative, which no '
                               'rigid body has'))
    elif moments[2] > (moments[0] + moments[1]) * (1 + TRIANGLE_MARGIN) + LEAST_EXCESS:
        found.append(('fault', f'principal moments {shown(moments)} break the triangle '
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
    """What is implausible of an inertial within the link's geometry."""
    collision = _solid(link.collision, folders, facts)
    visual = _solid(link.visual, folders, {})  # often in formats that are not read
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
    """Diagonal of the bounding box, m."""
    return float(np.linalg.norm(np.ptp(solid.points, axis=0)))


def _is_placeholder(collision: Solid, visual: Solid | None) -> bool:
    """Whether a collision geometry is tiny, or far smaller than the visual geometry."""
    return bool(np.ptp(collision.points, axis=0).max() < PLACEHOLDER) or (
        visual is not None and _extent(collision) < PLACEHOLDER_RATIO * _extent(visual))


def _check_bounding_box(inertial: Inertial, solid: Solid) -> list[str]:
    """What does not fit into the bounding box of the geometry."""
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
        found.append(f'its inertia {largest:.3g} kg m^2 needs more room than its geometry has: '
                     f'{inertial.mass:.4g} kg within {farthest:.3g} m have at most {most:.3g}')
    return found


def _solid(shapes: tuple[Shape, ...], folders: tuple[Path, ...] | None,
           facts: dict[str, Any]) -> Solid | None:
    """The shapes as one solid; None where there are none, or one cannot be read."""
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
