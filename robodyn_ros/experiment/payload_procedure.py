"""`PayloadProcedure`: moves a robot a little and identifies its payload."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from robodyn_ros.dynamics import RobotDynamics, dynamics_of
from robodyn_ros.dynamics.efforts import complete_torque, effort_factors
from robodyn_ros.errors import ExperimentError, LogError
from robodyn_ros.experiment.payload_goal import PayloadGoal
from robodyn_ros.experiment.player import play
from robodyn_ros.experiment.procedure import FREE_BYTES, FRICTION_WIDTH, Procedure, Status
from robodyn_ros.experiment.results import MOTORS, PARAMETERS, URDF
from robodyn_ros.experiment.runs import RECORDING
from robodyn_ros.experiment.script import plan_script
from robodyn_ros.experiment.state_monitor import Sample
from robodyn_ros.identification import IdentifiedPayload, ModelUncertainty, identify_payload
from robodyn_ros.identification.payload_interfaces import (
    franka,
    service_calls,
    universal_robots,
)
from robodyn_ros.identification.payload_result import FOUND
from robodyn_ros.model import load_model
from robodyn_ros.spatial import Array

RESULT = 'payload.yaml'
EFFORT_FRACTION = 0.9  # largest fraction of an effort limit that the motion with the payload needs


@dataclass(frozen=True, eq=False)
class PayloadOutcome:
    """A payload, and the requests that set it."""

    payload: IdentifiedPayload
    requests: str


class _NoFit:
    """Takes the place of the live fit, which would identify the robot: only counts samples."""

    samples = 0

    def add(self, t: Sequence[float], q: Array, qd: Array, tau: Array) -> None:
        self.samples += len(t)

    def state(self) -> tuple[float, Array]:
        return np.inf, np.zeros(0)


class PayloadProcedure(Procedure):
    """Executes a `PayloadGoal`; its parameters are those of `Procedure`."""

    def identify(self, nodes: Sequence[str]) -> PayloadOutcome:
        """Move the robot, unless the goal names logs, and estimate the payload.

        Parameters
        ----------
        nodes : sequence of str
            Names of the nodes for which requests are written.

        Raises
        ------
        RobodynError
            The goal is not valid, the experiment had to stop, the logs cannot be used, or the job
            was stopped (`Stopped`). Recordings are kept.
        """
        job, runs = self._job, self._runs
        goal: PayloadGoal = job.goal
        job.check()
        goal.check(self._dynamics)
        robot, uncertainty = self._known(goal)
        paths = {kind: [runs.log(name) for name in getattr(goal, kind)]
                 for kind in ('logs', 'without')}
        folder = job.folder = runs.new(goal.name)
        if not goal.logs:
            if runs.room() < FREE_BYTES:
                raise ExperimentError(f'the disk of {runs.root} has {runs.room()} bytes left; '
                                      f'valid: at least {FREE_BYTES}')
            self._move(goal, robot, folder)
            paths['logs'] = [folder / RECORDING]
        self._send_status(Status('reading', 0.0))
        logs, without = ([replace(self._read(path, None, kind == 'logs'), period=None)
                          for path in paths[kind]] for kind in ('logs', 'without'))
        found = identify_payload(robot, logs, goal.link, without=without,
                                 uncertainty=uncertainty, progress=self._step)
        return self._written(found, robot, nodes, folder)

    def _known(self, goal: PayloadGoal) -> tuple[RobotDynamics, ModelUncertainty | None]:
        """Return the known robot and its uncertainty."""
        if not goal.model:
            return self._dynamics, None
        folder = self._runs.file(goal.model)
        for name in (URDF, MOTORS, PARAMETERS):
            if not (folder / name).is_file():
                raise LogError(f'has no file {name}', source=goal.model,
                               valid='a run with an identified model')
        model = load_model(folder / URDF, motors=folder / MOTORS)
        if model.joint_names != self._dynamics.model.joint_names:
            raise LogError(f'is of a robot with the joints {", ".join(model.joint_names)}',
                           source=goal.model, valid=', '.join(self._dynamics.joint_names))
        model.link_frame(goal.link)
        return dynamics_of(model), ModelUncertainty.read(folder / PARAMETERS)

    def _move(self, goal: PayloadGoal, robot: RobotDynamics, folder: Path) -> None:
        """Play and record the motion around the present pose."""
        monitor, options = self._monitor, self._options
        self._wait(lambda: monitor.latest is not None, 'joint_states')
        monitor.forget()
        here = monitor.check()
        motion = goal.motion(self._dynamics, here.q)
        dynamics = robot.with_model(robot.model, friction_width=FRICTION_WIDTH)
        _check_efforts(dynamics, here, motion.samples(options.rate)[1])
        self._wait(self._port.has_controller, 'a controller')
        if not self._port.has_controller():
            raise ExperimentError('no controller is subscribed to the trajectory; valid: a '
                                  'running controller, to whose topic ~/trajectory is remapped')
        script = plan_script(dynamics, monitor.check().q, [(RECORDING, motion)], options.rate)

        def go(tick: Callable[[str, float], None]) -> None:
            play(monitor, script, self._port.send, lambda name: self._recorder(folder / name),
                 tick, delay=options.delay, lease=options.lease)

        self._watch(_NoFit(), go)

    def _written(self, found: IdentifiedPayload, robot: RobotDynamics, nodes: Sequence[str],
                 folder: Path) -> PayloadOutcome:
        """Write the result to the folder of the run and return it with the requests."""
        model = robot.model
        requests = '\n\n'.join([service_calls(found, model, nodes), universal_robots(found, model),
                                franka(found, model)]) if found.state == FOUND else ''
        content = {'link': found.link, 'state': found.state, 'summary': found.summary(),
                   'parameters': found.rows(), 'notes': list(found.notes), 'requests': requests}
        (folder / RESULT).write_text(yaml.safe_dump(content, sort_keys=False), encoding='utf-8')
        return PayloadOutcome(found, requests)


def _check_efforts(dynamics: RobotDynamics, here: Sample, motion: Any) -> None:
    """Raise an error if the motion may exceed an effort limit.

    The difference between the measured efforts at the start and those of the model is taken as
    the effect of the payload.
    """
    joints = dynamics.joints
    factors = effort_factors(dynamics.model, tuple(joints.joint_names))
    now = complete_torque(dynamics, here.q, np.zeros_like(here.q), here.tau @ factors)
    held = np.abs(now - dynamics.gravity(here.q))
    needed = np.abs(dynamics.inverse_dynamics(motion.q, motion.qd, motion.qdd)).max(axis=0) + held
    bad = needed > EFFORT_FRACTION * joints.effort_limit
    if bad.any():
        joint = int(np.argmax(bad))
        raise ExperimentError(
            f'{joints.joint_names[joint]} may need an effort of {needed[joint]:.4g}, more than '
            f'{EFFORT_FRACTION:.0%} of its limit of {joints.effort_limit[joint]:.4g}; valid: '
            'another pose, a smaller amplitude, or a slower motion')
