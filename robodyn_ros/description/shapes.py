"""Reads the geometry of links; unreadable shapes are skipped, since dynamics do not need them."""

from __future__ import annotations

import numpy as np
from lxml import etree

from robodyn_ros.description.robot import Shape
from robodyn_ros.spatial import rotation_from_rpy

LARGEST = 1e6  # m; larger numbers in a geometry are mistakes

# the attributes of each kind of shape, and how many numbers each one holds
_SIZES = {'box': (('size', 3),), 'sphere': (('radius', 1),),
          'cylinder': (('radius', 1), ('length', 1)), 'capsule': (('radius', 1), ('length', 1))}


def read_shapes(link: etree._Element, tag: str) -> tuple[Shape, ...]:
    """Return the shapes of a ``<link>``; ``tag`` is ``collision`` or ``visual``."""
    found = (_shape(element) for element in link.iterfind(tag))
    return tuple(shape for shape in found if shape is not None)


def _shape(element: etree._Element) -> Shape | None:
    origin = element.find('origin')
    xyz = _numbers(origin, 'xyz', 3, (0.0, 0.0, 0.0))
    rpy = _numbers(origin, 'rpy', 3, (0.0, 0.0, 0.0))
    geometry = element.find('geometry')
    content = None if geometry is None else next(iter(geometry), None)
    if content is None or xyz is None or rpy is None:
        return None
    if content.tag == 'mesh':
        size, file = _numbers(content, 'scale', 3, (1.0, 1.0, 1.0)), content.get('filename') or ''
    elif content.tag in _SIZES:
        parts = [_numbers(content, name, count) for name, count in _SIZES[content.tag]]
        size, file = None if None in parts else sum(filter(None, parts), ()), ''
    else:
        return None
    if size is None or (content.tag != 'mesh' and min(size) <= 0):
        return None
    return Shape(content.tag, size, np.array(xyz), rotation_from_rpy(rpy), file)


def _numbers(element: etree._Element | None, name: str, count: int,
             default: tuple[float, ...] | None = None) -> tuple[float, ...] | None:
    """Return the numbers of an attribute, the default if it is absent, None if it is invalid."""
    text = None if element is None else element.get(name)
    if text is None:
        return default
    try:
        numbers = tuple(map(float, text.split()))
    except ValueError:
        return None
    good = len(numbers) == count and all(abs(number) <= LARGEST for number in numbers)
    return numbers if good else None
