"""Optimises an excitation for the identification of a robot's parameters (Kolyubin 5.13-5.16)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from types import NoneType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.optimize

from robodyn_ros.dynamics import RobotDynamics, dynamics_of
from robodyn_ros.errors import IdentificationError, check_type
from robodyn_ros.excitation.constraints import Limits
from robodyn_ros.excitation.criteria import Criterion
from robodyn_ros.excitation.family import excess_text, unit_of
from robodyn_ros.excitation.feasible import feasible_motion
from robodyn_ros.excitation.fourier import Basis, Excitation, Motion
from robodyn_ros.excitation.plan import (
    SIGN_WIDTH,
    Plan,
    PlanOptions,
    Progress,
    check_plan,
    noise_of_rows,
    propose,
    smooth_constraints,
)
from robodyn_ros.excitation.starts import Starts
from robodyn_ros.identification.base_parameters import base_parameters
from robodyn_ros.identification.friction import FrictionShape
from robodyn_ros.identification.linear_model import LinearModel
from robodyn_ros.keywords import checked_options
from robodyn_ros.model import Model
from robodyn_ros.spatial import Array

if TYPE_CHECKING:
    from typing_extensions import Unpack

CHECK_RATE = 1000.0  # Hz, rate of the samples at which every limit is checked at the end
SAMPLES_PER_HARMONIC = 30  # samples at which the criterion is evaluated
FINE_PER_HARMONIC = 80  # samples at which the limits are evaluated
FIRST_ROUND, LAST_ROUND = 15, 400  # iterations of every start, and of the best two
RESERVE = 2e-3  # fraction of each limit that is reserved for the times between samples
TAKEN_BACK = (0.0, 0.001, 0.002, 0.005, 0.01, 0.02)  # reductions of the amplitude that are tried
OPEN = 1e3  # criterion and limits where closed loops open or turn singular
REPAIRS, REPAIR_SECONDS = 4, 5.0  # further searches with a larger reserve, if these do not suffice


class _Stop(Exception):
    """Ends a search whose time is used up."""


class _Evaluation(NamedTuple):
    """The criterion and the limits at a motion, and their gradients w.r.t. its variables."""

    criterion: float
    gradient: Array
    limits: Array  # at most 0 within the limits
    slopes: Array


@checked_options(Plan)
def optimise_excitation(model: Model | RobotDynamics, limits: Limits | None = None,
                        plan: Plan | None = None, *,
                        progress: Callable[[Progress], None] | None = None,
                        **options: Unpack[PlanOptions]) -> Excitation:
    """Find a motion for identification within every limit.

    Parameters
    ----------
    model : Model, Dynamics or ClosedLoopDynamics
        The nominal robot. With closed loops, the motion is that of the independent joints, each of
        which needs a motor; the dependent joints keep their limits too, and the loops stay away
        from singularities.
    limits : Limits, optional
        Limits besides those of the model.
    plan : Plan, optional
        Settings of the optimisation. Single fields can also be given as keywords.
    progress : callable, optional
        Called after each evaluation. An exception that it raises stops the search; after a
        `KeyboardInterrupt` the best motion so far is returned.

    Returns
    -------
    Excitation
        The motion, and facts about it in ``facts``.

    Raises
    ------
    IdentificationError
        No motion is within every limit; the message names the limits that are exceeded.
    """
    robot = dynamics_of(model)
    robot.model.require_fixed_base('the search for an excitation')
    check_type('limits', limits, (Limits, NoneType), 'a Limits')
    check_type('plan', plan, (Plan, NoneType), 'a Plan')
    search = _Search(robot, limits or Limits(), replace(plan or Plan(), **options), progress)
    return search.run()


class _Search:
    """A search from random starts, refinement of the best, and a check at dense samples."""

    def __init__(self, robot: RobotDynamics, limits: Limits, plan: Plan,
                 progress: Callable[[Progress], None] | None):
        check_plan(robot, plan)
        self.robot, self.plan, self.progress = robot, plan, progress
        poses = None
        if plan.within is not None:
            other = plan.within.in_order_of(robot.joint_names).one_period()
            limits, poses = limits.within(other, robot.joints), other.q
        period, harmonics = propose(robot, limits, plan)
        models = [robot.model]
        if plan.payload is not None:
            models.insert(0, robot.model.with_payload(plan.payload, plan.payload_mass,
                                                      plan.payload_com))
        # the search keeps the limits with the payload; the result keeps them without it as well
        self.every = [smooth_constraints(robot, limits, model) for model in models]
        self.constraints = self.every[0]
        linear = LinearModel(robot, plan.kind, friction=FrictionShape(
            'coulomb', SIGN_WIDTH, self.constraints.speeds()), payload=plan.payload)
        self.noise = noise = noise_of_rows(plan.noise, robot.n, linear.rows)
        self.basis = Basis(period, harmonics, SAMPLES_PER_HARMONIC * max(4, harmonics))
        self.fine = Basis(period, harmonics, FINE_PER_HARMONIC * max(4, harmonics))
        self.criterion = Criterion(linear, base_parameters(linear), self.basis, plan.criterion,
                                   plan.scaling, noise)
        self.goals = {robot.joint_names.index(name):
                      (float(goal), float(plan.mean_torque_unit.get(name, goal)))
                      for name, goal in plan.mean_torque.items()}
        self.shape = (1 + self.basis.free, robot.n)
        self.width = self._width()
        self.starts = Starts(self.constraints, self.basis, self.width, poses)
        self.started, self.evaluations = time.monotonic(), 0
        self.budget, self.reserve = plan.budget, RESERVE
        self.best: Array | None = None
        self.best_score, self.best_condition = np.inf, np.inf
        self._last: tuple[bytes, _Evaluation] | None = None

    def _width(self) -> Array:
        """Return half the range of each joint, by which its variables are scaled."""
        span = self.constraints.position[:, 1] - self.constraints.position[:, 0]
        return np.where(np.isfinite(span), span / 2, np.pi)

    def run(self) -> Excitation:
        rng = np.random.default_rng(self.plan.seed)
        results: list[tuple[float, Array]] = []
        try:
            for _ in range(self.plan.starts):
                self._polish(self.starts.draw(rng), FIRST_ROUND, results)
            order = sorted(results, key=lambda entry: entry[0])
            for _, x in order[:2]:
                self._polish(x, LAST_ROUND, results)
        except (_Stop, KeyboardInterrupt):
            pass
        if self.best is None:
            starts = [x for _, x in sorted(results, key=lambda entry: entry[0])[:1]]
            self.best = feasible_motion(self.constraints, self.fine, self.width,
                                        [*starts, *(self.starts.draw(rng) for _ in range(3))])
        for _ in range(REPAIRS):
            amplitude = self._amplitude_kept()
            if amplitude is not None:
                return self._made(amplitude)
            self._repair()
        raise IdentificationError(f'every motion exceeds {self._most_broken()} between samples of '
                                  'the search; valid: wider limits or a longer period')

    def _repair(self) -> None:
        """Continue from the best motion with a larger reserve."""
        assert self.best is not None
        start, self.reserve = self.best, 4 * self.reserve
        self.best_score = np.inf
        self.budget = time.monotonic() - self.started + REPAIR_SECONDS
        self._last = None
        try:
            self._polish(start, FIRST_ROUND, [])
        except (_Stop, KeyboardInterrupt):
            pass

    def _polish(self, start: Array, iterations: int,
                results: list[tuple[float, Array]]) -> None:
        """Improve a motion by sequential quadratic programming, and append it to the results.

        The unknowns z are the variables of the motion over their scale; with goals, the attainment
        factor gamma is appended and minimised instead of the criterion (Kolyubin 5.15).
        """
        size = self.shape[0] * self.shape[1]
        variables = (start / self.width).ravel()
        goal = bool(self.goals)
        if goal:
            variables = np.append(variables, 1.0)
        scale = np.append(np.tile(self.width, self.shape[0]), [1.0] if goal else [])

        def objective(z: Array) -> tuple[float, Array]:
            here = self._at(z)
            if not goal:
                return here.criterion, here.gradient.ravel() * scale
            return float(z[-1]), np.append(np.zeros(size), 1.0)

        def kept(z: Array) -> Array:
            limits = self._at(z).limits
            return -limits if not goal else np.append(-limits, self._attained(z)[0])

        def kept_slopes(z: Array) -> Array:
            slopes = self._at(z).slopes
            rows = -slopes.reshape(len(slopes), -1) * scale[:size]
            if not goal:
                return rows
            rows = np.column_stack([rows, np.zeros(len(rows))])
            return np.vstack([rows, self._attained(z)[1] * scale])

        try:
            found = scipy.optimize.minimize(
                objective, variables, jac=True, method='SLSQP',
                constraints={'type': 'ineq', 'fun': kept, 'jac': kept_slopes},
                options={'maxiter': iterations, 'ftol': 1e-6})
        except (ValueError, np.linalg.LinAlgError):
            return
        results.append((found.fun + 100 * max(0.0, float(-kept(found.x).min())),
                        self._unscaled(found.x)))

    def _unscaled(self, z: Array) -> Array:
        """Return the variables of a motion from the unknowns of the optimiser."""
        rows, n = self.shape
        return z[:rows * n].reshape(self.shape) * self.width

    def _at(self, z: Array) -> _Evaluation:
        """Return the evaluation at the unknowns of the optimiser; the last one is kept."""
        key = z.tobytes()
        if self._last is None or self._last[0] != key:
            self._last = key, self._evaluate(self._unscaled(z))
        return self._last[1]

    def _evaluate(self, x: Array) -> _Evaluation:
        """Return criterion and limits at a motion, and store the best motion within limits."""
        seconds = time.monotonic() - self.started
        if seconds > self.budget:
            raise _Stop
        motion, fine = self.basis.motion(x), self.fine.motion(x)
        if not (self.constraints.stay(motion) and self.constraints.stay(fine)):
            return self._open()
        value, gradient = self.criterion(motion)
        values, slopes = self.constraints.smooth(self.fine, fine)
        self.evaluations += 1
        if values.max() <= -0.5 * (self.reserve - RESERVE):
            score = self._score(motion, value)
            if score < self.best_score:
                self.best, self.best_score = x.copy(), score
                self.best_condition = self.criterion.condition(motion)
        if self.progress is not None:
            self.progress(Progress(seconds, self.evaluations, self.best_condition))
        return _Evaluation(value, gradient, values + self.reserve, slopes)

    def _open(self) -> _Evaluation:
        """Return an evaluation that a line search rejects: the loops open or turn singular."""
        if self._last is None:
            raise ValueError('the loops open or turn singular along the first motion')
        last = self._last[1]
        return _Evaluation(OPEN, np.zeros_like(last.gradient), np.full_like(last.limits, OPEN),
                           np.zeros_like(last.slopes))

    def _score(self, motion: Motion, value: float) -> float:
        """Return the score of a feasible motion: the criterion, or how far goals are missed."""
        if not self.goals:
            return value
        missed = [np.log(self.criterion.condition(motion) / self.plan.condition_goal)]
        torque = np.abs(self._torque(motion)).mean(axis=0)
        missed += [(goal - torque[j]) / unit for j, (goal, unit) in self.goals.items()]
        return float(max(missed))

    def _torque(self, motion: Motion) -> Array:
        return self.constraints.dynamics.inverse_dynamics(motion.q, motion.qd, motion.qdd)

    def _attained(self, z: Array) -> tuple[Array, Array]:
        """Return ``gamma - miss`` of each goal, which must be >= 0, and its gradients w.r.t. z."""
        here = self._at(z)
        motion = self.basis.motion(self._unscaled(z))
        torque = self._torque(motion)
        values = [z[-1] - (here.criterion - np.log(self.plan.condition_goal))]
        rows = [np.append(-here.gradient.ravel(), 1.0)]
        for j, (goal, unit) in self.goals.items():
            cotangent = np.zeros_like(torque)
            cotangent[:, j] = np.sign(torque[:, j]) / len(torque)
            pulled = self.constraints.dynamics.inverse_dynamics_pullback(
                motion.q, motion.qd, motion.qdd, cotangent)
            slope = self.basis.pull(pulled[:, 0], pulled[:, 1], pulled[:, 2])
            values.append(z[-1] - (goal - np.abs(torque[:, j]).mean()) / unit)
            rows.append(np.append(slope.ravel() / unit, 1.0))
        return np.array(values), np.array(rows)

    def _dense(self) -> Basis:
        return Basis(self.basis.period, self.basis.harmonics,
                     int(np.ceil(self.basis.period * CHECK_RATE)))

    def _amplitude_kept(self) -> float | None:
        """Return the factor on the best motion with which dense samples are within every limit."""
        assert self.best is not None
        dense = self._dense()
        for less in TAKEN_BACK:
            x = self.best.copy()
            x[1:] *= 1 - less
            if max(self._worst(dense.motion(x)).values(), default=-1.0) <= 0:
                return 1 - less
        return None

    def _worst(self, motion: Motion) -> dict[str, float]:
        """Return the worst value of every limit, with and without the payload."""
        found: dict[str, float] = {}
        for constraints in self.every:
            for name, value in constraints.worst(motion).items():
                found[name] = max(value, found.get(name, -np.inf))
        return found

    def _most_broken(self) -> str:
        assert self.best is not None
        worst = self._worst(self._dense().motion(self.best))
        name = max(worst, key=lambda key: worst[key])
        return excess_text(name, worst[name])

    def _made(self, amplitude: float) -> Excitation:
        """Return the best motion and facts about it."""
        assert self.best is not None
        dense = self._dense()
        x = self.best.copy()
        x[1:] *= amplitude
        motion = self.basis.motion(x)
        torque = np.abs(self._torque(dense.motion(x)))
        worst = self._worst(dense.motion(x))
        closest = max(worst, key=lambda key: worst[key], default='')
        facts = {
            'criterion': self.plan.criterion, 'scaling': self.plan.scaling,
            'kind': self.plan.kind, 'base_parameters': self.criterion.base.count,
            **({} if self.plan.payload is None else {'payload': self.plan.payload}),
            'condition': self.criterion.condition(motion), 'score': float(self.best_score),
            'torque_noise': self.noise.tolist(),
            'mean_torque': torque.mean(axis=0).tolist(),
            'largest_torque': torque.max(axis=0).tolist(),
            'check': {'rate': CHECK_RATE, 'closest': closest, 'reserve': -worst[closest],
                      'reserve_unit': unit_of(closest)} if worst else {},
            'amplitude_taken_back_to': amplitude, 'evaluations': self.evaluations,
            'seconds': time.monotonic() - self.started, 'seed': self.plan.seed,
            'notes': list(self.constraints.notes)}
        return self.basis.excitation(x, self.robot.joint_names, self.plan.periods, facts)


optimize_excitation = optimise_excitation
