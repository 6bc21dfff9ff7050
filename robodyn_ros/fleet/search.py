"""Runs many searches for an excitation in parallel and keeps the best motion."""

from __future__ import annotations

from dataclasses import replace

from robodyn_ros.dynamics import RobotDynamics
from robodyn_ros.errors import IdentificationError, RobodynError, ValueRangeError
from robodyn_ros.excitation import Excitation, Limits, Plan, optimise_excitation
from robodyn_ros.fleet.cluster import client_of
from robodyn_ros.model import Model
from robodyn_ros.packages import package


def search_excitations(model: Model | RobotDynamics, limits: Limits | None = None,
                       plan: Plan | None = None, *, searches: int, scheduler: str | None = None,
                       workers: int | None = None) -> Excitation:
    """Search for an excitation with several seeds in parallel, and return the best motion.

    Parameters
    ----------
    model, limits, plan
        See `optimise_excitation`. The first search has the seed of the plan, and each further
        one the next number.
    searches : int
        Number of searches.
    scheduler, workers
        See `identify_fleet`.

    Raises
    ------
    IdentificationError
        No search has found a motion within every limit; the message is that of the first.
    ValueRangeError
        The number of searches is less than 1.
    FleetError
        The scheduler cannot be reached, or was lost.
    """
    if searches < 1:
        raise ValueRangeError('searches', searches, 'at least 1')
    plan = plan or Plan()
    plans = [replace(plan, seed=plan.seed + k) for k in range(searches)]
    distributed = package('distributed')
    found, reason = [], ''
    with client_of(scheduler, workers) as client:
        model_there, limits_there = client.scatter([model, limits], broadcast=True)
        for future in distributed.as_completed(
                [client.submit(_search, model_there, limits_there, one, pure=False)
                 for one in plans]):
            result = future.result()
            if isinstance(result, Excitation):
                found.append(result)
            else:
                reason = reason or result
    if not found:
        raise IdentificationError(reason)
    return min(found, key=lambda motion: (motion.facts['score'], motion.facts['seed']))


def _search(model: Model | RobotDynamics, limits: Limits | None, plan: Plan) -> Excitation | str:
    """Return the motion of one search, or the reason why there is none."""
    try:
        return optimise_excitation(model, limits, plan)
    except RobodynError as error:
        return str(error)
