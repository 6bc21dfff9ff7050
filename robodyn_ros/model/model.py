"""`Model`: a robot as flat float64 arrays, parents first.

Links on fixed and locked joints are merged into the body that carries them (``build.py``). The
result is a tree of moving bodies, one for each moving joint, mimic joints included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robodyn_ros.description.robot import EffortMeaning, Finding, RobotDescription
from robodyn_ros.errors import UnknownNameError, ValueRangeError
from robodyn_ros.html_table import html_table
from robodyn_ros.lazy import cached_property
from robodyn_ros.model.friction_temperature import friction_at
from robodyn_ros.model.joints import Joints
from robodyn_ros.model.link_frame import LinkFrame
from robodyn_ros.model.payload import payload_inertial
from robodyn_ros.numerics import real_array
from robodyn_ros.spatial import (
    INERTIAL_PARAMETER_NAMES,
    Array,
    inertial_parameters,
    transform_inertial,
)

PARAMETER_NAMES = (*INERTIAL_PARAMETER_NAMES, 'Fvl', 'Fcl', 'offl', 'Ia', 'Fvm', 'Fcm', 'offm')
# indices within the parameters of one joint
RIGID, ROTOR = tuple(range(10)), 13
LINK_FRICTION, MOTOR_FRICTION = (10, 11, 12), (14, 15, 16)
A_MODEL = 'a Model, as load_model returns it'  # what is valid where a robot is expected


@dataclass(frozen=True, eq=False)
class Model:
    """A robot ready for dynamics; arrays are read-only.

    ``n`` coordinates move ``b`` bodies (b > n where joints mimic others): body i's joint moves by
    ``row[i] @ q + offset[i]``.

    Attributes
    ----------
    joint_names : tuple of str
        The n independent joints, in the order of the URDF.
    lower, upper, velocity_limit, effort_limit : ndarray, shape (n,)
        Joint limits in rad or m, rad/s or m/s, N m or N; infinite where there are none.
    gravity : ndarray, shape (3,)
        Gravitational acceleration in the root frame, m/s^2.
    body_joints : tuple of str
        The b joints, parents first.
    parent : tuple of int
        Each body's parent, -1 for the root.
    prismatic : tuple of bool
        Whether each body's joint is prismatic, else it is revolute.
    axis : ndarray, shape (b, 3)
        Unit joint axes in the frames of the bodies.
    rotation, translation : ndarray, shape (b, 3, 3), (b, 3)
        Body frames in the frames of their parents at joint position zero, m.
    row, offset : ndarray, shape (b, n), (b,)
        Joint position of body i is ``row[i] @ q + offset[i]``.
    inertial_parameters : ndarray, shape (b, 10)
        ``Ixx Ixy Ixz Iyy Iyz Izz m mx my mz``, inertia about the body frame's origin.
    base_inertial_parameters : ndarray, shape (10,)
        The inertial parameters of the root body.
    link_friction, motor_friction : ndarray, shape (b, 3)
        Viscous, Coulomb and offset; the motor's reflected to the joint.
    friction_curve : ndarray, shape (b, 9)
        Friction curves of the link side, see `FrictionCurve`: viscous, Coulomb, offset, asymmetric
        viscous, Stribeck and its velocity, fraction of the transmitted torque, presliding and its
        distance. A curve replaces ``link_friction``, which approximates it. NaN: no curve.
    friction_width : ndarray, shape (b,)
        Velocity over which dry friction changes its sign, rad/s or m/s; 0: at once.
    spring, ripple : ndarray, shape (b, 3), (b, 3, 3)
        Springs at the joints (`SpringTorque`: linear, sine and cosine, N m/rad and N m), and three
        lines of torque ripple (`RippleLine`: harmonic, 0 for no line, sine and cosine, N m).
    friction_temperature : ndarray, shape (b, 3)
        Temperature of this friction (degrees Celsius), and the change of viscous and Coulomb
        friction of the link side per kelvin, see `at_temperature`. NaN: not known.
    armature, gear_ratio, drive_gain : ndarray, shape (b,)
        Ia = k_r^2 I_m, rotor inertia reflected to the joint; k_r; joint torque per unit of current
        (nan where unknown).
    stiffness, stiffness_damping : ndarray, shape (b,)
        Those of the gears at the joints, N m/rad and N m s/rad; an infinite stiffness means a
        rigid joint. Only `FlexibleDynamics` uses them.
    motor_row : ndarray, shape (b, n)
        Motor i turns at ``gear_ratio[i] * motor_row[i] @ qd`` (a gear matrix couples joints).
    spin_axis, carrier : ndarray, shape (b, 3), tuple of int
        Rotor spin axes in the frames of the bodies that carry the motors (-1: the root); nan where
        only the armature is used.
    link_frames, description : dict of str to LinkFrame, RobotDescription
        Every link of the description, and the description from which the model was built.
    floating : bool
        Whether the root link moves freely. Then the first six of the n velocities are the twist of
        the root link in its own axes, ``row`` and ``motor_row`` have zeros in these columns, and q
        begins with the pose of the root link (seven numbers); all arrays over the joints have n -
        6 entries.
    """

    name: str
    joint_names: tuple[str, ...]
    lower: Array
    upper: Array
    velocity_limit: Array
    effort_limit: Array
    gravity: Array
    body_joints: tuple[str, ...]
    parent: tuple[int, ...]
    prismatic: tuple[bool, ...]
    axis: Array
    rotation: Array
    translation: Array
    row: Array
    offset: Array
    inertial_parameters: Array
    base_inertial_parameters: Array
    link_friction: Array
    motor_friction: Array
    friction_curve: Array
    friction_width: Array
    spring: Array
    ripple: Array
    friction_temperature: Array
    armature: Array
    gear_ratio: Array
    drive_gain: Array
    stiffness: Array
    stiffness_damping: Array
    motor_row: Array
    spin_axis: Array
    carrier: tuple[int, ...]
    link_frames: dict[str, LinkFrame]
    description: RobotDescription
    floating: bool = False

    def __post_init__(self) -> None:
        """Make every array read-only float64."""
        for entry in fields(self):
            value = getattr(self, entry.name)
            if isinstance(value, np.ndarray):
                value = np.array(value, np.float64)
                value.flags.writeable = False
                object.__setattr__(self, entry.name, value)

    def __repr__(self) -> str:
        """Name and joints."""
        base = 'floating base, ' if self.floating else ''
        return f'<Model {self.name!r}: n = {self.n}, {base}joints {", ".join(self.joint_names)}>'

    def _repr_html_(self) -> str:
        """Return a table of the joints, for notebooks."""
        place = [self.body_joints.index(name) for name in self.joint_names]
        rows = [(name, 'm, N' if self.prismatic[body] else 'rad, N m', float(self.lower[k]),
                 float(self.upper[k]), float(self.velocity_limit[k]), float(self.effort_limit[k]),
                 float(self.inertial_parameters[body, 6]), float(self.armature[body]))
                for k, (name, body) in enumerate(zip(self.joint_names, place, strict=True))]
        base = ', floating base' if self.floating else ''
        return html_table(f'{self.name}: {len(rows)} independent joints{base}', (
            'joint', 'units', 'lower', 'upper', 'velocity limit, per s', 'effort limit',
            'mass of its body, kg', 'armature, kg m\u00b2 or kg'), rows)

    @property
    def joints(self) -> Joints:
        """The independent joints and their limits."""
        return Joints(self.joint_names, self.lower, self.upper, self.velocity_limit,
                      self.effort_limit)

    @property
    def n(self) -> int:
        """Number of generalised velocities: the joints, and six of a floating base."""
        return self.first_joint + len(self.joint_names)

    @property
    def nq(self) -> int:
        """Number of positions: n, and one more with a floating base, which has a quaternion."""
        return self.n + self.floating

    @property
    def first_joint(self) -> int:
        """Index of the first joint's velocity: 6 with a floating base, else 0."""
        return 6 if self.floating else 0

    @property
    def velocity_names(self) -> tuple[str, ...]:
        """Names of the n velocities, for example ``base_link.wx``, then those of the joints."""
        return (*base_velocity_names(self.description.root if self.floating else None),
                *self.joint_names)

    def require_fixed_base(self, purpose: str) -> None:
        """Raise an error if the base floats.

        Parameters
        ----------
        purpose : str
            What needs a fixed base.

        Raises
        ------
        ValueRangeError
            The base floats.
        """
        if self.floating:
            raise ValueRangeError('base', 'floating', f"'fixed': a floating base is not "
                                  f"supported by {purpose}; load the robot with base='fixed'")

    def with_fixed_base(self) -> Model:
        """Return the same robot with its root link fixed."""
        first = self.first_joint
        return replace(self, floating=False, row=self.row[:, first:],
                       motor_row=self.motor_row[:, first:])

    @property
    def effort(self) -> EffortMeaning:
        """What measured efforts and commanded torques contain."""
        return self.description.effort

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Values found in the description: where they were read, and whether they are used."""
        return self.description.findings

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of `standard_parameters`: ``PARAMETER:JOINT``, 17 for each body's joint.

        Those of a floating base follow: ``PARAMETER:LINK``, 10 for the root link.
        """
        base = INERTIAL_PARAMETER_NAMES if self.floating else ()
        return (*(f'{name}:{joint}' for joint in self.body_joints for name in PARAMETER_NAMES),
                *(f'{name}:{self.description.root}' for name in base))

    @property
    def standard_parameters(self) -> Array:
        """Standard dynamic parameters chi, shape (17 b,), of ``tau = Y chi`` (Kolyubin 5.9).

        With a floating base, the ten inertial parameters of the root link follow.
        """
        bodies = np.concatenate([self.inertial_parameters, self.link_friction,
                                 self.armature[:, None], self.motor_friction], axis=1).ravel()
        return np.append(bodies, self.base_inertial_parameters) if self.floating else bodies

    def with_standard_parameters(self, parameters: ArrayLike) -> Model:
        """Return the same robot with other `standard_parameters`."""
        values = real_array('parameters', parameters, (len(self.parameter_names),))
        bodies = 17 * len(self.body_joints)
        chi = values[:bodies].reshape(-1, 17)
        base = values[bodies:] if self.floating else self.base_inertial_parameters
        return replace(self, inertial_parameters=chi[:, :10], link_friction=chi[:, 10:13],
                       armature=chi[:, 13], motor_friction=chi[:, 14:],
                       base_inertial_parameters=base)

    def with_payload(self, link: str, mass: float, com: ArrayLike = (0, 0, 0),
                     inertia: ArrayLike | None = None) -> Model:
        """Return the same robot with a payload fixed to a link.

        Parameters
        ----------
        link : str
            Name of the link.
        mass : float
            kg, from 0 to 1e5.
        com : array-like, shape (3,)
            Centre of mass in the link frame, m.
        inertia : array-like, shape (3, 3), optional
            Inertia tensor about the centre of mass, axes of the link frame, kg m^2; default: a
            point mass.

        Raises
        ------
        UnknownNameError, ShapeError, ValueRangeError
            There is no such link, an array has the wrong shape, or no rigid body can have this
            mass, centre and inertia.
        """
        frame = self.link_frame(link)
        added = transform_inertial(inertial_parameters(payload_inertial(mass, com, inertia)),
                                   frame.rotation, frame.translation)
        if frame.body < 0:
            return replace(self, base_inertial_parameters=self.base_inertial_parameters + added)
        parameters = self.inertial_parameters.copy()
        parameters[frame.body] += added
        return replace(self, inertial_parameters=parameters)

    def without_friction(self) -> Model:
        """Return the same robot without link- and motor-side friction."""
        return replace(self, link_friction=np.zeros_like(self.link_friction),
                       motor_friction=np.zeros_like(self.motor_friction),
                       friction_curve=np.full_like(self.friction_curve, np.nan))

    def without_springs_of(self, bodies: Sequence[int]) -> Model:
        """Return the same robot without springs and torque ripple at the joints of some bodies."""
        stays = np.isin(range(len(self.parent)), bodies, invert=True)[:, None]
        return replace(self, spring=self.spring * stays, ripple=self.ripple * stays[:, None])

    def with_plain_friction(self) -> Model:
        """Return the same robot with only viscous and Coulomb friction and offsets."""
        return replace(self, friction_curve=np.full_like(self.friction_curve, np.nan))

    def at_temperature(self, temperature: ArrayLike) -> Model:
        """Return the same robot with the friction of other temperatures of its joints.

        Parameters
        ----------
        temperature : array-like, shape (n,)
            Temperature of each joint, degrees Celsius; NaN leaves its friction unchanged. Joints
            whose dependence is not known stay as they are.

        Raises
        ------
        ShapeError
            If there is not one temperature for each joint.
        """
        return replace(self, **friction_at(self, temperature))

    @cached_property
    def has_curve(self) -> NDArray[np.bool_]:
        """Which joints have a friction curve in place of plain link friction, shape (b,)."""
        return ~np.isnan(self.friction_curve[:, 0])

    @cached_property
    def friction_follows_load(self) -> bool:
        """Whether the friction of some gear depends on the torque that it transmits."""
        return bool((np.nan_to_num(self.friction_curve[:, 6]) != 0).any())

    def without_motors(self) -> Model:
        """Return the same robot without rotor inertia (armature and rotors; friction stays)."""
        return replace(self, armature=np.zeros_like(self.armature),
                       spin_axis=np.full_like(self.spin_axis, np.nan))

    def link_frame(self, link: str) -> LinkFrame:
        """Return the frame of a link.

        Raises
        ------
        UnknownNameError
            There is no such link.
        """
        try:
            return self.link_frames[link]
        except (KeyError, TypeError):
            raise UnknownNameError('link', link, self.link_frames) from None


def base_velocity_names(link: str | None) -> tuple[str, ...]:
    """Return the names of the six velocities of a floating base; none if ``link`` is None."""
    return () if link is None else tuple(
        f'{link}.{component}' for component in ('vx', 'vy', 'vz', 'wx', 'wy', 'wz'))
