"""Reads the definition of closed loops from YAML: cuts and independent joints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from robodyn_ros.description.mjcf import cuts_of
from robodyn_ros.description.robot import APART, Cut
from robodyn_ros.description.section import Section
from robodyn_ros.description.xml import MAX_BYTES
from robodyn_ros.errors import DescriptionError, UnknownNameError
from robodyn_ros.files import check_regular

KEYS = ('independent', 'driven', 'cuts', 'mjcf', 'start')
CUT_KEYS = ('links', 'points', 'axes', 'frames')
VALID = "'independent' or 'driven' with joints, 'cuts' with 'links' and 'points', or 'mjcf'"


@dataclass(frozen=True, eq=False)
class Loops:
    """Cuts, independent joints, and a pose from which the loops can be closed.

    Attributes
    ----------
    cuts : tuple of Cut
    independent : tuple of str
        The independent joints; the other joints depend on them. Empty: the driven joints, and
        passive joints that `ClosedLoopDynamics` chooses.
    start : dict of str to float
        Joint positions near a pose in which the loops are closed, rad or m; others are zero.
    driven : tuple of str
        The joints that have a motor. Empty: all independent joints.
    """

    cuts: tuple[Cut, ...]
    independent: tuple[str, ...]
    start: Mapping[str, float]
    driven: tuple[str, ...] = ()


def read_loops(source: str | Path | Mapping[str, Any], known: tuple[Cut, ...] = ()) -> Loops:
    """Read cuts and independent joints from YAML.

    ```yaml
    independent: [joint1, joint2]
    start: {joint1: 0.3, joint2: 1.6, joint3: -1.3, joint4: 1.3}   # chooses the assembly mode
    cuts:
      - links: [link3, link4]
        points: [[0.4, 0, 0], [0.3, 0, 0]]     # in the links' frames, m; default: their origins
        axes: [[0, 0, 1], [0, 0, 1]]           # a common axis through the points
      - {links: [link5, link6], frames: true}  # the links' frames coincide
    driven: [joint1]        # the other independent joints are passive; default: all are driven
    mjcf: arm.xml                              # and every <connect> of this MuJoCo model
    ```

    With ``driven`` and without ``independent``, passive joints are chosen to complete the degrees
    of freedom that the loops leave. A path is relative to the YAML file; bodies of the MuJoCo
    model are links of the same name.

    Parameters
    ----------
    source : str, Path or mapping
        A YAML file, or its content.
    known : tuple of Cut
        Cuts that the description of the robot has, `RobotDescription.cuts`; they are used if the
        source has none.

    Raises
    ------
    DescriptionError
        The source cannot be read, has unknown keys, or defines no cut or independent joint.
    """
    content = Section.read(source, 'loops', KEYS, valid=VALID)
    cuts = tuple(_cut(entry) for entry in content.sections('cuts', CUT_KEYS))
    if 'mjcf' in content:
        folder = Path() if isinstance(source, Mapping) else Path(source).expanduser().parent
        cuts += connects_of(folder / content.text('mjcf'))
    cuts = cuts or known
    if not cuts:
        raise DescriptionError('defines no closed loop: there is no cut', element=content.where,
                               valid=VALID)
    start = content.section('start')
    independent, driven = content.names('independent'), content.names('driven')
    if not independent and not driven:
        raise DescriptionError("defines no closed loop: neither 'independent' nor 'driven' names "
                               'a joint', element=content.where, valid=VALID)
    for name in driven if independent else ():
        if name not in independent:
            raise UnknownNameError(f'driven joint in {content.where}', name, independent)
    return Loops(cuts, independent, {name: start.number(name) for name in start}, driven)


def connects_of(path: Path) -> tuple[Cut, ...]:
    """Return the ``connect`` constraints of a MuJoCo model, MJCF.

    Raises
    ------
    DescriptionError
        The file cannot be read or has constraints of another kind, or MuJoCo is not installed.
    """
    path = check_regular(path, MAX_BYTES)
    try:
        import mujoco

        model = mujoco.MjModel.from_xml_path(str(path))
    except ImportError:
        raise DescriptionError('is read by MuJoCo, which is not installed', element=str(path),
                               valid='pip install mujoco, or cuts in the YAML') from None
    except (OSError, ValueError) as error:
        raise DescriptionError(f'cannot be read: {str(error)[:200]}', element=str(path),
                               valid='a MuJoCo model') from None
    for k in range(model.neq):
        kind = mujoco.mjtEq(model.eq_type[k])
        if kind not in (mujoco.mjtEq.mjEQ_JOINT, mujoco.mjtEq.mjEQ_CONNECT):
            raise DescriptionError(f'has a constraint {kind.name}', element=str(path),
                                   valid='constraints of the kind connect')
    return cuts_of(model)


def _cut(entry: Section) -> Cut:
    links = entry.names('links')
    if len(links) != 2:
        raise entry.fail('links', f'names {len(links)} links', 'two links')
    if links[0] == links[1]:
        raise entry.fail('links', f'names {links[0]!r} twice', 'two links that the cut joins')
    points = entry.array('points', (2, 3)) if 'points' in entry else np.zeros((2, 3))
    if entry.flag('frames'):
        if 'points' in entry or 'axes' in entry:
            raise entry.fail('frames', 'is given together with points or axes', 'frames alone')
        others = [np.tile(APART * axis, (2, 1)) for axis in np.eye(3)[:2]]
        return Cut((links[0], links[1]), np.array([points, *others]))
    if 'axes' not in entry:
        return Cut((links[0], links[1]), points[None])
    axes = entry.array('axes', (2, 3))
    length = np.linalg.norm(axes, axis=1, keepdims=True)
    if not length.all():
        raise entry.fail('axes', 'holds a vector of length 0', 'two directions')
    return Cut((links[0], links[1]), np.array([points, points + APART * axes / length]))
