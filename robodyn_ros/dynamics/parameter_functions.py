"""The torque as a linear function of the parameters: regressor, gradients, normal equations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.dynamics.base_motion import BaseMotion
from robodyn_ros.dynamics.compiled_model import PULLBACK, REGRESSOR, CompiledModel
from robodyn_ros.dynamics.large_regressor import LargeRegressor, is_large
from robodyn_ros.dynamics.normal_equations import NormalEquations, accumulate
from robodyn_ros.errors import ShapeError
from robodyn_ros.kernels import Kernel
from robodyn_ros.kernels.kernel import check_array
from robodyn_ros.lazy import cached_property
from robodyn_ros.numerics import real_numbers
from robodyn_ros.spatial import Array


class ParameterFunctions(CompiledModel):
    """The part of `Dynamics` for functions of the standard parameters."""

    _last_regressor: tuple[Any, Callable[..., Array]] = (object(), np.empty)  # no columns yet

    def regressor(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike,
                  columns: Sequence[int] | None = None, *,
                  base_motion: BaseMotion | None = None,
                  near: ArrayLike | None = None) -> Array:
        """Y of ``inverse_dynamics = Y @ model.standard_parameters`` (Kolyubin 5.4-5.9).

        Parameters
        ----------
        q, qd, qdd : array-like, shape (n,) or (N, n)
            Motion.
        columns : sequence of int, optional
            Indices into ``model.parameter_names``; default: all 17 of each joint. A tuple that is
            passed again and again is fastest.
        base_motion : BaseMotion, optional
            Motion of the base; default: at rest.
        near : array-like, optional
            Has no effect, see `RobotDynamics`.

        Returns
        -------
        ndarray, shape (n, p) or (N, n, p)
        """
        if base_motion is not None:
            return self._regressor(columns, moving=True).single(  # type: ignore[no-any-return]
                q, qd, qdd, base_motion.values(self.model))
        last, function = self._last_regressor  # to look up the columns takes half a kernel's time
        if columns is not last:
            given = None if columns is None else tuple(columns)
            found = self._regressors.get(given)
            if found is None:
                found = self._regressors[given] = self.regressor_kernel(given).single
            function = found
            if given is columns:  # a tuple or None, which cannot change
                self._last_regressor = given, function
        return function(q, qd, qdd)

    @cached_property
    def _regressors(self) -> dict[tuple[int, ...] | None, Callable[..., Array]]:
        return {}

    def regressor_kernel(self, columns: Sequence[int] | None = None) -> Kernel | LargeRegressor:
        """Return the kernel of `regressor`, or what replaces it for a robot with many joints."""
        return self._regressor(columns, moving=False)

    def _warm_up_kernel(self, name: str) -> None:
        if name == REGRESSOR:
            self.regressor_kernel().warm_up('single')
        elif name == PULLBACK:
            self._inverse_dynamics_pullback.warm_up('single')
        else:
            super()._warm_up_kernel(name)

    @cached_property
    def _large_regressor(self) -> bool:
        return is_large(self.catalogue.tree)

    def _regressor(self, columns: Sequence[int] | None, moving: bool) -> Kernel | LargeRegressor:
        chosen = self._chosen(columns)
        if not self._large_regressor:
            return self.regressor_code(chosen, moving)
        key = ('large regressor', chosen, moving)
        if key not in self._large_regressors:
            self._large_regressors[key] = LargeRegressor(self, chosen, moving)
        return self._large_regressors[key]

    def regressor_pullback(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike,
                           cotangent: ArrayLike, columns: Sequence[int]) -> Array:
        """Gradient of ``sum(cotangent * regressor)`` with respect to q, qd and qdd.

        Parameters
        ----------
        q, qd, qdd : array-like, shape (n,) or (N, n)
            Motion.
        cotangent : array-like, shape (n, p) or (N, n, p)
            Factors of the chosen columns of the regressor, held constant.
        columns : sequence of int
            Indices into ``model.parameter_names``.

        Returns
        -------
        ndarray, shape (3, n) or (N, 3, n)
            The rows are the gradients with respect to q, qd and qdd. The derivative of the sign in
            Coulomb friction is taken as 0.
        """
        chosen, g = self._chosen(columns), real_numbers('cotangent', cotangent)
        if self._large_regressor:
            return self._pull_back_through_factors(chosen, q, qd, qdd, g)
        kernel = self._kernel_of(('regressor pullback', chosen),
                                 lambda: self.catalogue.regressor_pullback_spec(chosen))
        return np.asarray(kernel.general(q, qd, qdd, g.reshape(*g.shape[:-2], -1)))

    def _pull_back_through_factors(self, chosen: tuple[int, ...], q: ArrayLike, qd: ArrayLike,
                                   qdd: ArrayLike, g: Array) -> Array:
        self.model.require_fixed_base('the gradients of the dynamics')
        n = self.model.n
        if g.ndim not in (2, 3) or g.shape[-2:] != (n, len(chosen)):
            raise ShapeError('cotangent', f'shape {g.shape}',
                             f'({n}, {len(chosen)}) or (N, {n}, {len(chosen)})')
        large = self._regressor(chosen, moving=False)
        assert isinstance(large, LargeRegressor)
        return large.pullback(q, qd, qdd, g)

    def inverse_dynamics_pullback(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike,
                                  cotangent: ArrayLike) -> Array:
        """Gradient of ``cotangent . inverse_dynamics`` with respect to q, qd and qdd.

        Shape (3, n) or (N, 3, n); the cotangent, shape (n,) or (N, n), is held constant.
        """
        return np.asarray(self._inverse_dynamics_pullback.general(q, qd, qdd, cotangent))

    @property
    def _inverse_dynamics_pullback(self) -> Kernel:
        return self._kernel_of('inverse dynamics pullback',
                               self.catalogue.inverse_dynamics_pullback_spec)

    def normal_equations(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, tau: ArrayLike, *,
                         columns: Sequence[int] | None = None,
                         weights: ArrayLike | None = None) -> NormalEquations:
        """W'W and W'tau of ``tau = W chi`` over a batch, without storing W (Kolyubin 5.22).

        Parameters
        ----------
        q, qd, qdd, tau : array-like, shape (N, n)
            Motion and torque; with a floating base, q has n + 1 columns.
        columns : sequence of int, optional
            Indices into ``model.parameter_names``; default: all.
        weights : array-like, shape (n,), optional
            Factor of each joint's rows; default: 1.
        """
        n = self.model.n
        q, qd, qdd, tau = (np.atleast_2d(check_array(values, size, name))
                           for name, values, size in (('q', q, self.model.nq), ('qd', qd, n),
                                                      ('qdd', qdd, n), ('tau', tau, n)))
        factor = np.ones(n) if weights is None else real_numbers('weights', weights)
        return accumulate(self.regressor_kernel(columns), q, qd, qdd, tau, factor,
                          self.model.nq)

    def _chosen(self, columns: Sequence[int] | None) -> tuple[int, ...]:
        count = len(self.model.parameter_names)
        chosen = tuple(range(count)) if columns is None else tuple(columns)
        if not chosen or not all(isinstance(c, (int, np.integer)) and 0 <= c < count
                                 for c in chosen):
            raise ShapeError('columns', f'{list(chosen)[:10]}',
                             f'whole numbers from 0 to {count - 1}')
        return tuple(map(int, chosen))
