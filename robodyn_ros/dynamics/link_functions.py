"""Poses, Jacobians and fixed points of links, of single states and of batches."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.dynamics.catalogue import Points
from robodyn_ros.dynamics.compiled_model import OF_LINKS, CompiledModel
from robodyn_ros.errors import UnknownNameError
from robodyn_ros.kernels import Kernel
from robodyn_ros.numerics import real_numbers
from robodyn_ros.spatial import Array


class LinkFunctions(CompiledModel):
    """The part of `Dynamics` for the poses and velocities of links."""

    def _link_kernel(self, kind: str, link: str) -> Kernel:
        return self._kernel_of((kind, link),
                               lambda: getattr(self.catalogue, f'{kind}_spec')(link))

    def warm_up_links(self, kind: str, *links: str) -> None:
        """Compile the kernels of links now, see `warm_up`.

        Parameters
        ----------
        kind : str
            ``pose``, ``jacobian``, or ``drift`` (that of `jacobian_dot_qd`).
        *links : str
            Names of links.

        Raises
        ------
        UnknownNameError
            There is no such kind or link.
        """
        if kind not in OF_LINKS.values():
            raise UnknownNameError('kind', kind, OF_LINKS.values())
        for link in links:
            self._link_kernel(kind, link).warm_up('single')

    def pose(self, q: ArrayLike, link: str) -> Array:
        """Homogeneous transform, shape (4, 4) or (N, 4, 4), of a link frame in the root frame."""
        return self._link_kernel('pose', link).single(q)  # type: ignore[no-any-return]

    def jacobian(self, q: ArrayLike, link: str) -> Array:
        """Jacobian of a link, shape (6, n) or (N, 6, n).

        Rows: velocity of the link frame's origin (m/s), angular velocity (rad/s); root axes.
        """
        return self._link_kernel('jacobian', link).single(q)  # type: ignore[no-any-return]

    def jacobian_dot_qd(self, q: ArrayLike, qd: ArrayLike, link: str) -> Array:
        """``dJ/dt qd`` of a link, shape (6,) or (N, 6), m/s^2 and rad/s^2; root axes."""
        return self._link_kernel('drift', link).single(q, qd)  # type: ignore[no-any-return]

    def points(self, q: ArrayLike, points: Points) -> Array:
        """Positions of points fixed to links, in the root frame; (k, 3) or (N, k, 3), m."""
        kernel = self._kernel_of(('points', points), lambda: self.catalogue.points_spec(points))
        return np.asarray(kernel.general(q))

    def points_pullback(self, q: ArrayLike, cotangent: ArrayLike, points: Points) -> Array:
        """Gradient of ``sum(cotangent * points)`` with respect to q; shape (n,) or (N, n)."""
        kernel = self._kernel_of(('points pullback', points),
                                 lambda: self.catalogue.points_pullback_spec(points))
        g = real_numbers('cotangent', cotangent)
        return np.asarray(kernel.general(q, g.reshape(*g.shape[:-2], -1)))
