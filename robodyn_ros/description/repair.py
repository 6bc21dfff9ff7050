"""Adds inertials that a description lacks, estimated from geometry and marked as such."""

from __future__ import annotations

from pathlib import Path

from lxml import etree

from robodyn_ros.description.solids import solid_of, together
from robodyn_ros.description.urdf import parse_urdf
from robodyn_ros.description.urdf_writer import inertial_element
from robodyn_ros.description.xml import parse_xml
from robodyn_ros.errors import DescriptionError
from robodyn_ros.spatial import Inertial


def add_missing_inertials(text: str | bytes, density: float, *, folders: tuple[Path, ...] = (),
                          ) -> tuple[str, dict[str, str]]:
    """Give every link without an ``<inertial>`` one, from its collision geometry.

    Parameters
    ----------
    text : str or bytes
        URDF text.
    density : float
        kg/m^3, > 0.
    folders : tuple of Path
        Folders that are searched for meshes.

    Returns
    -------
    text : str
        The URDF, with nothing else changed; each estimated inertial has a comment.
    done : dict
        For each link without an inertial: what was done, or why nothing could be done. The root
        link is left unchanged, since it does not move.

    Raises
    ------
    DescriptionError, ValueRangeError
        The description cannot be used, or the density is not above 0.
    """
    description = parse_urdf(text)
    root = parse_xml(description.urdf, comments=True)
    elements = {element.get('name'): element for element in root if element.tag == 'link'}
    carried = {joint.child for joint in description.joints}
    done: dict[str, str] = {}
    for link in description.links:
        if link.inertial is not None or link.name not in carried:
            continue
        shapes, which = link.collision or link.visual, 'collision' if link.collision else 'visual'
        if not shapes:
            done[link.name] = 'no inertial added: the link has no geometry'
            continue
        try:
            solid = together([solid_of(shape, folders) for shape in shapes])
        except DescriptionError as error:
            done[link.name] = f'no inertial added: {error}'
            continue
        inertial = solid.inertial(density=density)
        note = f'estimated from its {which} geometry at {density:g} kg/m^3'
        if solid.note:
            note += f' ({solid.note})'
        _insert(elements[link.name], inertial, note)
        done[link.name] = f'{inertial.mass:.4g} kg, {note}'
    return etree.tostring(root, encoding='unicode') + '\n', done


def _insert(link: etree._Element, inertial: Inertial, note: str) -> None:
    # the indentation of the file
    indent = link.text if link.text and not link.text.strip() else '\n    '
    element = inertial_element(inertial)
    for part in element:
        part.tail = indent + ('  ' if part.getnext() is not None else '')
    element.text = indent + '  '
    comment = etree.Comment(f' robodyn: {note.replace("--", "- -")} ')
    link.insert(0, comment)
    link.insert(1, element)
    link.text = comment.tail = indent
    element.tail = indent if len(link) > 2 else '\n  '
