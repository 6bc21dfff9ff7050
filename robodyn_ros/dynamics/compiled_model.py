"""`CompiledModel`: a model and its kernels, the base class of `Dynamics`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from robodyn_ros.dynamics.catalogue import Catalogue
from robodyn_ros.dynamics.large_regressor import LargeRegressor
from robodyn_ros.dynamics.large_robots import LARGE, LargeRobot
from robodyn_ros.dynamics.parametric import ParametricCatalogue
from robodyn_ros.errors import UnknownNameError, ValueRangeError, check_type
from robodyn_ros.kernels import Kernel, KernelSpec
from robodyn_ros.lazy import cached_property
from robodyn_ros.model import A_MODEL, Model
from robodyn_ros.spatial import Array

# kernels that methods need, if they are not of the method's own name
_NEEDED: dict[str, tuple[str, ...]] = {
    'base_wrench': ('wrenches',), 'joint_wrenches': ('wrenches',),
    'state_space': ('forward_dynamics', 'mass_matrix'),
    **{name: () for name in ('position_rates', 'positions', 'velocities', 'motion', 'singularity',
                             'constraint_forces')}}
OF_LINKS = {'pose': 'pose', 'jacobian': 'jacobian', 'jacobian_dot_qd': 'drift'}
REGRESSOR = 'regressor'  # has a kernel for each choice of columns; that of all is compiled
PULLBACK = 'inverse_dynamics_pullback'


class CompiledModel:
    """A model and its kernels, each compiled when it is first called.

    Parameters
    ----------
    model : Model
        The robot.
    friction_width : float, optional
        Width of the smooth sign of dry friction, rad/s or m/s; default: those of the model.
    threads : int
        Maximum number of threads for a batch.
    shared_code : bool
        Take the parameters as inputs of the compiled code, see `Dynamics`.
    """

    def __init__(self, model: Model, *, friction_width: float | None = None, threads: int = 1,
                 shared_code: bool = False):
        check_type('model', model, Model, A_MODEL)
        if friction_width is not None and not (np.isfinite(friction_width)
                                               and friction_width >= 0):
            raise ValueRangeError('friction_width', friction_width, 'a finite number >= 0, or '
                                  'None for those of the model')
        check_type('threads', threads, (int, np.integer), 'an integer of at least 1')
        if threads < 1:
            raise ValueRangeError('threads', threads, 'at least 1')
        self.model, self.joints = model, model.joints
        self.friction_width = friction_width
        self.threads = threads
        self.shared_code = shared_code and not model.floating and model.n <= LARGE
        kind = ParametricCatalogue if self.shared_code else Catalogue
        self.catalogue = kind(model, friction_width)
        self._kernels: dict[Any, Kernel] = {}
        self._large_regressors: dict[Any, LargeRegressor] = {}

    def __repr__(self) -> str:
        """Name and joints."""
        return f'<{type(self).__name__} of {self.model!r}>'

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles hold the model; kernels belong to the process."""
        return _make, (type(self), self.model, self.friction_width, self.threads,
                       self.shared_code)

    def kernel(self, name: str) -> Kernel:
        """Return the kernel of a term, for callers that need its address or operation count."""
        return self._kernel_of(name, lambda: self.catalogue.spec(name))

    def regressor_code(self, columns: Sequence[int], moving: bool = False) -> Kernel:
        """Return the kernel of columns of the regressor, straight-line code."""
        chosen = tuple(columns)
        return self._kernel_of(('regressor', chosen, moving),
                               lambda: self.catalogue.regressor_spec(chosen, moving))

    def warm_up(self, *names: str) -> None:
        """Compile the kernels of these methods now instead of at their first call.

        These are the kernels of a single state, without wrenches on links and with the base at
        rest. The first batch compiles its own; ``moving_inverse_dynamics`` and others with this
        prefix name those of a moving base.

        Raises
        ------
        UnknownNameError
            There is no such method.
        ValueRangeError
            The method has a kernel for each link, see `warm_up_links`.
        """
        for name in names:
            if name in OF_LINKS:
                raise ValueRangeError('warm_up', repr(name), f"warm_up_links('{OF_LINKS[name]}', "
                                      'LINK), since each link has a kernel of its own')
            if name in _NEEDED:
                self.warm_up(*_NEEDED[name])
            elif self._large is not None and name in self._large.names:
                self._large.warm_up(name)
            else:
                self._warm_up_kernel(name)

    def _warm_up_kernel(self, name: str) -> None:
        try:
            kernel = self.kernel(name)
        except UnknownNameError as error:
            raise UnknownNameError('method', name, (*error.valid, *_NEEDED, REGRESSOR,
                                                    PULLBACK)) from None
        kernel.warm_up('single')

    def _function(self, name: str) -> Callable[..., Array]:
        """Return a kernel, or what replaces it for a robot with many joints."""
        if self._large is not None and name in self._large.names:
            return self._large.function(name)
        return self.kernel(name).single

    @cached_property
    def _large(self) -> LargeRobot | None:
        return LargeRobot(self) if self.model.n > LARGE else None

    def _kernel_of(self, key: Any, make: Callable[[], KernelSpec]) -> Kernel:
        if key not in self._kernels:
            self._kernels[key] = Kernel(make(), self.threads)
        return self._kernels[key]


def _make(kind: type[CompiledModel], model: Model, friction_width: float | None,
          threads: int, shared_code: bool) -> CompiledModel:
    return kind(model, friction_width=friction_width, threads=threads, shared_code=shared_code)
