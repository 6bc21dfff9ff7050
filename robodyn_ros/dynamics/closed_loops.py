"""Arms with closed loops: a tree whose branches meet again (Kolyubin 2.3.2).

A cut says that two points coincide; some joints are independent, the others follow. With
``qd = G(q) qd_r`` of all joints, the equations of the tree are reduced to
``G' M G qdd_r + G' (M dG/dt qd_r + c + friction) + G' g = G' tau``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import ArrayLike

from robodyn_ros.description import Array
from robodyn_ros.dynamics.dynamics import Dynamics
from robodyn_ros.errors import DescriptionError, ShapeError, UnknownNameError, ValueRangeError
from robodyn_ros.model import Model

CLOSED = 1e-14  # m, between points that coincide; or as near as the last step comes, below ROUGH
ROUGH = 1e-9
STEP = 0.1  # rad or m of an independent joint, from one solution to the next
ITERATIONS = 30
SINGULAR = 1e-6  # smallest over largest singular value of the dependent joints' Jacobian


@dataclass(frozen=True, eq=False)
class Cut:
    """Two points that coincide.

    Attributes
    ----------
    links : tuple of str
        The two links.
    points : ndarray, shape (2, 3)
        One in each link's frame, m.
    """

    links: tuple[str, str]
    points: Array


def read_loops(source: str | Path | Mapping[str, Any]) -> tuple[list[Cut], list[str]]:
    """Read cuts and independent joints from YAML.

    ```yaml
    independent: [joint1, joint2]
    cuts:
      - links: [link3, link4]
        points: [[0.4, 0, 0], [0.3, 0, 0]]     # in the links' frames, m; default: their origins
    ```

    Raises
    ------
    DescriptionError
        It cannot be read, or says something else.
    """
    label = 'loops' if isinstance(source, Mapping) else str(source)
    try:
        content = source if isinstance(source, Mapping) else yaml.safe_load(
            Path(source).read_text(encoding='utf-8'))
        independent = [str(name) for name in content['independent']]
        cuts = []
        for entry in content['cuts']:
            first, second = map(str, entry['links'])
            points = np.array(entry.get('points', np.zeros((2, 3))), np.float64)
            if points.shape != (2, 3) or not np.isfinite(points).all():
                raise ValueError('points are two vectors, m')
            cuts.append(Cut((first, second), points))
        if not cuts:
            raise ValueError('no cut')
    except (OSError, yaml.YAMLError, KeyError, TypeError, ValueError) as error:
        raise DescriptionError(f'says no loops: {type(error).__name__}: {error}', element=label,
                               valid="'independent' with joints, 'cuts' with 'links' and 'points'"
                               ) from None
    return cuts, independent


class ClosedLoopDynamics:
    """Dynamics of a robot with closed loops, in its independent joints.

    Parameters
    ----------
    model : Model
        The tree.
    loops : str, Path or mapping
        Cuts and independent joints, see `read_loops`.
    start : array-like, shape (b,), optional
        Positions of all joints near which the loops are closed first: the branch of the assembly
        that is kept from then on. Default: zero.
    friction_width : float
        As of `Dynamics`.

    Raises
    ------
    UnknownNameError, ValueRangeError
        A link or joint that does not exist; loops that do not leave as many joints dependent as
        they bind; loops that cannot be closed.

    Notes
    -----
    Not for several threads at once: the last solution is where the next search begins.
    """

    def __init__(self, model: Model, loops: str | Path | Mapping[str, Any], *,
                 start: ArrayLike | None = None, friction_width: float = 0.0):
        self.model = model
        self.tree = Dynamics(model, friction_width=friction_width)
        self.cuts, independent = read_loops(loops)
        for cut in self.cuts:
            for link in cut.links:
                if link not in model.link_frames:
                    raise UnknownNameError('link of a cut', link, model.link_frames)
        for name in independent:
            if name not in model.joint_names:
                raise UnknownNameError('independent joint', name, model.joint_names)
        self.joint_names = tuple(name for name in model.joint_names if name in independent)
        self.dependent_names = tuple(name for name in model.joint_names
                                     if name not in independent)
        self._free = [model.joint_names.index(name) for name in self.joint_names]
        self._bound = [model.joint_names.index(name) for name in self.dependent_names]
        first = np.zeros(model.n) if start is None else np.asarray(start, np.float64)
        if first.shape != (model.n,):
            raise ShapeError('start', f'shape {first.shape}', f'({model.n},), all joints')
        self._last = self._close(first.copy())
        rank = int(np.linalg.matrix_rank(self._jacobian(self._last), tol=SINGULAR))
        if rank != len(self._bound):
            raise ValueRangeError('independent joints', len(self._free),
                                  f'{model.n - rank}: the cuts bind {rank} of {model.n} joints')

    @property
    def n(self) -> int:
        """Independent joints."""
        return len(self.joint_names)

    # kinematics -----------------------------------------------------------------------------

    def positions(self, q: ArrayLike) -> Array:
        """Return the positions of all joints, shape (b,), for the independent ones, shape (n,).

        Newton's method, in small steps from the last solution: the branch is kept.

        Raises
        ------
        ValueRangeError
            The loops cannot be closed there; names the cut.
        """
        goal, full = self._array('q', q), self._last.copy()
        begin = full[self._free]
        steps = max(1, int(np.ceil(np.abs(goal - begin).max() / STEP)))
        for k in range(1, steps + 1):
            full[self._free] = begin + (goal - begin) * k / steps
            full = self._close(full)
        self._last = full
        return full.copy()

    def motion_matrix(self, q: ArrayLike) -> Array:
        """Return G, shape (b, n): velocities of all joints are ``G qd``."""
        return self._matrix(self.positions(q))

    def velocities(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """Return the velocities of all joints, shape (b,)."""
        return self.motion_matrix(q) @ self._array('qd', qd)

    def accelerations(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Array:
        """Return the accelerations of all joints, shape (b,)."""
        _, g, _, drift = self._state(q, qd)
        return g @ self._array('qdd', qdd) + drift

    def singularity(self, q: ArrayLike) -> float:
        """Return how far the loops are from a singularity: 1 far, 0 there.

        Smallest over largest singular value of the dependent joints' part of the loops' Jacobian.
        """
        values = np.linalg.svd(self._jacobian(self.positions(q))[:, self._bound],
                               compute_uv=False)
        return float(values[len(self._bound) - 1] / values[0])

    # dynamics -------------------------------------------------------------------------------

    def mass_matrix(self, q: ArrayLike) -> Array:
        """Return the reduced M, shape (n, n)."""
        full = self.positions(q)
        g = self._matrix(full)
        return g.T @ self.tree.mass_matrix(full) @ g

    def gravity(self, q: ArrayLike) -> Array:
        """Return the reduced gravity torque, shape (n,), N m or N."""
        full = self.positions(q)
        return self._matrix(full).T @ self.tree.gravity(full)

    def coriolis(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """Return the reduced Coriolis and centrifugal torque, shape (n,)."""
        full, g, speed, drift = self._state(q, qd)
        return g.T @ (self.tree.mass_matrix(full) @ drift + self.tree.coriolis(full, speed))

    def inverse_dynamics(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Array:
        """Return the torques of the independent joints, shape (n,); friction of all counts."""
        full, g, speed, drift = self._state(q, qd)
        return g.T @ self.tree.inverse_dynamics(full, speed, g @ self._array('qdd', qdd) + drift)

    def forward_dynamics(self, q: ArrayLike, qd: ArrayLike, torque: ArrayLike) -> Array:
        """Return the independent accelerations, shape (n,), under torques on these joints."""
        full, g, speed, drift = self._state(q, qd)
        rest = g.T @ self.tree.inverse_dynamics(full, speed, drift)
        mass = g.T @ self.tree.mass_matrix(full) @ g
        return np.linalg.solve(mass, self._array('torque', torque) - rest)

    def constraint_forces(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Array:
        """Return the force at each cut on its second link, root axes, N; shape (cuts, 3).

        The torques are those of `inverse_dynamics`, on the independent joints alone. What the
        loops leave open (forces across a plane mechanism) is zero.
        """
        full, g, speed, drift = self._state(q, qd)
        need = self.tree.inverse_dynamics(full, speed, g @ self._array('qdd', qdd) + drift)
        torque = np.zeros(self.model.n)
        torque[self._free] = g.T @ need
        force = np.linalg.lstsq(self._jacobian(full).T, need - torque, rcond=SINGULAR)[0]
        return np.asarray(-force.reshape(-1, 3))

    def regressor(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Array:
        """Return Y, shape (n, 17 b): torques are ``Y @ model.standard_parameters``."""
        full, g, speed, drift = self._state(q, qd)
        return g.T @ self.tree.regressor(full, speed, g @ self._array('qdd', qdd) + drift)

    def energy(self, q: ArrayLike, qd: ArrayLike) -> float:
        """Return kinetic and potential energy together, J."""
        full, _, speed, _ = self._state(q, qd)
        one = self.tree.energy(full, speed)
        return float(one.kinetic + one.potential)

    # the loops ------------------------------------------------------------------------------

    def _state(self, q: ArrayLike, qd: ArrayLike) -> tuple[Array, Array, Array, Array]:
        """Positions of all joints, G, velocities, and accelerations while qdd is zero."""
        full = self.positions(q)
        g = self._matrix(full)
        speed = g @ self._array('qd', qd)
        drift = np.zeros(self.model.n)
        jacobian = self._jacobian(full)
        drift[self._bound] = -np.linalg.lstsq(jacobian[:, self._bound],
                                              self._drift(full, speed), rcond=SINGULAR)[0]
        return full, g, speed, drift

    def _matrix(self, full: Array) -> Array:
        jacobian = self._jacobian(full)
        g = np.zeros((self.model.n, self.n))
        g[self._free, range(self.n)] = 1.0
        g[self._bound] = -np.linalg.lstsq(jacobian[:, self._bound], jacobian[:, self._free],
                                          rcond=SINGULAR)[0]
        return g

    def _close(self, full: Array) -> Array:
        """Newton's method on the dependent joints."""
        before = np.inf
        for _ in range(ITERATIONS):
            gap = self._gap(full)
            size = float(np.abs(gap).max())
            if size < CLOSED or (size < ROUGH and size >= before / 2):
                return full
            before = size
            step = np.linalg.lstsq(self._jacobian(full)[:, self._bound], gap, rcond=SINGULAR)[0]
            largest = np.abs(step).max(initial=0.0)
            full = full.copy()
            full[self._bound] -= step * min(1.0, 0.5 / max(largest, 1e-12))
        gaps = np.linalg.norm(self._gap(full).reshape(-1, 3), axis=1)
        worst = self.cuts[int(np.argmax(gaps))]
        where = ', '.join(f'{name} {full[k]:.4g}' for name, k in zip(
            self.joint_names, self._free, strict=True))
        raise ValueRangeError(f'pose {where}', f'leaves {gaps.max():.3g} m between '
                              f'{worst.links[0]} and {worst.links[1]}',
                              'one in which the loops close')

    def _gap(self, full: Array) -> Array:
        parts = []
        for cut in self.cuts:
            first, second = (self._place(full, link, point) for link, point in zip(
                cut.links, cut.points, strict=True))
            parts.append(first - second)
        return np.concatenate(parts)

    def _place(self, full: Array, link: str, point: Array) -> Array:
        pose = self.tree.pose(full, link)
        return pose[:3, :3] @ point + pose[:3, 3]

    def _jacobian(self, full: Array) -> Array:
        """Derivative of the gaps by all joints, shape (3 cuts, b)."""
        parts = []
        for cut in self.cuts:
            one = []
            for link, point in zip(cut.links, cut.points, strict=True):
                arm = self.tree.pose(full, link)[:3, :3] @ point
                jacobian = self.tree.jacobian(full, link)
                one.append(jacobian[:3] + np.cross(jacobian[3:].T, arm).T)
            parts.append(one[0] - one[1])
        return np.concatenate(parts)

    def _drift(self, full: Array, speed: Array) -> Array:
        """Second derivative of the gaps while no joint accelerates, shape (3 cuts,)."""
        parts = []
        for cut in self.cuts:
            one = []
            for link, point in zip(cut.links, cut.points, strict=True):
                arm = self.tree.pose(full, link)[:3, :3] @ point
                turn = self.tree.jacobian(full, link)[3:] @ speed
                drift = self.tree.jacobian_dot_qd(full, speed, link)
                one.append(drift[:3] + np.cross(drift[3:], arm)
                           + np.cross(turn, np.cross(turn, arm)))
            parts.append(one[0] - one[1])
        return np.concatenate(parts)

    def _array(self, name: str, values: ArrayLike) -> Array:
        array = np.asarray(values, np.float64)
        if array.shape != (self.n,):
            raise ShapeError(name, f'shape {array.shape}',
                             f'({self.n},): {", ".join(self.joint_names)}')
        return array
