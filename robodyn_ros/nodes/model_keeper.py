"""Keeps the running model: swaps in another as a whole, or keeps the old one and says why."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import yaml
from numpy.typing import ArrayLike

from robodyn_ros.building import build_model
from robodyn_ros.description import RobotDescription
from robodyn_ros.dynamics import AnyDynamics, ClosedLoopDynamics, Dynamics
from robodyn_ros.errors import RobodynError, UnknownNameError
from robodyn_ros.model import Joints, Model
from robodyn_ros.urdf import parse_urdf

DESCRIPTION = 'robot_description'
MOST_BEFORE = 20  # models that a rollback can return to


@dataclass(frozen=True)
class Payload:
    """What is fixed to a link besides what the description says."""

    link: str
    mass: float
    com: ArrayLike
    inertia: ArrayLike


@dataclass(frozen=True, eq=False)
class Running:
    """One version of the model; never changed, only replaced.

    Attributes
    ----------
    version : int
        Counts up with every replacement.
    text : str
        The URDF it was built from.
    motors : str, mapping or None
        Path or content of the motor data it was built with.
    origin : str
        Where it is from.
    rotor_model : str
        ``none``, ``armature`` or ``full``.
    """

    version: int
    model: Model
    dynamics: AnyDynamics
    text: str
    payload: Payload | None
    motors: Any = None
    origin: str = DESCRIPTION

    @property
    def joints(self) -> Joints:
        """The joints that are measured and commanded: of a robot with loops, the independent."""
        return self.dynamics.joints

    @property
    def rotor_model(self) -> str:
        """What the inertia of rotors is in."""
        if np.isfinite(self.model.spin_axis[:, 0]).any():
            return 'full'
        return 'armature' if self.model.armature.any() else 'none'


class ModelKeeper:
    """Builds and compiles models off the executor's thread and swaps them in atomically.

    Parameters
    ----------
    kernels : sequence of str
        Methods of `Dynamics` to compile before a model is put to use.
    report : callable
        ``report(level, text)`` with level 'info', 'warning' or 'error'.
    on_swap : callable
        Called with the new `Running`.
    """

    def __init__(self, kernels: tuple[str, ...], report: Callable[[str, str], None],
                 on_swap: Callable[[Running], None]):
        self._kernels, self._report, self._on_swap = kernels, report, on_swap
        self._lock = threading.Lock()
        self._before: list[Running] = []
        self.running: Running | None = None
        self.refused = 0

    def describe(self, text: str, options: Mapping[str, Any]) -> str | None:
        """Take a robot description, or keep the old model. Return None, or why not."""
        return self._take(text, options['motors'], DESCRIPTION, options)

    def set_model(self, text: str, motors: str, origin: str,
                  options: Mapping[str, Any]) -> str | None:
        """Take an identified model: URDF and motor YAML texts. Return None, or why not."""
        try:
            content = yaml.safe_load(motors) if motors.strip() else None
        except yaml.YAMLError as error:
            return f'the motor data are no YAML: {error}'
        if content is not None and not isinstance(content, dict):
            return 'the motor data are no mapping; valid: motor YAML, see docs/conventions.md'
        return self._take(text, content, origin, options)

    def rebuild(self, options: Mapping[str, Any], *, new_motors: bool = False) -> str | None:
        """Build the running model again with other options. Return None, or why not."""
        running = self.running
        if running is None:
            return 'there is no model yet'
        motors = options['motors'] if new_motors else running.motors
        return self._take(running.text, motors, running.origin, options)

    def rollback(self) -> str | None:
        """Return to the model before, as a new version. Return None, or why not."""
        with self._lock:
            if not self._before or self.running is None:
                return 'there is no model before this one'
            former = self._before.pop()
            self.running = replace(former, version=self.running.version + 1)
            self._report('info', f'back to model {former.version}, from {former.origin}')
            self._on_swap(self.running)
            return None

    def _take(self, text: str, motors: Any, origin: str,
              options: Mapping[str, Any]) -> str | None:
        def build() -> tuple[Model, Payload | None]:
            model = _model(parse_urdf(text, motors=motors), options)
            payload = self.running.payload if self.running else None
            if payload is not None and payload.link not in model.link_frames:
                self._report('warning', f'payload on {payload.link!r} is dropped: the new '
                                        'description has no such link')
                payload = None
            return model, payload

        return self._swap(origin, text, motors, origin, build, options)

    def set_payload(self, payload: Payload, options: Mapping[str, Any]) -> str | None:
        """Replace the payload; return None, or why not."""
        running = self.running
        if running is None:
            return 'there is no robot_description yet'

        def build() -> tuple[Model, Payload | None]:
            if payload.link not in running.model.link_frames:
                raise UnknownNameError('link', payload.link, running.model.link_frames)
            base = _model(running.model.description, options)
            if not payload.mass:
                _loaded(base, payload)  # what is wrong with it is said all the same
            return base, payload if payload.mass else None

        return self._swap('payload', running.text, running.motors, running.origin, build, options)

    def _swap(self, what: str, text: str, motors: Any, origin: str,
              build: Callable[[], tuple[Model, Payload | None]],
              options: Mapping[str, Any]) -> str | None:
        with self._lock:
            try:
                model, payload = build()
                model = _loaded(model, payload)
                width, loops = options['friction_width'], options['loops']
                dynamics = Dynamics(model, friction_width=width) if loops is None else \
                    ClosedLoopDynamics(model, loops, friction_width=width)
                dynamics.warm_up(*self._kernels)
            except RobodynError as error:
                self.refused += 1
                kept = 'the old model keeps running' if self.running else 'there is no model yet'
                self._report('error', f'{what} refused: {error}; {kept}')
                return str(error)
            except Exception as error:  # never let a message stop the node
                self.refused += 1
                self._report('error', f'{what} refused: {type(error).__name__}: {error}')
                return f'{type(error).__name__}: {error}'
            version = self.running.version + 1 if self.running else 1
            if self.running is not None:
                self._before = [*self._before[1 - MOST_BEFORE:], self.running]
            self.running = Running(version, model, dynamics, text, payload, motors, origin)
            self._on_swap(self.running)
            return None


def _model(description: RobotDescription, options: Mapping[str, Any]) -> Model:
    return build_model(description, gravity=options['gravity'],
                       locked_joints=options['locked_joints'],
                       rotor_model=options['rotor_model'])


def _loaded(model: Model, payload: Payload | None) -> Model:
    if payload is None:
        return model
    return model.with_payload(payload.link, payload.mass, payload.com, payload.inertia)
