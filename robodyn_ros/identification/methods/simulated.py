"""Methods that simulate the robot: instrumental variables of Janot, and DIDIM.

The controller of the real robot is not in the log. Feed-forward torques of the estimate and a PD
controller take its place and lead the simulated robot along the measured motion; no measured
torque enters the simulation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from robodyn_ros.control.laws import automatic_gains
from robodyn_ros.errors import IdentificationError
from robodyn_ros.identification.consistency import consistent_estimate
from robodyn_ros.identification.estimation import Estimate, instrumented
from robodyn_ros.identification.identified_model import identified_model
from robodyn_ros.identification.methods.problem import Problem
from robodyn_ros.identification.observations import Observations, factors_of, merge
from robodyn_ros.identification.rollout import STEP, WIDTH
from robodyn_ros.identification.signals import Segment
from robodyn_ros.identification.simulate import simulate_along
from robodyn_ros.model.kinds import JOINT_TORQUE_KINDS
from robodyn_ros.spatial import Array

ITERATIONS = 5
SETTLED = 1e-3  # relative change of the prediction, below which the iteration ends
PRIOR = 1e-4  # weight of the description in the model that is simulated
STIFF = 30.0  # rad/s, natural frequency of the controller
STARTS = 24  # simulations side by side, each of one part of a motion


def simulated_instruments(problem: Problem) -> Estimate:
    """Estimate by instrumental variables, which are the regressor of the simulated robot.

    This regressor does not depend on the measurement noise (Janot, Vandanjon and Gautier 2014,
    doi 10.1109/TCST.2013.2246163).
    """
    estimate = problem.start
    for _ in range(ITERATIONS):
        instruments = _simulated(problem, estimate)
        values = instrumented(problem.observations, instruments, problem.kept, estimate)
        done = _settled(problem, estimate.values, values)
        estimate = problem.with_values(values)
        if done:
            break
    return estimate


def didim(problem: Problem) -> Estimate:
    """Estimate from measured torques alone, on the motion of the simulated robot.

    Direct and inverse dynamic identification models (Gautier, Janot and Vandanjon 2010, doi
    10.48550/arXiv.1009.4556).
    """
    estimate = problem.start
    for _ in range(ITERATIONS):
        blocks = list(_simulated(problem, estimate).blocks())
        factors = merge([factors_of(replace(block, used=own.used)) for block, own in zip(
            blocks, problem.observations.blocks(), strict=True)])
        fit = replace(problem, folds=[factors]).start
        done = _settled(problem, estimate.values, fit.values)
        estimate = problem.with_values(fit.values)
        if done:
            break
    return estimate


def _settled(problem: Problem, old: Array, new: Array) -> bool:
    columns = problem.factors[:, :, list(problem.kept)]
    change, size = np.linalg.norm(columns @ (new - old)), np.linalg.norm(columns @ new)
    return bool(change < SETTLED * size)


def _simulated(problem: Problem, estimate: Estimate) -> Observations:
    """Return the observations of the robot that is simulated with an estimate."""
    observations = problem.observations
    linear = observations.linear
    if linear.loops is not None or linear.kind not in JOINT_TORQUE_KINDS:
        raise IdentificationError('a simulation of this robot is not available; valid: the other '
                                  'methods, or a tree and one of the kinds '
                                  + ', '.join(JOINT_TORQUE_KINDS))
    theta = consistent_estimate(linear, problem.around(estimate), estimate.sigma, prior=PRIOR,
                                known=observations.known)
    dynamics = linear.whole.with_model(identified_model(linear, theta, observations),
                                       friction_width=WIDTH, shared_code=True).tree
    gains = automatic_gains(dynamics, STIFF)
    segments = []
    for segment in observations.segments:
        q, qd = _along(segment, dynamics.inverse_dynamics(*segment.smooth),
                       lambda reference: simulate_along(dynamics, reference, STEP, gains.kp,
                                                        gains.kd))
        if not np.isfinite(q).all():
            raise IdentificationError('the simulated robot diverges; valid: method weighted, or '
                                      'a log with more excitation')
        segments.append(replace(segment, q=q, qd=qd,
                                qdd=np.gradient(qd, 1 / segment.rate, axis=0)))
    return observations.changed(segments)


def _along(segment: Segment, feedforward: Array,
           run: Callable[[Array], Iterator[tuple[Array, Array]]]) -> tuple[Array, Array]:
    """Simulate parts of a motion side by side; return q and qd at its samples."""
    first, last, n = segment.t[0], segment.t[-1], segment.q.shape[1]
    length = (last - first) / STARTS
    steps = int(np.ceil(length / STEP)) + 1
    begins = first + length * np.arange(STARTS)
    t = begins + STEP * np.arange(steps + 1)[:, None]
    reference = np.zeros((steps + 1, STARTS, 3 * n))
    for column, values in enumerate(np.concatenate(
            [*segment.smooth[:2], feedforward], axis=1).T):
        reference[:, :, column] = np.interp(t, segment.t, values)
    states = [np.concatenate(state, axis=1) for state in run(reference)]
    part = np.minimum(((segment.t - first) / length).astype(int), STARTS - 1)
    place = (segment.t - begins[part]) / STEP
    low = np.minimum(place.astype(int), steps - 1)
    found, rest = np.array(states), (place - low)[:, None]
    both = (1 - rest) * found[low, part] + rest * found[low + 1, part]
    return both[:, :n], both[:, n:]
