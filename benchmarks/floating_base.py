"""Robots with a floating base, side by side with Pinocchio's free-flyer in one process.

Contenders take turns, as in `speed`. Before anything is timed, both libraries must agree.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pinocchio as pin
from speed import in_turns

import robodyn_ros as rd
from robodyn_ros.description.examples import example_robots

LEGGED = {
    'ANYmal': 'anymal_c_simple_description/urdf/anymal.urdf',
    'Solo 12': 'solo_description/robots/solo12.urdf',
    'Talos': 'talos_data/robots/talos_reduced.urdf',
}
BATCH = 4096
REGRESSORS = 512  # states in a batch of regressors


class Robot:
    """One robot with a floating base in both libraries, with a state and a batch of states."""

    def __init__(self, file: str):
        path = example_robots() / file
        self.model = rd.load_model(path, base='floating').without_friction()
        self.dynamics = rd.Dynamics(self.model)
        self.pin = pin.buildModelFromXML(path.read_text(), pin.JointModelFreeFlyer())
        self.pin.gravity.linear = np.array(self.model.gravity)
        self.data = self.pin.createData()
        self.pool = pin.ModelPool(self.pin, 1)
        names, rng = list(self.model.joint_names), np.random.default_rng(1)
        self.order = [*range(6), *(6 + names.index(name) for name in self.pin.names[2:])]
        assert len(names) == self.pin.nv - 6
        q = rng.uniform(-1, 1, (BATCH, self.model.nq))
        q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
        self.many = [q, *(rng.uniform(-1, 1, (BATCH, self.model.n)) for _ in range(2))]
        self.one = [np.ascontiguousarray(x[0]) for x in self.many]
        places = [*range(7), *(k + 1 for k in self.order[6:])]
        self.columns = [np.asfortranarray(self.many[0][:, places].T),
                        *(np.asfortranarray(x[:, self.order].T) for x in self.many[1:])]
        self.given = [np.ascontiguousarray(x[:, 0]) for x in self.columns]
        self.out = np.asfortranarray(np.empty((self.model.n, BATCH)))
        # the bodies' parameters: ten of each joint's 17, and the ten of the base
        joint_parameters = 17 * len(self.model.body_joints)
        self.rigid = (*(k for k in range(joint_parameters) if k % 17 < 10),
                      *range(joint_parameters, joint_parameters + 10))

    def check(self) -> None:
        """Check that both libraries compute the same, so that their times are comparable."""
        d, o = self.dynamics, self.order
        p, data, (q, v, a) = self.pin, self.data, self.given
        tau = pin.rnea(p, data, q, v, a).copy()
        mass = np.triu(pin.crba(p, data, q))
        pin.computeCentroidalMomentum(p, data, q, v)
        w = pin.computeJointTorqueRegressor(p, data, q, v, a)
        parameters = np.concatenate([np.asarray(p.inertias[k].toDynamicParameters())
                                     for k in range(1, p.njoints)])
        for ours, theirs in (
                (d.inverse_dynamics(*self.one)[o], tau),
                (np.triu(d.mass_matrix(self.one[0])[np.ix_(o, o)]), mass),
                (d.forward_dynamics(*self.one)[o], pin.aba(p, data, q, v, a)),
                (d.centroidal_momentum(*self.one[:2]), data.hg.vector),
                (d.regressor(*self.one)[o] @ self.model.standard_parameters, w @ parameters)):
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9 * np.abs(theirs).max())


def floating_base(names: list[str] | None = None) -> list[str]:
    """Time the robots; return the lines of a table for each."""
    lines = []
    for name in names or LEGGED:
        lines += [*_table(name, Robot(LEGGED[name])), '']
    return lines


def _table(name: str, robot: Robot) -> list[str]:
    robot.check()
    d, p, data, (q, v, a) = robot.dynamics, robot.pin, robot.data, robot.given
    rigid, small = robot.rigid, [x[:REGRESSORS] for x in robot.many]
    states = [np.ascontiguousarray(x.T) for x in robot.columns]
    lines = [f'{name}: floating base and {robot.model.n - 6} joints',
             f'{"":36} {"here":>12} {"Pinocchio":>12} {"ratio":>7}']

    def row(label: str, per: int, ours: Callable[[], Any], theirs: Callable[[], Any]) -> None:
        best = in_turns({'ours': ours, 'theirs': theirs})
        lines.append(f'{label:36} {best["ours"] / per * 1e9:9.1f} ns '
                     f'{best["theirs"] / per * 1e9:9.1f} ns '
                     f'{best["theirs"] / best["ours"]:6.1f}x')

    def each(function: Callable[..., Any], count: int, arguments: int) -> Callable[[], Any]:
        given = [x[:count] for x in states[:arguments]]
        return lambda: [function(p, data, *one) for one in zip(*given, strict=True)]

    for label, ours, theirs, arguments in (
            ('mass matrix', d.mass_matrix, pin.crba, 1),
            ('inverse dynamics', d.inverse_dynamics, pin.rnea, 3),
            ('forward dynamics', d.forward_dynamics, pin.aba, 3),
            ('centroidal momentum', d.centroidal_momentum, pin.computeCentroidalMomentum, 2)):
        one, given = robot.one[:arguments], robot.given[:arguments]
        row(f'{label}, one call', 1, lambda f=ours, x=one: f(*x),
            lambda f=theirs, x=given: f(p, data, *x))
        many = robot.many[:arguments]
        compared = {'inverse dynamics': lambda: pin.rneaInParallel(
            1, robot.pool, *robot.columns, robot.out), 'forward dynamics': lambda: (
            pin.abaInParallel(1, robot.pool, *robot.columns, robot.out))}.get(
                label, each(theirs, BATCH, arguments))
        row(f'{label}, batch of {BATCH}', BATCH, lambda f=ours, x=many: f(*x), compared)
    row('regressor (rigid), one call', 1, lambda: d.regressor(*robot.one, rigid),
        lambda: pin.computeJointTorqueRegressor(p, data, q, v, a))
    row(f'regressor (rigid), batch of {REGRESSORS}', REGRESSORS,
        lambda: d.regressor(*small, rigid), each(pin.computeJointTorqueRegressor, REGRESSORS, 3))
    return lines


if __name__ == '__main__':
    print('\n'.join(floating_base(sys.argv[1:])))
