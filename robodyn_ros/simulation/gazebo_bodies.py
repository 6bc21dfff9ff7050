"""Inertias of a robot in Gazebo: merged where links are fixed, and checked as Gazebo checks them.

Gazebo merges links on fixed joints as well, but if two of them have no mass, the result is not a
number and the robot does not appear.
"""

from __future__ import annotations

from functools import reduce

import numpy as np
from lxml import etree

from robodyn_ros.description.urdf import parse_urdf
from robodyn_ros.description.urdf_writer import inertial_element
from robodyn_ros.errors import ValueRangeError, shown
from robodyn_ros.model import LinkFrame, build_model
from robodyn_ros.spatial import Inertial, is_inertia, point_inertia

UNIT = Inertial(1.0, np.zeros(3), np.eye(3))
THIN = 2e-7  # of the largest moment; the round-off of Gazebo's principal moments is below it


def settle_inertials(root: etree._Element) -> None:
    """Give the inertia of each moving body to its first link, in place.

    The inertia of links that are fixed to the world has no effect, so it is replaced where Gazebo
    would refuse it.

    Parameters
    ----------
    root : Element
        URDF of the robot as it is spawned.

    Raises
    ------
    ValueRangeError
        Gazebo would refuse a link that moves, because of its mass or its inertia.
    """
    model = build_model(parse_urdf(etree.tostring(root)))
    first = {model.body_joints.index(joint.name): joint.child
             for joint in model.description.joints if joint.name in model.body_joints}
    elements = {link.get('name'): link for link in root.findall('link')}
    bodies: dict[int, dict[str, Inertial]] = {body: {} for body in first}
    for link in model.description.links:
        frame, own = model.link_frames[link.name], link.inertial
        if frame.body >= 0:
            if own is not None:
                bodies[frame.body][link.name] = _in_body(own, frame)
        elif link.name != 'world':
            _set_inertial(elements[link.name], UNIT if own is None or not is_accepted(own)
                          else thickened(own))
    for body, links in bodies.items():
        whole = reduce(merged, links.values(), Inertial(0.0, np.zeros(3), np.zeros((3, 3))))
        if not is_accepted(whole):
            raise _refusal(first[body], model.body_joints[body], whole, links)
        thick = thickened(whole)
        if list(links) != [first[body]] or thick is not whole:
            for name in links:
                _set_inertial(elements[name], None)
            _set_inertial(elements[first[body]], thick)


def is_accepted(body: Inertial) -> bool:
    """Return whether Gazebo accepts a body, once it is not too thin."""
    return body.mass > 0 and is_inertia(body.inertia)


def thickened(body: Inertial) -> Inertial:
    """Return a body that is not so thin that the round-off of Gazebo decides on its validity.

    Of rods and plates, whose principal moments are just possible, Gazebo refuses some. The inertia
    of such a body grows by at most `THIN` of its largest principal moment.
    """
    least, middle, largest = np.linalg.eigvalsh(body.inertia).tolist()
    missing = THIN * largest - min(least, least + middle - largest)
    if missing <= 0:
        return body
    return Inertial(body.mass, body.com, body.inertia + missing * np.eye(3))


def merged(first: Inertial, second: Inertial) -> Inertial:
    """Return two bodies in the same frame as one body (Steiner's theorem)."""
    mass = first.mass + second.mass
    com = (first.mass * first.com + second.mass * second.com) / mass if mass else np.zeros(3)
    tensor = sum((body.inertia + body.mass * point_inertia(body.com - com)
                  for body in (first, second)), np.zeros((3, 3)))
    return Inertial(mass, com, tensor)


def _in_body(inertial: Inertial, frame: LinkFrame) -> Inertial:
    """Return an inertial in the frame of the body that carries its link."""
    turn = frame.rotation
    return Inertial(inertial.mass, turn @ inertial.com + frame.translation,
                    turn @ inertial.inertia @ turn.T)


def _set_inertial(link: etree._Element, inertial: Inertial | None) -> None:
    for old in link.findall('inertial'):
        link.remove(old)
    if inertial is not None:
        link.append(inertial_element(inertial))


def _refusal(first: str, joint: str, whole: Inertial, links: dict[str, Inertial],
             ) -> ValueRangeError:
    """Return the error for a body that Gazebo refuses; it names its link and joint."""
    if not whole.mass > 0:
        return ValueRangeError(
            f'mass of the link {first!r} in Gazebo', whole.mass, 'a mass of this link or of one '
            f'that is fixed to it; else Gazebo leaves out the joint {joint!r}')
    bad = [name for name, own in links.items() if not is_accepted(own)] or list(links)
    moments = np.linalg.eigvalsh(whole.inertia).tolist()
    return ValueRangeError(
        f'inertia in Gazebo of {", ".join(map(repr, bad))}, which the joint {joint!r} moves,',
        f'{shown(moments)} (principal moments, kg m^2)', 'none below 0, and none larger than the '
        'sum of the others')
