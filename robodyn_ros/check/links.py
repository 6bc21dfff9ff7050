"""Judges a link: its inertial by itself, and against its geometry."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from robodyn_ros.check.report import Doubt, shown
from robodyn_ros.description import Inertial, Joint, Link, Shape
from robodyn_ros.errors import DescriptionError
from robodyn_ros.geometry import Solid, solid_of, together
from robodyn_ros.model import Model

LIGHT = 50.0  # kg/m^3: half of a light foam core; a hollow arm has some hundred
HEAVY = 12000.0  # kg/m^3: denser than lead
NEGLIGIBLE = 1e-3  # kg: what weighs less, placeholders mostly, is not held against its geometry
FAR = 0.5  # how far outside its geometry a centre of mass may lie, of the geometry's size


def check_link(link: Link, model: Model, joint: Joint | None, folders: tuple[Path, ...] | None,
               doubts: list[Doubt]) -> dict[str, Any]:
    """Return facts of a link; add what is doubtful of it."""
    where = f'link {link.name}'
    facts: dict[str, Any] = {'link': link.name, 'mass': 0.0, 'com': None, 'moments': None}
    if link.inertial is None:
        moves = joint is not None and joint.type != 'fixed'
        body = model.link_frames[link.name].body
        if moves and body >= 0 and model.rigid[body, 6] == 0:
            doubts.append(Doubt('warning', where, 'it moves and has no <inertial>: it is '
                                'weightless; valid: <inertial> with <mass> and <inertia>'))
        return facts
    inertial = link.inertial
    facts.update(mass=inertial.mass, com=inertial.com.tolist(),
                 moments=np.linalg.eigvalsh(inertial.inertia).tolist())
    matters = joint is not None and inertial.mass > NEGLIGIBLE
    doubts += [Doubt(severity if matters or inertial.mass == 0 else 'warning', where, text)
               for severity, text in _alone(inertial)]
    if inertial.mass > 0:
        facts['gyration'] = float(np.sqrt(max(facts['moments'][2], 0.0) / inertial.mass))
        texts = _against_geometry(link, inertial, folders, facts)
        doubts += [Doubt('warning', where, text) for text in texts if matters]
        if joint is None:
            facts['note'] = 'root: moves nothing'
    return facts


def _alone(inertial: Inertial) -> list[tuple[str, str]]:
    found = []
    moments = np.linalg.eigvalsh(inertial.inertia)
    moments[np.abs(moments) < 1e-9 * max(np.abs(moments).max(), inertial.mass * 1e-6)] = 0.0
    size = float(moments[2])
    if moments[0] < 0:
        found.append(('fault', f'principal moments {shown(moments)}: one is negative, no body '
                               'has that'))
    elif moments[2] > (moments[0] + moments[1]) * (1 + 1e-3) + 1e-12:
        found.append(('fault', f'principal moments {shown(moments)} break the triangle '
                               'inequality: each is at most the sum of the other two'))
    elif inertial.mass > 0 and size == 0:
        found.append(('warning', f'{inertial.mass} kg and no inertia: a point'))
    if inertial.mass == 0 and size > 0:
        found.append(('fault', 'an inertia without a mass'))
    if inertial.mass > 0:
        gyration = float(np.sqrt(max(size, 0.0) / inertial.mass))
        if gyration > 2.0:
            found.append(('warning', f'radius of gyration {gyration:.2f} m: are the units '
                                     'kg m^2?'))
        away = float(np.linalg.norm(inertial.com))
        if away > 2.0:
            found.append(('warning', f'its centre of mass lies {away:.2f} m from its frame'))
    return found


def _against_geometry(link: Link, inertial: Inertial, folders: tuple[Path, ...] | None,
                      facts: dict[str, Any]) -> list[str]:
    collision = _solid(link.collision, folders, facts)
    if collision is not None:
        facts['density'] = density = inertial.mass / collision.volume
        if not LIGHT <= density <= HEAVY:
            like = 'lighter than foam' if density < LIGHT else 'denser than lead'
            return [f'{inertial.mass:.4g} kg in {collision.volume:.3g} m^3 of collision '
                    f'geometry: {density:.3g} kg/m^3, {like}']
    solid = _together(collision, _solid(link.visual, folders, {}))  # often unread formats
    return [] if solid is None else _outside(inertial, solid)


def _outside(inertial: Inertial, solid: Solid) -> list[str]:
    """What the geometry has no room for; its bounding box stands for it."""
    found = []
    lower, upper = solid.points.min(axis=0), solid.points.max(axis=0)
    size = float(np.linalg.norm(upper - lower))
    outside = float(np.linalg.norm(np.maximum(0, np.maximum(lower - inertial.com,
                                                            inertial.com - upper))))
    if outside > FAR * size:
        found.append(f'its centre of mass lies {outside:.3g} m outside its geometry, which '
                     f'measures {size:.3g} m')
    corners = np.array(np.meshgrid(*zip(lower, upper, strict=True))).reshape(3, -1).T
    farthest = float(np.linalg.norm(corners - inertial.com, axis=1).max())
    largest = float(np.linalg.eigvalsh(inertial.inertia)[2])
    most = inertial.mass * farthest**2
    if largest > 1.5 * most:
        found.append(f'its inertia {largest:.3g} kg m^2 needs more room than its geometry has: '
                     f'{inertial.mass:.4g} kg within {farthest:.3g} m have at most {most:.3g}')
    return found


def _solid(shapes: tuple[Shape, ...], folders: tuple[Path, ...] | None,
           facts: dict[str, Any]) -> Solid | None:
    """The shapes as one solid; None where there are none or one is not to be had."""
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
