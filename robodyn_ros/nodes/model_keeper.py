"""`ModelKeeper`: replaces the running model atomically, or keeps it and reports the reason."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from robodyn_ros.check import CheckReport
from robodyn_ros.dynamics import RobotDynamics
from robodyn_ros.errors import RobodynError
from robodyn_ros.model import Joints, Model
from robodyn_ros.nodes.helper_process import HelperError, HelperProcess
from robodyn_ros.nodes.model_building import (
    BuildRequest,
    Built,
    Payload,
    build,
    make_dynamics,
    rotor_model_of,
)

DESCRIPTION = 'robot_description'
MOST_BEFORE = 20  # number of previous models that are kept for rollbacks
LONGEST_BUILD = 60.0  # s, time limit of the process that builds a model


@dataclass(frozen=True, eq=False)
class Running:
    """One version of the model; never changed, only replaced.

    Attributes
    ----------
    version : int
        Number that is incremented with every replacement.
    model : Model
        The model with its payload.
    dynamics : RobotDynamics
        Its dynamics, compiled; in a controller, those of the torques to command.
    request : BuildRequest
        The data from which it was built.
    payload : Payload or None
        The attached payload.
    origin : str
        Name of its source.
    check : CheckReport or None
        The result of its check.
    """

    version: int
    model: Model
    dynamics: RobotDynamics
    request: BuildRequest
    payload: Payload | None
    origin: str = DESCRIPTION
    check: CheckReport | None = None

    @property
    def text(self) -> str:
        """The URDF text from which it was built."""
        return self.request.text

    @property
    def joints(self) -> Joints:
        """The joints that are measured and commanded; with closed loops, the independent ones."""
        return self.dynamics.joints

    @property
    def rotor_model(self) -> str:
        """How rotor inertia is modelled: ``none``, ``armature`` or ``full``."""
        return rotor_model_of(self.model)


@dataclass(frozen=True, eq=False)
class Candidate:
    """A model that was built and is not running yet.

    Attributes
    ----------
    model : Model
        The model with its payload.
    dynamics : RobotDynamics
        Its dynamics, compiled.
    built : Built
        The answer of the process that built it.
    request : BuildRequest
        The data from which it was built.
    origin : str
        Name of its source.
    base : Running or None
        The running model at the time of the request.
    valid_until : int
        Time of the system clock after which it must not be put to use, ns; 0: no limit.
    """

    model: Model
    dynamics: RobotDynamics
    built: Built
    request: BuildRequest
    origin: str
    base: Running | None = field(default=None)
    valid_until: int = 0


class ModelKeeper:
    """Builds models in a separate process, and replaces the running model atomically.

    Parameters
    ----------
    kernels : sequence of str
        Methods of `Dynamics` to compile before a model is put to use.
    report : callable
        ``report(level, text)`` with level 'info', 'warning' or 'error'.
    on_swap : callable
        Called with the new `Running`.
    helper : HelperProcess, optional
        Runs the task ``build``; without it models are built in this process.
    commands : bool
        Whether the dynamics are those of commanded torques, see `make_dynamics`.
    check : callable, optional
        Raises a `RobodynError` for a model that the node cannot use.
    """

    def __init__(self, kernels: tuple[str, ...], report: Callable[[str, str], None],
                 on_swap: Callable[[Running], None], helper: HelperProcess | None = None, *,
                 commands: bool = False, check: Callable[[Model], None] | None = None):
        self._commands, self._check = commands, check
        self._kernels, self._report, self._on_swap = kernels, report, on_swap
        self._helper = helper
        self._lock = threading.RLock()
        self._before: list[Running] = []
        self.running: Running | None = None
        self.refused = 0

    def describe(self, text: str, options: dict[str, Any]) -> str | None:
        """Use a robot description; return None, or the reason why the old model is kept."""
        return self._swap(lambda: self.prepare(options, text=text, new_motors=True))

    def set_model(self, text: str, motors: str, origin: str, options: dict[str, Any],
                  valid_until: int = 0) -> str | None:
        """Use an identified model, URDF and motor YAML texts; return None, or why not.

        After ``valid_until``, a time of the system clock in ns, the model is refused.
        """
        return self._swap(lambda: replace(self._prepare(BuildRequest(
            text, None, motors, self._payload(), False, options, self._kernels,
            self._commands), origin, origin),
            valid_until=valid_until))

    def set_payload(self, payload: Payload, options: dict[str, Any]) -> str | None:
        """Replace the payload; return None, or why not."""
        running = self.running
        if running is None:
            return 'there is no robot_description yet'
        return self._swap(lambda: self._prepare(
            replace(running.request, payload=payload, payload_is_new=True, options=options),
            running.origin, 'payload'))

    def rollback(self) -> str | None:
        """Return to the previous model, as a new version; return None, or why not."""
        with self._lock:
            if not self._before or self.running is None:
                return 'there is no model before this one'
            former = self._before.pop()
            self.running = replace(former, version=self.running.version + 1)
            self._report('info', f'back to model {former.version}, from {former.origin}')
            self._on_swap(self.running)
            return None

    def prepare(self, options: dict[str, Any], *, text: str | None = None,
                new_motors: bool = False) -> Candidate:
        """Build a model with other options, or of another description, and keep the running one.

        Parameters
        ----------
        options : dict
            Options of `BuildRequest`, and ``motors``.
        text : str, optional
            URDF text; the default is that of the running model.
        new_motors : bool
            Whether ``motors`` of the options replaces the motor data of the running model.

        Raises
        ------
        RobodynError
            The model cannot be built; this is also counted and reported.
        """
        running = self.running
        if text is None and running is None:
            raise RobodynError('there is no model yet')
        if running is None or text is not None:
            request = BuildRequest(text or '', options['motors'], None, self._payload(), False,
                                   options, self._kernels, self._commands)
            return self._prepare(request, DESCRIPTION, DESCRIPTION)
        request = replace(running.request, payload=running.payload, payload_is_new=False,
                          options=options)
        if new_motors:
            request = replace(request, motors=options['motors'], motors_text=None)
        return self._prepare(request, running.origin, running.origin)

    def commit(self, candidate: Candidate) -> str | None:
        """Make a prepared model the running one; return None, or why not."""
        with self._lock:
            if self.running is not candidate.base:  # it has changed meanwhile, e.g. its payload
                return self._swap(lambda: replace(self._prepare(
                    replace(candidate.request, payload=self._payload(), payload_is_new=False),
                    candidate.origin, candidate.origin), valid_until=candidate.valid_until))
            late = time.time_ns() - candidate.valid_until
            if candidate.valid_until and late > 0:
                return self._refuse(candidate.origin, f'the request expired {late * 1e-9:.1f} s '
                                    'before the model could be used')
            before = self.running
            version = before.version + 1 if before else 1
            self.running = Running(version, candidate.model, candidate.dynamics,
                                   candidate.request, candidate.built.payload, candidate.origin,
                                   candidate.built.check)
            for note in candidate.built.notes:
                self._report('warning', note)
            try:
                self._on_swap(self.running)
            except Exception as error:  # if the node cannot adopt it, the old model stays
                self.running = before
                return self._refuse(candidate.origin, f'{type(error).__name__}: {error}')
            if before is not None:
                self._before = [*self._before[1 - MOST_BEFORE:], before]
            return None

    def _refuse(self, what: str, why: str) -> str:
        self.refused += 1
        kept = 'the old model keeps running' if self.running else 'there is no model yet'
        self._report('error', f'{what} refused: {why}; {kept}')
        return why

    def _payload(self) -> Payload | None:
        return self.running.payload if self.running else None

    def _swap(self, prepare: Callable[[], Candidate]) -> str | None:
        with self._lock:
            try:
                return self.commit(prepare())
            except RobodynError as error:
                return str(error)

    def _prepare(self, request: BuildRequest, origin: str, what: str) -> Candidate:
        base = self.running
        try:
            built = self._build(request)
            if built.model is None:
                raise RobodynError(built.error)
            if self._check is not None:
                self._check(built.model)
            dynamics = make_dynamics(built.model, request.options, commands=request.commands)
            dynamics.warm_up(*request.kernels)
        except Exception as error:  # after any error, the old model keeps running
            text = str(error) if isinstance(error, (RobodynError, HelperError)) else \
                f'{type(error).__name__}: {error}'
            raise RobodynError(self._refuse(what, text)) from None
        return Candidate(built.model, dynamics, built, request, origin, base)

    def _build(self, request: BuildRequest) -> Built:
        if self._helper is None:
            return build(request)
        built = self._helper.call('build', request, seconds=LONGEST_BUILD)
        if not isinstance(built, Built):
            raise HelperError('the process that builds models gave an unexpected answer')
        return built
