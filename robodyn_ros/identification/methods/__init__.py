"""The methods of estimation, behind one interface: `estimate_by`.

Every method gets the same observations behind the same filters, and returns the same `Estimate`.
"""

from __future__ import annotations

from collections.abc import Callable

from robodyn_ros.identification.estimation import Estimate, huber, least_squares
from robodyn_ros.identification.methods.likelihood import maximum_likelihood
from robodyn_ros.identification.methods.problem import Problem
from robodyn_ros.identification.methods.simulated import didim, simulated_instruments
from robodyn_ros.identification.methods.total import total_least_squares

_METHODS: dict[str, Callable[[Problem], Estimate]] = {
    'weighted': lambda problem: problem.start,
    'ordinary': lambda problem: least_squares(problem.factors, problem.kept, problem.count,
                                              weighted=False),
    'huber': lambda problem: huber(problem.observations, problem.kept, problem.start),
    'total': total_least_squares,
    'instrumental': simulated_instruments,
    'didim': didim,
    'likelihood': maximum_likelihood}


def estimate_by(method: str, problem: Problem) -> Estimate:
    """Estimate base parameters by one of the methods in `robodyn_ros.model.kinds.METHODS`.

    Parameters
    ----------
    method : str
        Name of the method.
    problem : Problem
        The data.

    Raises
    ------
    IdentificationError
        If the method cannot be used for this robot or these logs.
    """
    return _METHODS[method](problem)
