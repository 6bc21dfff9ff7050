"""The file in which the health of a model survives a restart."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from robodyn_ros.errors import DescriptionError, OutputError
from robodyn_ros.files import read_text, whole_file
from robodyn_ros.model import Model

LARGEST = 4_000_000  # bytes


def fingerprint(model: Model, text: str) -> str:
    """Return a hash of an identified model, which does not depend on its payload.

    Parameters
    ----------
    model : Model
        The model, with or without a payload.
    text : str
        The description from which it was built.
    """
    found = hashlib.sha256(text.encode(errors='replace'))
    found.update(repr((model.joint_names, model.effort)).encode())
    for values in (model.link_friction, model.motor_friction, model.friction_curve,
                   model.friction_width, model.spring, model.ripple, model.armature,
                   model.gravity):
        found.update(values.tobytes())
    return found.hexdigest()


def write_state(path: Path, content: Mapping[str, Any]) -> None:
    """Write a state, whole or not at all.

    Raises
    ------
    OutputError
        The file cannot be written.
    """
    text = json.dumps(content, allow_nan=False) + '\n'
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as reason:
        raise OutputError(f'its folder cannot be created: {reason.strerror}', path=path) from None
    with whole_file(path) as temporary, temporary.open('w', encoding='utf-8') as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def read_state(path: Path) -> Mapping[str, Any] | None:
    """Return the content of a file, unchecked; None if there is no file.

    Raises
    ------
    DescriptionError
        It cannot be read, or is not a JSON mapping.
    """
    if not path.exists():
        return None
    try:
        content = json.loads(read_text(path, LARGEST), parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        reason = 'nested too deeply' if isinstance(error, RecursionError) else str(error)[:200]
        raise DescriptionError.at(str(path), f'is not JSON: {reason}',
                                  valid='a file of this node') from None
    if not isinstance(content, dict):
        raise DescriptionError.at(str(path), 'is not a JSON mapping', valid='a file of this node')
    return content


def set_aside(path: Path) -> Path:
    """Rename a file that cannot be used, replacing the last such one; return its new path."""
    aside = path.with_name(f'{path.name}.bad')
    with suppress(OSError):  # then it is replaced later, or cannot be
        path.replace(aside)
    return aside


def _refuse(name: str) -> Any:
    raise ValueError(f'{name} is not a number of JSON')
