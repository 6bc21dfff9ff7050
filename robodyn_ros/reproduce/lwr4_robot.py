"""The robot of the published experiment: a KUKA LWR 4+ with the parameters of table 5.3.

The tables of Kolyubin 2017, section 5.8, are in ``lwr4.yaml``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from robodyn_ros.description.denavit_hartenberg import description_from_dh
from robodyn_ros.description.robot import Joint, Link
from robodyn_ros.description.solids import cylinder
from robodyn_ros.description.yaml import read_yaml
from robodyn_ros.dynamics import Dynamics
from robodyn_ros.excitation import Limits
from robodyn_ros.identification.base_parameters import base_parameters
from robodyn_ros.identification.consistency import consistent_estimate
from robodyn_ros.identification.linear_model import LinearModel
from robodyn_ros.model import Model, build_model
from robodyn_ros.spatial import Array, Inertial, inertial_of, rotation_from_rpy

TABLES = Path(__file__).with_name('lwr4.yaml')
CARRIER, FLANGE = 'link7', 'flange'
JOINTS = 7
TOLERANCE = 0.005  # half a unit of the last digit of table 5.3
_ALONG = {'z': np.eye(3), 'y': rotation_from_rpy([np.pi / 2, 0.0, 0.0])}  # a cylinder's axis is z


@lru_cache(maxsize=1)
def tables() -> dict[str, Any]:
    """Return the published tables, and the assumptions where the text leaves something open."""
    content: dict[str, Any] = read_yaml(TABLES)
    return content


def published_parameters() -> dict[str, tuple[float, float]]:
    """Return table 5.3: value and relative standard deviation by parameter, see `name_of`."""
    return {name_of(key): (float(value), float(percent) / 100)
            for key, (value, percent) in tables()['table_5_3'].items()}


def name_of(published: str) -> str:
    """Return the name of a parameter of table 5.3 in this package, for example ``Ixx:joint2``.

    ``XX2R`` is the regrouped ``Ixx`` of link 2, ``MX2`` its first moment, ``off2`` the offset of
    the friction on the link side; link 8 is the payload.
    """
    term, number = published.removesuffix('R')[:-1], published.removesuffix('R')[-1]
    if term.isupper():  # inertia (XX), mass (M) or first moment (MX)
        term = term.lower() if term.startswith('M') else f'I{term.lower()}'
    elif term == 'off':
        term = 'offl'
    return f'{term}:payload' if int(number) > JOINTS else f'{term}:joint{number}'


def limits() -> Limits:
    """Return table 5.1: the limits of the motions."""
    table = tables()['table_5_1']
    angle = np.pi * np.array([float(Fraction(entry)) for entry in table['position']])
    speed = np.pi * np.array([float(Fraction(entry)) for entry in table['velocity']])
    return Limits(position=np.column_stack([-angle, angle]), velocity=speed,
                  torque=table['torque'], torque_margin=0.0, tool=FLANGE,
                  height=table['height'], distance=table['distance'])


def assumed_robot() -> Model:
    """Return the arm with assumed bodies (cylinders), without drives and friction."""
    content = tables()
    rows = np.array(content['kinematics']['table'], np.float64)
    rows[:, 1] *= np.pi / 2
    description = description_from_dh(
        rows, [_body(**entry) for entry in content['assumed']['bodies']],
        convention='modified', name='kuka_lwr4')
    flange = Joint('flange_joint', 'fixed', CARRIER, FLANGE,
                   np.array([0.0, 0.0, content['kinematics']['flange']]), np.eye(3),
                   np.array([0.0, 0.0, 1.0]))
    return build_model(replace(
        description, links=(*description.links, Link(FLANGE, None)),
        joints=(*description.joints, flange)))


def _body(mass: float, axis: str, radius: float, **ends: float) -> Inertial:
    """Return a solid cylinder along an axis of the link, between two coordinates on it."""
    middle = (ends['from'] + ends['to']) / 2
    solid = cylinder(radius, abs(ends['to'] - ends['from']))
    return solid.moved(middle * np.eye(3)['xyz'.index(axis)], _ALONG[axis]).inertial(mass=mass)


@dataclass(frozen=True, eq=False)
class TrueRobot:
    """The robot on which the experiment is simulated.

    Attributes
    ----------
    bare, loaded : Model
        The robot without and with its load: bodies, drives and the friction of both sides.
    load : ndarray, shape (10,)
        Inertial parameters of the load about the origin of joint 7's frame.
    """

    bare: Model
    loaded: Model
    load: Array

    def torques(self, q: Array, qd: Array, qdd: Array, *, loaded: bool) -> tuple[Array, Array]:
        """Return the torques of the joint sensors and of the motors, shape (N, 7) each, N m."""
        model = self.loaded if loaded else self.bare
        links = replace(model.without_motors(),
                        motor_friction=np.zeros_like(model.motor_friction))
        return (Dynamics(links).inverse_dynamics(q, qd, qdd),
                Dynamics(model).inverse_dynamics(q, qd, qdd))

    def parameters(self, linear: LinearModel) -> Array:
        """Return the true parameters of a linear model whose payload is the load, shape (p,)."""
        chi = self.bare.standard_parameters
        theta = np.array([chi[c.standard] if c.standard >= 0 else 0.0 for c in linear.columns])
        theta[[k for k, c in enumerate(linear.columns) if c.body < 0]] = self.load
        return theta


def true_robot() -> TrueRobot:
    """Return the robot of table 5.3.

    Drives and friction are those of the table; those that the table does not list are zero. The
    bodies are physically consistent, have the base parameters of the table within its rounding,
    and are otherwise as close as possible to the assumed bodies.
    """
    published = {name: value for name, (value, _) in published_parameters().items()}
    model = assumed_robot()
    chi = dict(zip(model.parameter_names, model.standard_parameters, strict=True))
    chi |= _fitted_bodies(model, published)
    chi |= {name: value for name, value in published.items() if _is_of_drive(name)}
    bare = model.with_standard_parameters(list(chi.values()))
    terms = ('Ixx', 'Ixy', 'Ixz', 'Iyy', 'Iyz', 'Izz', 'm', 'mx', 'my', 'mz')
    load = np.array([published.get(f'{term}:payload', 0.0) for term in terms])
    body = inertial_of(load)
    return TrueRobot(bare, bare.with_payload(CARRIER, body.mass, body.com, body.inertia), load)


def _is_of_drive(name: str) -> bool:
    """Return whether a parameter is a rotor inertia, or friction of either side."""
    return name.startswith(('Ia', 'F', 'off'))


def _fitted_bodies(model: Model, published: dict[str, float]) -> dict[str, float]:
    """Return inertial parameters with the published base parameters, near those of a model."""
    linear = LinearModel(Dynamics(model), 'rigid')
    base = base_parameters(linear)
    rows = [k for k, name in enumerate(base.names) if name in published]
    p = len(linear.columns)
    factor = np.zeros((1, p + 1, p + 1))
    factor[0, :len(rows), :p] = base.matrix[rows]
    factor[0, :len(rows), p] = [published[base.names[k]] for k in rows]
    fitted = consistent_estimate(linear, [factor], np.array([TOLERANCE]), prior=1e-2)
    return dict(zip(linear.names, fitted, strict=True))
