"""Digests that identify compiled kernels: they cover everything that the traced functions read."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from robodyn_ros.model import Model
from robodyn_ros.spatial import Array


def fingerprint(model: Model, friction_widths: Sequence[Array]) -> str:
    """Digest of everything that the traced functions read, this package included."""
    frames = sorted((name, frame.body, frame.rotation.tobytes(), frame.translation.tobytes())
                    for name, frame in model.link_frames.items())
    return digest_of(
        model.parent, model.prismatic, model.carrier, model.floating, *friction_widths, frames,
        model.gravity, model.axis, model.rotation, model.translation, model.row, model.offset,
        model.inertial_parameters, model.base_inertial_parameters, model.link_friction,
        model.motor_friction, model.armature, model.gear_ratio, model.motor_row, model.spin_axis,
        model.friction_curve, model.spring, model.ripple)


def digest_of(*values: Any) -> str:
    """Digest of some values and of the source code of this folder."""
    digest = hashlib.sha256(_source_digest())
    for value in values:
        array = isinstance(value, np.ndarray)
        digest.update(f'{value.shape}'.encode() + value.tobytes() if array
                      else repr(value).encode())
    return digest.hexdigest()


@lru_cache(maxsize=1)
def _source_digest() -> bytes:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob('*.py')):
        digest.update(path.read_bytes())
    return digest.digest()
