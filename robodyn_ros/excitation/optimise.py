"""Finds the motion that tells most about a robot, within its limits (Kolyubin 5.13-5.16)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.optimize

from robodyn_ros.description import Array
from robodyn_ros.dynamics import Dynamics, FlexibleDynamics
from robodyn_ros.errors import IdentificationError, UnknownNameError, ValueRangeError
from robodyn_ros.excitation.constraints import Constraints, Limits
from robodyn_ros.excitation.criteria import CRITERIA, SCALINGS, Criterion
from robodyn_ros.excitation.fourier import Basis, Excitation, Motion
from robodyn_ros.identification.base_parameters import base_parameters
from robodyn_ros.identification.linear_model import FrictionShape, LinearModel
from robodyn_ros.model import Model

PROOF_RATE = 1000.0  # Hz, of the grid on which every limit is proven
FRICTION_WIDTH = 0.02  # rad/s or m/s, of sign(s) while optimising
SIGN_WIDTH = 0.05  # of a joint's velocity limit, in the observation matrix
SAMPLES_PER_HARMONIC = 30  # of the criterion
FINE_PER_HARMONIC = 80  # of the limits
TRIES = 6  # random motions for each start
FIRST_ROUND = 15  # iterations of every start; the best goes on
RESERVE = 2e-3  # of each limit, for what happens between the optimiser's samples
TAKEN_BACK = (0.0, 0.001, 0.002, 0.005, 0.01, 0.02)  # of the amplitude, where needed
REPAIRS, REPAIR_SECONDS = 4, 5.0  # with more in reserve, where that does not do


@dataclass(frozen=True)
class Plan:
    """What is to be found.

    Attributes
    ----------
    kind : str
        What will be identified, see `LinearModel`; joint torques alone count.
    period : float, optional
        s; default: proposed from limits, `harmonics` and `resonance`.
    harmonics : int, optional
        K; default: proposed from the number of base parameters.
    periods : int
        How often the period is played.
    resonance : float, optional
        Hz: the highest harmonic stays below half of it. Default: of a robot with elastic joints
        the lowest natural frequency with held motors; else none.
    criterion : str
        ``condition`` or ``determinant``.
    scaling : str
        ``columns`` or ``none``, of the condition number.
    noise : array-like, shape (n,), optional
        Standard deviation of the torques, weights of the rows; default: all alike.
    mean_torque : mapping of str to float, optional
        Joints whose mean |torque| shall reach a goal, N m or N; then condition number and goals
        are met together (goal attainment), with ``condition_goal``.
    condition_goal : float
        Goal of the condition number beside `mean_torque`.
    starts : int
        How many random starts.
    budget : float
        s, for all of it.
    seed : int
        Of the starts.
    """

    kind: str = 'lumped'
    period: float | None = None
    harmonics: int | None = None
    periods: int = 1
    resonance: float | None = None
    criterion: str = 'condition'
    scaling: str = 'columns'
    noise: Any = None
    mean_torque: Mapping[str, float] = field(default_factory=dict)
    condition_goal: float = 35.0
    starts: int = 3
    budget: float = 60.0
    seed: int = 0


@dataclass(frozen=True)
class Progress:
    """What the optimiser has so far.

    Attributes
    ----------
    seconds : float
        Since the start.
    evaluations : int
        Of the criterion.
    condition : float
        Best condition number of a motion that keeps every limit; inf where there is none.
    """

    seconds: float
    evaluations: int
    condition: float


class _Stop(Exception):
    """The budget is spent."""


def propose(model: Model, limits: Limits, plan: Plan) -> tuple[float, int]:
    """Return period (s) and harmonics, where the plan leaves them open (5.4.3).

    Enough harmonics for half the base parameters of a joint; a period in which the velocity
    limits let the joints cross their range a few times, and the highest harmonic stays below half
    the resonance.
    """
    resonance = plan.resonance
    if resonance is None and np.isfinite(model.stiffness).any():
        resonance = lowest_resonance(model)
        if not resonance > 0:
            raise ValueRangeError('stiffness', 'too small', 'one that holds the arm everywhere')
    harmonics = plan.harmonics
    if harmonics is None:
        count = base_parameters(model, plan.kind).count
        harmonics = int(np.clip(np.ceil(count / model.n / 2), 3, 8))
    period = plan.period
    if period is None:
        constraints = Constraints(Dynamics(model, friction_width=FRICTION_WIDTH), limits)
        span = constraints.position[:, 1] - constraints.position[:, 0]
        span = np.where(np.isfinite(span), span, 2 * np.pi)
        speed = np.where(np.isfinite(constraints.velocity), constraints.velocity, span)
        period = float(np.clip(3 * np.pi * np.median(span / speed), 4.0, 30.0))
        if resonance is not None:
            period = max(period, 2 * harmonics / resonance)
    if not 0.1 <= period <= 1000:
        raise ValueRangeError('period', period, '0.1 to 1000 s')
    if resonance is not None and harmonics / period > resonance / 2 + 1e-9:
        raise ValueRangeError('highest harmonic', f'{harmonics / period:.3g} Hz',
                              f'below half the resonance of {resonance:g} Hz: a longer '
                              'period or fewer harmonics')
    return period, harmonics


def lowest_resonance(model: Model, poses: int = 64) -> float:
    """Return the lowest natural frequency with held motors over poses in the joint range, Hz."""
    flexible = FlexibleDynamics(model)
    lower = np.where(np.isfinite(model.lower), model.lower, -np.pi)
    upper = np.where(np.isfinite(model.upper), model.upper, np.pi)
    q = np.random.default_rng(0).uniform(lower, upper, (poses, model.n))
    return float(min(flexible.natural_frequencies(pose, motors_locked=True)[0] for pose in q))


def optimise_excitation(model: Model, limits: Limits | None = None, plan: Plan | None = None, *,
                        progress: Callable[[Progress], None] | None = None,
                        **options: Any) -> Excitation:
    """Find a motion for identification that keeps every limit.

    Parameters
    ----------
    model : Model
        The nominal robot.
    limits : Limits, optional
        What to keep besides the model's own limits.
    plan : Plan, optional
        What is to be found; or the same as keywords.
    progress : callable, optional
        Told after each evaluation. What it raises stops the search; a `KeyboardInterrupt` keeps
        the best motion so far.

    Raises
    ------
    IdentificationError
        No motion keeps every limit; names those that cannot be met.
    """
    search = _Search(model, limits or Limits(), replace(plan or Plan(), **options), progress)
    return search.run()


class _Search:
    """One search: starts, the best of them polished, proven on a dense grid."""

    def __init__(self, model: Model, limits: Limits, plan: Plan,
                 progress: Callable[[Progress], None] | None):
        _check(model, plan)
        self.model, self.plan, self.progress = model, plan, progress
        period, harmonics = propose(model, limits, plan)
        dynamics = Dynamics(model, friction_width=FRICTION_WIDTH)
        self.constraints = Constraints(dynamics, limits)
        speed = np.where(np.isfinite(self.constraints.velocity), self.constraints.velocity, 1.0)
        linear = LinearModel(Dynamics(model), plan.kind, friction=FrictionShape(
            'coulomb', SIGN_WIDTH, speed))
        noise = np.ones(model.n) if plan.noise is None else np.broadcast_to(
            np.asarray(plan.noise, np.float64), (model.n,)).copy()
        self.noise = noise
        self.basis = Basis(period, harmonics, SAMPLES_PER_HARMONIC * max(4, harmonics))
        self.fine = Basis(period, harmonics, FINE_PER_HARMONIC * max(4, harmonics))
        self.criterion = Criterion(linear, base_parameters(linear), self.basis, plan.criterion,
                                   plan.scaling, noise)
        self.goals = {model.joint_names.index(name): float(goal)
                      for name, goal in plan.mean_torque.items()}
        self.shape = (1 + self.basis.free, model.n)
        self.width = self._width()
        self.started, self.evaluations = time.monotonic(), 0
        self.budget, self.reserve = plan.budget, RESERVE
        self.best: Array | None = None
        self.best_score, self.best_condition = np.inf, np.inf
        self._last: tuple[bytes, Any] | None = None

    def _width(self) -> Array:
        """Half the range of each joint: the unit of its numbers."""
        span = self.constraints.position[:, 1] - self.constraints.position[:, 0]
        return np.where(np.isfinite(span), span / 2, np.pi)

    def run(self) -> Excitation:
        rng = np.random.default_rng(self.plan.seed)
        results: list[tuple[float, Array]] = []
        try:
            for _ in range(self.plan.starts):
                self._polish(self._start(rng), FIRST_ROUND, results)
            order = sorted(results, key=lambda entry: entry[0])
            for _, x in order[:2]:
                self._polish(x, 400, results)
        except (_Stop, KeyboardInterrupt):
            pass
        if self.best is None:
            self._rescue(results, rng)
        for _ in range(REPAIRS):
            share = self._share_kept()
            if share is not None:
                return self._made(share)
            self._repair()
        raise IdentificationError(f'no motion keeps {self._most_broken()} between the samples of '
                                  'the search; valid: wider limits or a longer period')

    def _repair(self) -> None:
        """Go on from the best motion with more in reserve."""
        assert self.best is not None
        start, self.reserve = self.best, 4 * self.reserve
        self.best_score = np.inf
        self.budget = time.monotonic() - self.started + REPAIR_SECONDS
        self._last = None
        try:
            self._polish(start, FIRST_ROUND, [])
        except (_Stop, KeyboardInterrupt):
            pass

    def _start(self, rng: np.random.Generator) -> Array:
        """Of some random motions the one that breaks the limits least."""
        tries = [self._random(rng) for _ in range(TRIES)]
        return min(tries, key=lambda x: max(self.constraints.worst(self.basis.motion(x)).values(),
                                            default=0.0))

    def _random(self, rng: np.random.Generator) -> Array:
        """A random motion within position and velocity limits."""
        centre = self.constraints.position.mean(axis=1)
        x = np.zeros(self.shape)
        x[0] = np.where(np.isfinite(centre), centre, 0.0) + 0.2 * self.width * rng.uniform(
            -1, 1, self.model.n)
        x[1:] = rng.normal(size=(self.basis.free, self.model.n))
        motion = self.basis.motion(x)
        share = rng.uniform(0.3, 0.7)
        room = share * self.width / np.maximum(np.abs(motion.q - x[0]).max(axis=0), 1e-12)
        fast = share * self.constraints.velocity / np.maximum(
            np.abs(motion.qd).max(axis=0), 1e-12)
        x[1:] *= np.minimum(room, fast)
        return x

    def _polish(self, start: Array, iterations: int,
                results: list[tuple[float, Array]]) -> None:
        size = self.shape[0] * self.shape[1]
        variables = (start / self.width).ravel()
        goal = bool(self.goals)
        if goal:
            variables = np.append(variables, 1.0)
        scale = np.append(np.tile(self.width, self.shape[0]), [1.0] if goal else [])

        def parts(z: Array) -> Any:
            key = z.tobytes()
            if self._last is None or self._last[0] != key:
                x = (z[:size] * scale[:size]).reshape(self.shape)
                self._last = key, self._evaluate(x)
            return self._last[1]

        def objective(z: Array) -> tuple[float, Array]:
            value, gradient, _, _ = parts(z)
            if not goal:
                return value, gradient.ravel() * scale
            return float(z[-1]), np.append(np.zeros(size), 1.0)

        def kept(z: Array) -> Array:
            _, _, values, _ = parts(z)
            return -values if not goal else np.append(-values, self._attained(z, parts)[0])

        def kept_slopes(z: Array) -> Array:
            _, _, _, slopes = parts(z)
            rows = -slopes.reshape(len(slopes), -1) * scale[:size]
            if not goal:
                return rows
            rows = np.column_stack([rows, np.zeros(len(rows))])
            return np.vstack([rows, self._attained(z, parts)[1] * scale])

        try:
            found = scipy.optimize.minimize(
                objective, variables, jac=True, method='SLSQP',
                constraints={'type': 'ineq', 'fun': kept, 'jac': kept_slopes},
                options={'maxiter': iterations, 'ftol': 1e-6})
        except (ValueError, np.linalg.LinAlgError):
            return
        x = (found.x[:size] * scale[:size]).reshape(self.shape)
        results.append((found.fun + 100 * max(0.0, float(-kept(found.x).min())), x))

    def _evaluate(self, x: Array) -> tuple[float, Array, Array, Array]:
        """Criterion and limits at a motion; remembers the best that keeps them."""
        seconds = time.monotonic() - self.started
        if seconds > self.budget:
            raise _Stop
        motion = self.basis.motion(x)
        value, gradient = self.criterion(motion)
        values, slopes = self.constraints.smooth(self.fine, self.fine.motion(x))
        self.evaluations += 1
        if values.max() <= -0.5 * (self.reserve - RESERVE):
            score = self._score(motion, value)
            if score < self.best_score:
                self.best, self.best_score = x.copy(), score
                self.best_condition = self.criterion.condition(motion)
        if self.progress is not None:
            self.progress(Progress(seconds, self.evaluations, self.best_condition))
        return value, gradient, values + self.reserve, slopes

    def _score(self, motion: Motion, value: float) -> float:
        """What a feasible motion is worth: the criterion, or how far the goals are missed."""
        if not self.goals:
            return value
        missed = [np.log(self.criterion.condition(motion) / self.plan.condition_goal)]
        torque = np.abs(self._torque(motion)).mean(axis=0)
        missed += [(goal - torque[j]) / goal for j, goal in self.goals.items()]
        return float(max(missed))

    def _torque(self, motion: Motion) -> Array:
        return self.constraints.dynamics.inverse_dynamics(motion.q, motion.qd, motion.qdd)

    def _attained(self, z: Array, parts: Callable[[Array], Any]) -> tuple[Array, Array]:
        """Goal attainment: ``gamma - miss >= 0`` for every goal, and its gradient by x, gamma."""
        size = self.shape[0] * self.shape[1]
        value, gradient, _, _ = parts(z)
        motion = self.basis.motion((z[:size] * np.tile(self.width, self.shape[0])).reshape(
            self.shape))
        torque = self._torque(motion)
        values = [z[-1] - (value - np.log(self.plan.condition_goal))]
        rows = [np.append(-gradient.ravel(), 1.0)]
        for j, goal in self.goals.items():
            cotangent = np.zeros_like(torque)
            cotangent[:, j] = np.sign(torque[:, j]) / len(torque)
            pulled = self.constraints.dynamics.inverse_dynamics_pullback(
                motion.q, motion.qd, motion.qdd, cotangent)
            slope = self.basis.pull(pulled[:, 0], pulled[:, 1], pulled[:, 2])
            values.append(z[-1] - (goal - np.abs(torque[:, j]).mean()) / goal)
            rows.append(np.append(slope.ravel() / goal, 1.0))
        return np.array(values), np.array(rows)

    def _rescue(self, results: list[tuple[float, Array]], rng: np.random.Generator) -> None:
        """Nothing kept every limit: look for any motion that does, and name what cannot be met."""
        starts = [x for _, x in sorted(results, key=lambda entry: entry[0])[:1]]
        starts += [self._start(rng) for _ in range(3)]
        size = self.shape[0] * self.shape[1]
        scale = np.tile(self.width, self.shape[0])
        least, where, worst = np.inf, starts[0], {}

        def broken(z: Array) -> tuple[float, Array]:
            x = (z * scale).reshape(self.shape)
            values, slopes = self.constraints.smooth(self.fine, self.fine.motion(x))
            over = np.maximum(values + 0.01, 0.0)
            return float((over**2).sum()), (2 * np.tensordot(over, slopes, 1)).ravel() * scale

        for start in starts:
            found = scipy.optimize.minimize(broken, (start / self.width).ravel()[:size],
                                            jac=True, method='L-BFGS-B',
                                            options={'maxiter': 200})
            x = (found.x * scale).reshape(self.shape)
            tried = self.constraints.worst(self.fine.motion(x))
            if max(tried.values()) < least:
                least, where, worst = max(tried.values()), x, tried
            if least <= 0:
                break
        if least > 0:
            names = sorted((name for name, value in worst.items() if value > 0),
                           key=lambda name: -worst[name])
            raise IdentificationError(
                'no motion was found that keeps every limit; nearest, these are broken: '
                + ', '.join(f'{name} (by {worst[name]:.3g})' for name in names[:5])
                + '; valid: wider limits, a longer period or fewer harmonics')
        self.best = where

    def _dense(self) -> Basis:
        return Basis(self.basis.period, self.basis.harmonics,
                     int(np.ceil(self.basis.period * PROOF_RATE)))

    def _share_kept(self) -> float | None:
        """The amplitude, of the best motion, at which the dense grid keeps every limit."""
        assert self.best is not None
        dense = self._dense()
        for less in TAKEN_BACK:
            x = self.best.copy()
            x[1:] *= 1 - less
            if max(self.constraints.worst(dense.motion(x)).values(), default=-1.0) <= 0:
                return 1 - less
        return None

    def _most_broken(self) -> str:
        assert self.best is not None
        worst = self.constraints.worst(self._dense().motion(self.best))
        name = max(worst, key=lambda key: worst[key])
        return f'{name} (by {worst[name]:.3g})'

    def _made(self, share: float) -> Excitation:
        """The best motion with its facts."""
        assert self.best is not None
        dense = self._dense()
        x = self.best.copy()
        x[1:] *= share
        motion = self.basis.motion(x)
        torque = np.abs(self._torque(dense.motion(x)))
        proven = self.constraints.worst(dense.motion(x))
        facts = {
            'criterion': self.plan.criterion, 'scaling': self.plan.scaling,
            'kind': self.plan.kind, 'base_parameters': self.criterion.base.count,
            'condition': self.criterion.condition(motion),
            'torque_noise': self.noise.tolist(),
            'mean_torque': torque.mean(axis=0).tolist(),
            'largest_torque': torque.max(axis=0).tolist(),
            'proof': {'rate': PROOF_RATE, 'closest': max(proven, key=lambda key: proven[key]),
                      'reserve': -max(proven.values())} if proven else {},
            'amplitude_taken_back_to': share, 'evaluations': self.evaluations,
            'seconds': time.monotonic() - self.started, 'seed': self.plan.seed,
            'notes': list(self.constraints.notes)}
        return self.basis.excitation(x, self.model.joint_names, self.plan.periods, facts)


def validation_plan(found: Excitation, plan: Plan) -> Plan:
    """Return a plan for a motion that is different by construction.

    Another base frequency (no line of one falls on a line of the other), other starts, and the
    determinant as its criterion.
    """
    return replace(plan, period=found.period * np.sqrt(0.75), harmonics=found.harmonics,
                   criterion='determinant', mean_torque={}, seed=plan.seed + 1000,
                   starts=max(2, plan.starts // 2))


def _check(model: Model, plan: Plan) -> None:
    if plan.criterion not in CRITERIA:
        raise UnknownNameError('criterion', plan.criterion, CRITERIA)
    if plan.scaling not in SCALINGS:
        raise UnknownNameError('scaling', plan.scaling, SCALINGS)
    if plan.kind in ('model2', 'model3'):
        raise UnknownNameError('kind for an excitation', plan.kind,
                               ('rigid', 'lumped', 'model1'))
    for name in plan.mean_torque:
        if name not in model.joint_names:
            raise UnknownNameError('joint', name, model.joint_names)
    for quantity, value in (('budget', plan.budget), ('starts', plan.starts),
                            ('periods', plan.periods), ('condition_goal', plan.condition_goal)):
        if not value > 0:
            raise ValueRangeError(quantity, value, 'above 0')
