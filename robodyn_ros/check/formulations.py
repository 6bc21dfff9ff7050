"""Compares three independent formulations of the equations of motion of one robot."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.dynamics import Dynamics, LagrangeEuler
from robodyn_ros.model import Model
from robodyn_ros.spatial import Array

STATES = 5  # Lagrange's equation takes up to a second a state for a humanoid
LIMIT = 1e-9  # relative; formulations that agree differ by round-off, 1e-13 or less
TERMS = {'mass_matrix': 'M, from energies', 'coriolis_matrix': 'C, from Christoffel symbols',
         'coriolis': 'C qd', 'gravity': 'g, from the potential', 'torque': 'M qdd + C qd + g'}


@dataclass(frozen=True)
class Formulations:
    """How far two other formulations differ from Lagrange-Euler.

    Attributes
    ----------
    name : str
        The robot.
    states : int
        Number of random states.
    limit : float
        The largest difference that counts as agreement.
    newton_euler, linear_form : dict of str to float
        By term, the largest difference in any state and joint, relative to the term's largest
        value: of the recursion as it is compiled for `Dynamics`, and of the regressor times the
        standard parameters. The linear form has no matrices of its own.
    """

    name: str
    states: int
    limit: float
    newton_euler: dict[str, float]
    linear_form: dict[str, float]

    @property
    def agree(self) -> bool:
        """Whether all differences are below the limit."""
        return all(value <= self.limit for value in (
            *self.newton_euler.values(), *self.linear_form.values()))

    @property
    def exit_code(self) -> int:
        """0 if the formulations agree, else 1."""
        return int(not self.agree)

    def to_json(self) -> str:
        """Return the differences as JSON."""
        return json.dumps({'agree': self.agree, **asdict(self)}, indent=2)

    def to_text(self) -> str:
        """Return the table of differences."""
        lines = [f'{self.name}: three formulations '
                 + ('agree' if self.agree else f'differ by more than {self.limit:g}'), '',
                 f'  Largest difference from Lagrange-Euler in {self.states} random states,',
                 "  relative to the term's largest value (without friction)", '',
                 f'  {"term":30}{"Newton-Euler":16}linear form Y chi']
        for key, label in TERMS.items():
            linear = f'{self.linear_form[key]:.1e}' if key in self.linear_form else '-'
            lines.append(f'  {label:30}{f"{self.newton_euler[key]:.1e}":16}{linear}')
        return '\n'.join(lines)


def compare_formulations(model: Model, *, dynamics: Dynamics | None = None,
                         states: int = STATES) -> Formulations:
    """Compare Lagrange-Euler, Newton-Euler and the linear form in random states.

    Friction is left out: all formulations compute it by the same function.

    Parameters
    ----------
    model : Model
        The robot; a floating base is taken at rest.
    dynamics : Dynamics, optional
        The dynamics that are compared; by default those of the model without friction.
    states : int
        Number of random states within the limits of the joints.
    """
    model = (model.with_fixed_base() if model.floating else model).without_friction()
    lagrange, newton = LagrangeEuler(model), dynamics or Dynamics(model)
    rng = np.random.default_rng(0)
    q = model.joints.sample_poses(rng, states)
    qd, qdd = rng.normal(size=(2, states, model.n))
    expected = {'mass_matrix': lagrange.mass_matrix(q),
                'coriolis_matrix': lagrange.coriolis_matrix(q, qd),
                'coriolis': lagrange.coriolis(q, qd), 'gravity': lagrange.gravity(q)}
    expected['torque'] = (np.einsum('kij,kj->ki', expected['mass_matrix'], qdd)
                          + expected['coriolis'] + expected['gravity'])
    return Formulations(
        model.name, states, LIMIT,
        {'mass_matrix': _difference(newton.mass_matrix(q), expected['mass_matrix']),
         'coriolis_matrix': _difference(newton.coriolis_matrix(q, qd),
                                        expected['coriolis_matrix']),
         'coriolis': _difference(newton.coriolis(q, qd), expected['coriolis']),
         'gravity': _difference(newton.gravity(q), expected['gravity']),
         'torque': _difference(newton.inverse_dynamics(q, qd, qdd), expected['torque'])},
        {term: _difference(value, expected[term])
         for term, value in _linear_form(newton, q, qd, qdd).items()})


def _linear_form(dynamics: Dynamics, q: Array, qd: Array, qdd: Array) -> dict[str, Array]:
    """Return the terms ``Y chi``; the regressor is not compiled, as it is needed a few times."""
    model = dynamics.model
    columns = tuple(int(k) for k in np.flatnonzero(model.standard_parameters))
    chi, regressor = model.standard_parameters[list(columns)], dynamics.catalogue.regressor_spec(
        columns).function

    def torque(*motion: Array) -> Array:
        return np.array([np.asarray(regressor(*one) @ chi, np.float64)
                         for one in zip(*motion, strict=True)])

    still = np.zeros_like(q)
    gravity = torque(q, still, still)
    return {'coriolis': torque(q, qd, still) - gravity, 'gravity': gravity,
            'torque': torque(q, qd, qdd)}


def _difference(values: ArrayLike, expected: Array) -> float:
    """Return the largest difference, relative to the largest value if that is not tiny."""
    largest = max(float(np.abs(expected).max(initial=0.0)), 1.0e-6)
    return float(np.abs(np.asarray(values) - expected).max(initial=0.0)) / largest
