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

# three pairs of points of two frames; the frames coincide if each pair does
FRAMES = np.array([np.tile(APART * axis, (2, 1)) for axis in (np.zeros(3), *np.eye(3)[:2])])
KEYS = ('independent', 'driven', 'cuts', 'mjcf', 'start', 'closed_loop', 'type', 'name_mot',
        'joint_name', 'joint_type')
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
        Empty: a closed pose near zero is looked for.
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
    mjcf: arm.xml                              # adds every <connect> and <weld> of this model
    ```

    With ``driven`` and without ``independent``, passive joints are chosen to complete the degrees
    of freedom that the loops leave. A path is relative to the YAML file; bodies of the MuJoCo
    model are links of the same name. The keys of example-parallel-robots for Pinocchio are read as
    well: ``closed_loop``, pairs of links or joints whose frames (``type: 6d``) or origins (``3d``)
    coincide, and ``name_mot``, the driven joints.

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
    cuts += _pinocchio_cuts(content)
    cuts = cuts or known
    if not cuts:
        raise DescriptionError('defines no closed loop: there is no cut', element=content.where,
                               valid=VALID)
    start = content.section('start')
    independent = content.names('independent')
    driven = content.names('driven') or content.names('name_mot')
    if not independent and not driven:
        raise DescriptionError("defines no closed loop: neither 'independent' nor 'driven' names "
                               'a joint', element=content.where, valid=VALID)
    for name in driven if independent else ():
        if name not in independent:
            raise UnknownNameError(f'driven joint in {content.where}', name, independent)
    return Loops(cuts, independent, {name: start.number(name) for name in start}, driven)


def connects_of(path: Path) -> tuple[Cut, ...]:
    """Return the ``connect`` and ``weld`` constraints of a MuJoCo model, MJCF.

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
        if kind not in (mujoco.mjtEq.mjEQ_JOINT, mujoco.mjtEq.mjEQ_CONNECT,
                        mujoco.mjtEq.mjEQ_WELD):
            raise DescriptionError(f'has a constraint {kind.name}', element=str(path),
                                   valid='constraints of the kind connect or weld')
    return cuts_of(model)


def _pinocchio_cuts(content: Section) -> tuple[Cut, ...]:
    """Return the cuts of a file of example-parallel-robots."""
    pairs = content['closed_loop'] if 'closed_loop' in content else []
    kinds = content.names('type') if 'type' in content else ()
    if not isinstance(pairs, list) or len(kinds) != len(pairs):
        raise content.fail('closed_loop', 'has another number of entries than type',
                           'a pair of names for each type')
    if 'joint_type' in content:
        raise content.fail('joint_type', 'changes joints', "joints that are 'FIXED' held by "
                           "load_model(locked_joints=...), and others written in the URDF, such "
                           'as three revolute joints for a ball joint')
    cuts = []
    for pair, kind in zip(pairs, kinds, strict=True):
        if not (isinstance(pair, list) and len(pair) == 2 and all(
                isinstance(name, str) for name in pair)):
            raise content.fail('closed_loop', 'has an entry that is no pair of names',
                               'pairs such as [loop_A, loop_B]')
        if kind.lower() not in ('3d', '6d'):
            raise content.fail('type', f'holds {kind!r}', '3d or 6d')
        cuts.append(Cut((pair[0], pair[1]), FRAMES[:1] if kind.lower() == '3d' else FRAMES))
    return tuple(cuts)


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
        return Cut((links[0], links[1]), FRAMES)
    if 'axes' not in entry:
        return Cut((links[0], links[1]), points[None])
    axes = entry.array('axes', (2, 3))
    length = np.linalg.norm(axes, axis=1, keepdims=True)
    if not length.all():
        raise entry.fail('axes', 'holds a vector of length 0', 'two directions')
    return Cut((links[0], links[1]), np.array([points, points + APART * axes / length]))
