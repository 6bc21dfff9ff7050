"""What closes a tree to loops: cuts and independent joints, read from YAML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from robodyn_ros.description import Array
from robodyn_ros.errors import DescriptionError

APART = 0.1  # m between the points by which axes or frames are held together
KEYS = ('independent', 'cuts', 'mjcf', 'start')
CUT_KEYS = ('links', 'points', 'axes', 'frames')


@dataclass(frozen=True, eq=False)
class Cut:
    """Points of two links that coincide: one, two on a shared axis, three of a shared frame.

    Attributes
    ----------
    links : tuple of str
        The two links.
    points : ndarray, shape (k, 2, 3)
        k pairs, one point in each link's frame, m; forces are told about the first.
    """

    links: tuple[str, str]
    points: Array


@dataclass(frozen=True, eq=False)
class Loops:
    """Cuts, the joints that are independent, and where the search for the others starts.

    Attributes
    ----------
    cuts : tuple of Cut
    independent : tuple of str
        Joints that are moved; the others follow.
    start : dict of str to float
        Positions of some joints near an assembled robot, rad or m.
    """

    cuts: tuple[Cut, ...]
    independent: tuple[str, ...]
    start: Mapping[str, float]


def read_loops(source: str | Path | Mapping[str, Any]) -> Loops:
    """Read them.

    ```yaml
    independent: [joint1, joint2]
    start: {joint1: 0.3, joint2: 1.6, joint3: -1.3, joint4: 1.3}   # which way it is assembled
    cuts:
      - links: [link3, link4]
        points: [[0.4, 0, 0], [0.3, 0, 0]]     # in the links' frames, m; default: their origins
        axes: [[0, 0, 1], [0, 0, 1]]           # a shared axis through them
      - {links: [link5, link6], frames: true}  # the links' frames coincide
    mjcf: arm.xml                              # and every <connect> of this MuJoCo model
    ```

    A path is relative to the YAML file; bodies of the MuJoCo model are links of the same name.

    Raises
    ------
    DescriptionError
        It cannot be read, or says something else.
    """
    label = 'loops' if isinstance(source, Mapping) else str(source)
    try:
        content = source if isinstance(source, Mapping) else yaml.safe_load(
            Path(source).expanduser().read_text(encoding='utf-8'))
        if not isinstance(content, Mapping):
            raise TypeError('no mapping')
        _only(content, KEYS)
        cuts = tuple(_cut(entry) for entry in content.get('cuts', ()))
        if 'mjcf' in content:
            folder = Path() if isinstance(source, Mapping) else Path(source).expanduser().parent
            cuts += connects_of(folder / str(content['mjcf']))
        if not cuts:
            raise ValueError('no cut')
        start = {str(name): float(value) for name, value in content.get('start', {}).items()}
        return Loops(cuts, tuple(str(name) for name in content['independent']), start)
    except (OSError, yaml.YAMLError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise DescriptionError(f'says no loops: {type(error).__name__}: {error}', element=label,
                               valid="'independent' with joints, 'cuts' with 'links' "
                               "and 'points', or 'mjcf'") from None


def connects_of(path: Path) -> tuple[Cut, ...]:
    """Return the ``connect`` constraints of a MuJoCo model, MJCF.

    Raises
    ------
    ValueError
        It cannot be read, or holds bodies together in another way.
    """
    import mujoco

    model = mujoco.MjModel.from_xml_path(str(path))
    cuts = []
    for k in range(model.neq):
        kind = mujoco.mjtEq(model.eq_type[k])
        if kind == mujoco.mjtEq.mjEQ_JOINT:
            continue  # a joint that follows another: URDF's mimic
        if kind != mujoco.mjtEq.mjEQ_CONNECT or model.eq_objtype[k] != mujoco.mjtObj.mjOBJ_BODY:
            raise ValueError(f'{path} has a constraint {kind.name}; valid: connect of bodies')
        links = (model.body(model.eq_obj1id[k]).name, model.body(model.eq_obj2id[k]).name)
        cuts.append(Cut(links, model.eq_data[k, :6].reshape(1, 2, 3).copy()))
    return tuple(cuts)


def _cut(entry: Mapping[str, Any]) -> Cut:
    _only(entry, CUT_KEYS)
    first, second = map(str, entry['links'])
    points = _pair(entry.get('points', np.zeros((2, 3))), 'points')
    if entry.get('frames'):
        if 'points' in entry or 'axes' in entry:
            raise ValueError('frames take neither points nor axes')
        others = [np.tile(APART * axis, (2, 1)) for axis in np.eye(3)[:2]]
        return Cut((first, second), np.array([points, *others]))
    if 'axes' not in entry:
        return Cut((first, second), points[None])
    axes = _pair(entry['axes'], 'axes')
    length = np.linalg.norm(axes, axis=1, keepdims=True)
    if not length.all():
        raise ValueError('an axis has no length')
    return Cut((first, second), np.array([points, points + APART * axes / length]))


def _pair(values: Any, what: str) -> Array:
    pair = np.array(values, np.float64)
    if pair.shape != (2, 3) or not np.isfinite(pair).all():
        raise ValueError(f'{what} are two vectors')
    return pair


def _only(entry: Mapping[str, Any], keys: tuple[str, ...]) -> None:
    for key in entry:
        if key not in keys:
            raise ValueError(f'unknown key {key!r}')
