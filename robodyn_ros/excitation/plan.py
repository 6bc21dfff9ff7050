"""`Plan`: settings for the optimisation of an excitation, and proposals for those left open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypedDict

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.dynamics import (
    ClosedLoopDynamics,
    Dynamics,
    FlexibleDynamics,
    RobotDynamics,
    dynamics_of,
)
from robodyn_ros.errors import ShapeError, UnknownNameError, ValueRangeError
from robodyn_ros.excitation.constraints import Constraints, Limits
from robodyn_ros.excitation.criteria import CRITERIA, SCALINGS
from robodyn_ros.excitation.fourier import Excitation
from robodyn_ros.identification.base_parameters import base_parameters
from robodyn_ros.identification.closed_poses import closed_motions
from robodyn_ros.identification.linear_model import LinearModel
from robodyn_ros.keywords import checked_fields
from robodyn_ros.model import Model
from robodyn_ros.model.kinds import kind_of
from robodyn_ros.spatial import Array

FRICTION_WIDTH = 0.02  # rad/s or m/s, width of the smooth sign in the torque limits
SIGN_WIDTH = 0.05  # the same in the observation matrix, as a fraction of the velocity limit
RANGE_CROSSINGS = 3 * np.pi  # period over (range / velocity limit): a few crossings of the range
SHORTEST, LONGEST = 4.0, 30.0  # s, bounds of a proposed period
FEWEST = 3  # smallest number of harmonics that is proposed
SUBSYSTEM = 'subsystem'  # the number of harmonics by the rule of Kolyubin 5.4, remark 5.5
STATES = 30  # random states that show on which parameters a torque depends
NEGLIGIBLE = 1e-6  # relative to the longest column of a joint; shorter columns are round-off


@checked_fields
@dataclass(frozen=True)
class Plan:
    """Settings for the optimisation of an excitation.

    Attributes
    ----------
    kind : str
        Kind of the identification, see `LinearModel`.
    payload : str, optional
        Link that carries an unknown payload. The motion is then played twice, without and with the
        payload, and is optimised for both runs together (Kolyubin 5.8).
    payload_mass : float
        Approximate mass of this payload for the torque limits, kg.
    payload_com : array-like, shape (3,)
        Its approximate centre of mass in the frame of the link, m.
    period : float, optional
        Period in s. By default it is proposed from the limits, `harmonics` and `resonance`.
    harmonics : int or str, optional
        Number K of harmonics. By default it is proposed from the number of base parameters per
        joint; ``subsystem`` takes the largest number of `subsystem_harmonics`.
    periods : int
        Number of periods that are played.
    resonance : float, optional
        Frequency in Hz; the highest harmonic stays below half of it. The default for a robot
        with elastic joints is the lowest natural frequency with held motors.
    criterion : str
        ``condition`` or ``determinant``.
    scaling : str
        Scaling of the matrix for its condition number: ``columns`` or ``none``.
    noise : array-like, shape (n,), optional
        Standard deviations of the torques, whose inverses are the weights of the rows, N m or N.
        By default all rows have the same weight. For the kind ``links_and_drives``, shape (2 n,)
        holds those of the joint torques, then those of the motor torques; n numbers hold for both.
    mean_torque : mapping of str to float, optional
        Goals for the mean absolute torque of joints, N m or N. Goal attainment is then used for
        the condition number and these goals together.
    mean_torque_unit : mapping of str to float
        Amount in which a deviation from such a goal is measured for goal attainment, N m or N;
        the default is the goal itself. Kolyubin 5.16 takes ``k tau_max``, which makes these goals
        soft.
    condition_goal : float
        Goal of the condition number if `mean_torque` is given.
    starts : int
        Number of random starts.
    budget : float
        Time for the whole search, s.
    seed : int
        Seed of the random starts.
    within : Excitation, optional
        Another motion, whose ranges of positions and speeds no joint leaves.
    """

    kind: str = 'lumped'
    payload: str | None = None
    payload_mass: float = 0.0
    payload_com: ArrayLike = (0.0, 0.0, 0.0)
    period: float | None = None
    harmonics: int | str | None = None
    periods: int = 1
    resonance: float | None = None
    criterion: str = 'condition'
    scaling: str = 'columns'
    noise: Any = None
    mean_torque: Mapping[str, float] = field(default_factory=dict)
    mean_torque_unit: Mapping[str, float] = field(default_factory=dict)
    condition_goal: float = 35.0
    starts: int = 3
    budget: float = 60.0
    seed: int = 0
    within: Excitation | None = None


@dataclass(frozen=True)
class Progress:
    """The state of a search.

    Attributes
    ----------
    seconds : float
        Time since the start, s.
    evaluations : int
        Number of motions that were evaluated.
    condition : float
        Best condition number of a motion within every limit; inf where there is none yet.
    """

    seconds: float
    evaluations: int
    condition: float


class PlanOptions(TypedDict, total=False):
    """The fields of `Plan` as keywords of `optimise_excitation`, for type checkers."""

    kind: str
    payload: str | None
    payload_mass: float
    payload_com: ArrayLike
    period: float | None
    harmonics: int | str | None
    periods: int
    resonance: float | None
    criterion: str
    scaling: str
    noise: Any
    mean_torque: Mapping[str, float]
    mean_torque_unit: Mapping[str, float]
    condition_goal: float
    starts: int
    budget: float
    seed: int
    within: Excitation | None


def smooth_constraints(robot: RobotDynamics, limits: Limits,
                       model: Model | None = None) -> Constraints:
    """Return the limits of a robot, or of one with other parameters, with smooth friction."""
    dynamics = robot.with_model(model or robot.model, friction_width=FRICTION_WIDTH)
    assert isinstance(dynamics, (Dynamics, ClosedLoopDynamics))
    return Constraints(dynamics, limits)


def propose(robot: Model | RobotDynamics, limits: Limits, plan: Plan) -> tuple[float, int]:
    """Return period (s) and number of harmonics; those that the plan leaves open are proposed.

    The number of harmonics is half the number of base parameters per joint, at least 3; or, by
    request, half that of a joint's subsystem, see `subsystem_harmonics`. At their velocity limits,
    the joints can cross their range a few times in a period. The highest harmonic stays below half
    the resonance.

    Raises
    ------
    ValueRangeError
        The period is too short or too long, or a harmonic would excite the resonance.
    """
    robot = dynamics_of(robot)
    resonance, model = plan.resonance, robot.model
    if resonance is None and np.isfinite(model.stiffness).any():
        resonance = lowest_resonance(model)
        if not resonance > 0:
            raise ValueRangeError('stiffness', 'too small', 'one that holds the arm in every pose')
    harmonics = plan.harmonics
    if harmonics is None:
        count = base_parameters(robot, plan.kind, payload=plan.payload).count
        harmonics = max(int(np.ceil(count / robot.n / 2)), FEWEST)
    elif isinstance(harmonics, str):
        if harmonics != SUBSYSTEM:
            raise UnknownNameError('harmonics', harmonics, ['a number', SUBSYSTEM])
        harmonics = max(*subsystem_harmonics(robot, plan.kind, plan.payload), FEWEST)
    period = plan.period
    if period is None:
        constraints = smooth_constraints(robot, limits)
        span = constraints.position[:, 1] - constraints.position[:, 0]
        span = np.where(np.isfinite(span), span, 2 * np.pi)
        speed = np.where(np.isfinite(constraints.velocity), constraints.velocity, span)
        period = float(np.clip(RANGE_CROSSINGS * np.median(span / speed), SHORTEST, LONGEST))
        if resonance is not None:
            period = max(period, 2 * harmonics / resonance)
    if not 0.1 <= period <= 1000:
        raise ValueRangeError('period', period, '0.1 to 1000 s')
    if resonance is not None and harmonics / period > resonance / 2 + 1e-9:
        raise ValueRangeError('highest harmonic', f'{harmonics / period:.3g} Hz',
                              f'below half the resonance of {resonance:g} Hz: a longer '
                              'period or fewer harmonics')
    return period, harmonics


def subsystem_harmonics(robot: Model | RobotDynamics, kind: str = 'lumped',
                        payload: str | None = None) -> tuple[int, ...]:
    """Return half the number of base parameters of each joint's subsystem, rounded up.

    The subsystem of a joint consists of the equations of its torques (Kolyubin 5.20). They depend
    on the parameters of the subsystem: for a serial arm, on those of all links from the joint on.
    The text advises at least this number of harmonics (remark 5.5), as a linear system would need.

    Parameters
    ----------
    robot : Model, Dynamics or ClosedLoopDynamics
        The robot.
    kind, payload
        See `LinearModel`.
    """
    linear = LinearModel(dynamics_of(robot), kind, payload=payload)
    kept, n = list(base_parameters(linear).kept), linear.joints.n
    rng = np.random.default_rng(0)
    q, motion = linear.joints.sample_poses(rng, STATES), None
    qd, qdd = rng.normal(size=(2, STATES, n))
    if linear.loops is not None:
        q, motion = closed_motions(linear.loops, rng, qd)
    w = linear.regressor(q, qd, qdd, loaded=payload is not None, motion=motion)
    size = np.abs(w[:, :, kept]).max(axis=0).reshape(-1, n, len(kept)).max(axis=0)
    depends = size > NEGLIGIBLE * size.max(axis=1, keepdims=True)
    return tuple(int(count) for count in np.ceil(depends.sum(axis=1) / 2))


def lowest_resonance(model: Model, poses: int = 64) -> float:
    """Return the lowest natural frequency with held motors over random poses, Hz."""
    flexible = FlexibleDynamics(model)
    q = model.joints.sample_poses(np.random.default_rng(0), poses)
    return float(min(flexible.natural_frequencies(pose, motors_locked=True)[0] for pose in q))


def validation_plan(found: Excitation, plan: Plan) -> Plan:
    """Return a plan for another motion, which serves to validate the identification.

    Its base frequency differs, so that no harmonics of the two motions coincide. It uses other
    random starts and the determinant as its criterion. It keeps the ranges of the first motion:
    beyond them, it would test an extrapolation.
    """
    return replace(plan, period=found.period * np.sqrt(0.75), harmonics=found.harmonics,
                   criterion='determinant', mean_torque={}, mean_torque_unit={},
                   seed=plan.seed + 1000, starts=max(2, plan.starts // 2), within=found)


def check_plan(robot: RobotDynamics, plan: Plan) -> None:
    """Check the names and numbers of a plan.

    Raises
    ------
    UnknownNameError
        The criterion, the scaling, the kind or a joint does not exist.
    ValueRangeError
        A number is not above 0.
    """
    if plan.criterion not in CRITERIA:
        raise UnknownNameError('criterion', plan.criterion, CRITERIA)
    if plan.scaling not in SCALINGS:
        raise UnknownNameError('scaling', plan.scaling, SCALINGS)
    kind_of(plan.kind)
    for name in (*plan.mean_torque, *plan.mean_torque_unit):
        if name not in robot.joint_names:
            raise UnknownNameError('joint', name, robot.joint_names)
    for quantity, value in (('budget', plan.budget), ('starts', plan.starts),
                            ('periods', plan.periods), ('condition_goal', plan.condition_goal)):
        if not value > 0:
            raise ValueRangeError(quantity, value, 'above 0')


def noise_of_rows(given: Any, n: int, rows: int) -> Array:
    """Return the standard deviation of each row, shape (rows,), N m or N.

    It is given as one number, n numbers or all of them.

    Raises
    ------
    ShapeError
        The numbers are neither one, nor n, nor one for each row.
    """
    noise = np.ones(n) if given is None else np.asarray(given, np.float64)
    if noise.shape not in ((), (n,), (rows,)):
        raise ShapeError('noise', f'shape {noise.shape}', f'({n},) or ({rows},)')
    if noise.shape != (rows,):
        noise = np.tile(np.broadcast_to(noise, (n,)), rows // n)
    return noise.copy()
