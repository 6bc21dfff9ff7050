"""A torque beyond the rigid model: a sum of Gaussian functions of positions and velocities.

`robodyn_ros.identification.residual_model` fits it; evaluating it needs NumPy alone.
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from robodyn_ros.errors import DescriptionError, ShapeError, UnknownNameError
from robodyn_ros.files import check_regular
from robodyn_ros.lazy import cached_property
from robodyn_ros.numerics import real_array
from robodyn_ros.spatial import Array

LARGEST_FILE = 1 << 26  # bytes of a file and of its unpacked arrays
STATES = 1024  # states that are evaluated at a time
KEYS = ('weights', 'centres', 'lengths', 'bound')


@dataclass(frozen=True, eq=False)
class JointResidual:
    """The residual torque of one joint, a Gaussian process's mean (Rasmussen and Williams 8.3).

    It is ``sum_k weights[k] exp(-|(x - centres[k]) / lengths|^2 / 2)`` with the positions and
    velocities x of all joints, limited to the bound. It goes to zero away from the centres.

    Attributes
    ----------
    weights : ndarray, shape (M,)
        Torques of the Gaussian functions, N m or N.
    centres : ndarray, shape (M, 2 n)
        Their centres: positions of all joints, then velocities; rad or m, and per second.
    lengths : ndarray, shape (2 n,)
        Their widths in each direction; infinite where the torque does not depend on it.
    bound : float
        Largest magnitude of the torque, N m or N.
    """

    weights: Array
    centres: Array
    lengths: Array
    bound: float

    @cached_property
    def _scaled(self) -> tuple[Array, Array, Array]:
        """Inverse lengths, scaled centres, and half of the squared norm of each scaled centre."""
        inverse = 1 / self.lengths  # zero where the torque does not depend on a direction
        centres = self.centres * inverse
        return inverse, centres.T.copy(), 0.5 * (centres**2).sum(axis=1)

    def features(self, states: Array) -> Array:
        """Return the value of each Gaussian function, shape (N, M).

        Parameters
        ----------
        states : ndarray, shape (N, 2 n)
            Positions and velocities of all joints.
        """
        inverse, centres, squares = self._scaled
        x = states * inverse
        exponents = x @ centres - squares - 0.5 * (x * x).sum(axis=1)[:, None]
        return np.asarray(np.exp(np.minimum(exponents, 0.0)))

    def torque(self, states: Array) -> Array:
        """Return the torque, shape (N,), see `features`."""
        torque = self.features(states) @ self.weights
        return np.asarray(np.minimum(np.maximum(torque, -self.bound), self.bound))


@dataclass(frozen=True, eq=False)
class ResidualTorque:
    """Residual torques of the joints, to be added to the torques of the rigid model.

    Attributes
    ----------
    joint_names : tuple of str
        The n joints.
    joints : dict of str to JointResidual
        Those that have a residual torque.
    """

    joint_names: tuple[str, ...]
    joints: dict[str, JointResidual]

    @property
    def bound(self) -> Array:
        """Largest magnitude of each joint's residual torque, shape (n,); N m or N."""
        return np.array([self.joints[name].bound if name in self.joints else 0.0
                         for name in self.joint_names])

    def torque(self, q: Array, qd: Array) -> Array:
        """Return the residual torques.

        Parameters
        ----------
        q, qd : array-like, shape (n,) or (N, n)
            Positions (rad or m) and velocities (per second).

        Returns
        -------
        ndarray, shape (n,) or (N, n)
            Torques within `bound`, N m or N. They are zero where a state is not finite.

        Raises
        ------
        ShapeError
            If the arrays are of different or wrong shapes.
        """
        arrays = [np.asarray(x, np.float64) for x in (q, qd)]
        n = len(self.joint_names)
        for name, array in zip(('q', 'qd'), arrays, strict=True):
            if array.shape != arrays[0].shape or array.shape[-1:] != (n,) or array.ndim > 2:
                raise ShapeError(name, f'shape {array.shape}', f'({n},) or (N, {n})')
        states = np.concatenate(arrays, axis=-1).reshape(-1, 2 * n)
        finite = np.isfinite(states).all(axis=1)
        states[~finite] = 0.0
        found = np.zeros((len(states), n))
        for place, name in enumerate(self.joint_names):
            if name in self.joints:
                for start in range(0, len(states), STATES):
                    part = slice(start, start + STATES)
                    found[part, place] = self.joints[name].torque(states[part])
        found[~finite] = 0.0
        return found[0] if arrays[0].ndim == 1 else found

    def for_joints(self, names: Sequence[str]) -> ResidualTorque:
        """Return the residual torques for the same joints in another order.

        Raises
        ------
        UnknownNameError
            If it was identified for other joints.
        """
        for name in [*names, *self.joint_names]:
            if name not in self.joint_names or name not in names:
                raise UnknownNameError('joint of the residual model', name,
                                       self.joint_names if name in names else tuple(names))
        n = len(names)
        order = [self.joint_names.index(name) for name in names]
        both = [*order, *(n + k for k in order)]
        return ResidualTorque(tuple(names), {
            name: JointResidual(one.weights, one.centres[:, both], one.lengths[both], one.bound)
            for name, one in self.joints.items()})

    def save(self, path: str | Path) -> None:
        """Write an NPZ file of plain numbers and names, which `read` reads."""
        arrays: dict[str, Any] = {f'{key}_{k}': np.asarray(getattr(one, key))
                  for k, one in enumerate(self.joints.values()) for key in KEYS}
        np.savez_compressed(path, joint_names=np.array(self.joint_names, np.str_),
                            joints=np.array(list(self.joints), np.str_), **arrays)

    @classmethod
    def read(cls, path: str | Path) -> ResidualTorque:
        """Read a file that `save` wrote.

        Raises
        ------
        DescriptionError
            If the file cannot be read, is too large, or does not hold a residual model.
        """
        path = check_regular(path, LARGEST_FILE)
        valid = 'residual.npz as robodyn identify --residual-model writes it'
        try:
            with zipfile.ZipFile(path) as archive:
                if sum(member.file_size for member in archive.infolist()) > LARGEST_FILE:
                    raise ValueError(f'more than {LARGEST_FILE >> 20} MiB of numbers')
            with np.load(path, allow_pickle=False) as content:
                names = tuple(str(name) for name in content['joint_names'])
                joints = {str(name): _checked(
                    [content[f'{key}_{k}'] for key in KEYS], len(names))
                    for k, name in enumerate(content['joints'])}
        except Exception as error:  # zipfile, NumPy and zlib raise different errors
            raise DescriptionError(f'cannot be read: {type(error).__name__}: {error}',
                                   element=str(path), valid=valid) from None
        if len(set(names)) != len(names) or not set(joints) <= set(names):
            raise DescriptionError('has repeated or unknown joints', element=str(path),
                                   valid=valid)
        return cls(names, joints)


def _checked(arrays: list[Array], n: int) -> JointResidual:
    if not all(np.isfinite(array).all() for array in arrays[:2]):
        raise ValueError('weights or centres that are not finite')
    weights = real_array('weights', arrays[0], (None,))
    centres = real_array('centres', arrays[1], (len(weights), 2 * n))
    lengths, bound = np.asarray(arrays[2], np.float64), float(arrays[3])
    if lengths.shape != (2 * n,) or not (lengths > 0).all() or not 0 <= bound < np.inf:
        raise ValueError('lengths or bound out of range')
    return JointResidual(weights, centres, lengths, bound)
