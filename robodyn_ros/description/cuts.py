"""Cuts of closed loops in a URDF: an extension, which other parsers ignore.

``<closed_loop link1="A" link2="B"><pair point1="0.4 0 0" point2="0.3 0 0"/></closed_loop>``
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from lxml import etree

from robodyn_ros.description.robot import Cut
from robodyn_ros.description.xml import local_name
from robodyn_ros.errors import DescriptionError, UnknownNameError
from robodyn_ros.spatial import Array

TAG, PAIR, MOST = 'closed_loop', 'pair', 3  # pairs of points of a cut
LARGEST = 1e6  # m, coordinate of a point


def add_cuts(root: etree._Element, cuts: Iterable[Cut]) -> None:
    """Append the cuts to a URDF."""
    for cut in cuts:
        element = etree.SubElement(root, TAG, link1=cut.links[0], link2=cut.links[1])
        for one, other in cut.points:
            etree.SubElement(element, PAIR, point1=_text(one), point2=_text(other))


def read_cuts(root: etree._Element, links: Sequence[str]) -> tuple[Cut, ...]:
    """Return the cuts of a URDF.

    Raises
    ------
    DescriptionError
        A point is missing or not three numbers.
    UnknownNameError
        A link does not exist.
    """
    cuts = []
    for element in root:
        if local_name(element) != TAG:
            continue
        ends = element.get('link1', ''), element.get('link2', '')
        for name in ends:
            if name not in links:
                raise UnknownNameError(f'link of <{TAG}> (line {element.sourceline})', name, links)
        pairs = [one for one in element if local_name(one) == PAIR]
        if not 1 <= len(pairs) <= MOST:
            raise DescriptionError(f'has {len(pairs)} pairs of points', element=f'<{TAG}>',
                                   line=element.sourceline, valid=f'1 to {MOST} <{PAIR}>')
        cuts.append(Cut(ends, np.array([[_point(pair, name) for name in ('point1', 'point2')]
                                        for pair in pairs])))
    return tuple(cuts)


def _text(point: Array) -> str:
    return ' '.join(repr(float(x)) for x in point)


def _point(pair: etree._Element, name: str) -> list[float]:
    try:
        point = [float(text) for text in pair.get(name, '').split()]
    except ValueError:
        point = []
    if len(point) != 3 or not np.abs(point).max() < LARGEST:
        raise DescriptionError(f'{name} is {pair.get(name)!r}', element=f'<{PAIR}>',
                               line=pair.sourceline, valid='three numbers, m')
    return point
