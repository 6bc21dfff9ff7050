"""A robot description as frozen data in SI units: links, joints, inertials and motors.

``urdf.py`` and ``denavit_hartenberg.py`` make a `RobotDescription`; ``robodyn_ros.model`` builds
a `Model` from it. The classes refer to each other, so that they stand in one file of more than 350
lines.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace

import numpy as np

from robodyn_ros.description.friction_temperature import FrictionTemperature
from robodyn_ros.description.ripple import RippleLine
from robodyn_ros.description.spring import SpringTorque
from robodyn_ros.spatial import Array, Inertial

APART = 0.1  # m, distance of the points that represent an axis or a frame; its value is arbitrary
BALL_IS_HINGES = ('three hinges take its place, which are singular where the second one is at '
                  '90 degrees')
MOVING_TYPES = ('revolute', 'continuous', 'prismatic')


@dataclass(frozen=True)
class Shape:
    """One piece of a link's geometry.

    Attributes
    ----------
    kind : str
        ``box``, ``sphere``, ``cylinder``, ``capsule`` or ``mesh``.
    size : tuple of float
        In m: the edges of a box; the radius of a sphere; radius and length of a cylinder (along z)
        and of a capsule (length without its caps). For a mesh, its scale factors.
    translation, rotation : ndarray, shape (3,), (3, 3)
        The shape's frame in the link frame.
    file : str
        The file of a mesh, as named in the description.
    """

    kind: str
    size: tuple[float, ...]
    translation: Array
    rotation: Array
    file: str = ''

    @property
    def sizes(self) -> dict[str, tuple[float, ...]]:
        """The size as the attributes that URDF has for it."""
        if self.kind in ('box', 'mesh'):
            return {'size' if self.kind == 'box' else 'scale': self.size}
        return dict(zip(('radius', 'length'), zip(self.size), strict=False))


@dataclass(frozen=True)
class Link:
    """A rigid body.

    ``inertial`` is None where the description has none; a link that a reader puts between the axes
    of a joint is ``added``.
    """

    name: str
    inertial: Inertial | None = None
    line: int | None = None
    collision: tuple[Shape, ...] = ()
    visual: tuple[Shape, ...] = ()
    added: bool = False


@dataclass(frozen=True)
class Mimic:
    """q = multiplier * q[joint] + offset."""

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True)
class Joint:
    """A joint between two links.

    Attributes
    ----------
    translation : ndarray, shape (3,)
        Origin of the joint frame in the parent link frame, m.
    rotation : ndarray, shape (3, 3)
        Rotation from the joint frame at q = 0 to the parent link frame.
    axis : ndarray, shape (3,)
        Unit vector in the joint frame.
    lower, upper : float
        Position limits, rad or m; -inf and inf where there are none.
    velocity, effort : float
        Limits of velocity (rad/s or m/s) and effort (N m or N); inf where there are none.
    damping, friction : float
        Link-side viscous and Coulomb friction, N m s/rad (N s/m) and N m (N).
    """

    name: str
    type: str
    parent: str
    child: str
    translation: Array
    rotation: Array
    axis: Array
    lower: float = -np.inf
    upper: float = np.inf
    velocity: float = np.inf
    effort: float = np.inf
    damping: float = 0.0
    friction: float = 0.0
    mimic: Mimic | None = None
    line: int | None = None


@dataclass(frozen=True)
class Friction:
    """``viscous * speed + coulomb * sign(speed) + offset`` (Kolyubin 5.7-5.8).

    N m s/rad and N m, or N s/m and N.
    """

    viscous: float = 0.0
    coulomb: float = 0.0
    offset: float = 0.0


@dataclass(frozen=True)
class FrictionCurve:
    """Friction curve of one joint; it replaces the link's plain `Friction`.

    Attributes
    ----------
    viscous, coulomb, offset : float
        As in `Friction`.
    asymmetric : float
        Coefficient of the absolute velocity, N m s/rad or N s/m: viscous friction that depends on
        the direction.
    stribeck : float
        Additional dry friction at standstill, which decays with the speed, N m or N.
    stribeck_velocity : float
        Speed at which it has decayed to 37 %, rad/s or m/s.
    load : float
        Friction torque divided by the torque that the gear transmits.
    presliding, presliding_distance : float
        Part of the dry friction that builds up over a distance after a reversal, N m or N, and
        the distance, rad or m. Functions without memory treat it as a part of ``coulomb``.
    """

    viscous: float = 0.0
    coulomb: float = 0.0
    offset: float = 0.0
    asymmetric: float = 0.0
    stribeck: float = 0.0
    stribeck_velocity: float = 1.0
    load: float = 0.0
    presliding: float = 0.0
    presliding_distance: float = 1.0


CURVE = tuple(entry.name for entry in fields(FrictionCurve))


@dataclass(frozen=True)
class Motor:
    """Motor and gear of one joint.

    Attributes
    ----------
    gear_ratio : float
        k_r, motor speed over joint speed, with its sign.
    rotor_inertia : float
        I_m about the spin axis, motor side, kg m^2.
    armature : float or None
        Reflected inertia k_r^2 I_m if this was given instead of ``rotor_inertia``, kg m^2 (kg).
    spin_axis : ndarray, shape (3,), or None
        z_m, unit vector in the frame of ``carrier``. None if unknown: then only the reflected
        inertia on the diagonal of M can be taken into account.
    carrier : str or None
        The link that carries the motor; None for the joint's parent link.
    rotor_mass : float
        kg, in addition to the carrier's inertial.
    rotor_position : ndarray, shape (3,)
        Rotor's centre of mass in the carrier's frame, m.
    rotor_in_link : bool
        True: the inertial of the carrier already includes the rotor, as is usual in a URDF.
        False: ``rotor_mass`` and ``rotor_inertia`` are added to the carrier.
    friction : Friction
        Friction on the motor's shaft, N m and rad/s of the shaft.
    drive_gain : float or None
        Joint torque per unit of current (Kolyubin remark 5.2), N m/A.
    stiffness, stiffness_damping : float
        Stiffness and damping of the gear between motor and link, seen at the joint, N m/rad and
        N m s/rad. An infinite stiffness means a rigid gear.
    """

    gear_ratio: float = 1.0
    rotor_inertia: float = 0.0
    armature: float | None = None
    spin_axis: Array | None = None
    carrier: str | None = None
    rotor_mass: float = 0.0
    rotor_position: Array = field(default_factory=lambda: np.zeros(3))
    rotor_in_link: bool = True
    friction: Friction = Friction()
    drive_gain: float | None = None
    stiffness: float = np.inf
    stiffness_damping: float = 0.0

    @property
    def reflected_inertia(self) -> float:
        """k_r^2 I_m, kg m^2 at the joint."""
        return self.gear_ratio**2 * self.rotor_inertia if self.armature is None else self.armature


@dataclass(frozen=True)
class GearMatrix:
    """A gearbox that couples joints: ``qm_dot = matrix @ qd`` (Kolyubin remark 2.4)."""

    joints: tuple[str, ...]
    matrix: Array


@dataclass(frozen=True, eq=False)
class Cut:
    """Points of two links that coincide: one, two for a common axis, three for a common frame.

    Attributes
    ----------
    links : tuple of str
        The two links; in definitions of loops, a joint stands for the link that it moves.
    points : ndarray, shape (k, 2, 3)
        k pairs of points, one in the frame of each link, m; moments are about the first pair.
    """

    links: tuple[str, str]
    points: Array


@dataclass(frozen=True)
class EffortMeaning:
    """What the measured efforts and the commanded torques of a robot contain.

    Attributes
    ----------
    measured : str
        ``torque``; ``current``, which the drive gain of each joint turns into torque; or
        ``external_torque``: what the robot estimates to act from outside.
    side : str
        Side of the gear on which torques are measured: ``link`` or ``motor``.
    gravity, friction, rotors : str
        Whether measured torques contain gravity, friction and the torques that accelerate the
        rotors: ``included`` or ``removed``. Sensors behind the gears do not measure the latter.
    commands_add : tuple of str
        What the robot adds to commanded torques: ``gravity``, ``friction``.
    scale : float
        Factor on measured efforts, for example -1 where their sign is reversed.
    preset : str
        Name of the preset that it was made from.
    """

    measured: str = 'torque'
    side: str = 'link'
    gravity: str = 'included'
    friction: str = 'included'
    rotors: str = 'included'
    commands_add: tuple[str, ...] = ()
    scale: float = 1.0
    preset: str = 'generic'

    def __str__(self) -> str:
        if self.measured == 'external_torque':
            text = 'external torques that the robot estimates'
        else:
            what = 'motor currents' if self.measured == 'current' else \
                f"torques on the {self.side}'s side"
            text = f'{what}, gravity {self.gravity}, friction {self.friction}' + (
                ', rotors removed' if self.rotors == 'removed' else '')
        if self.scale != 1.0:
            text += f', times {self.scale:g}'
        if self.commands_add:
            text += f'; to commands the robot adds {" and ".join(self.commands_add)}'
        return text


@dataclass(frozen=True)
class Finding:
    """One value of a description, where it was read, and whether it is used.

    Attributes
    ----------
    joint, quantity : str
        The joint or link, and the quantity.
    value : float or str
        The value as it was read.
    source : str
        The file or element in which it was found.
    used : bool
        Whether it is used.
    reason : str
        Why it is not used, or what was assumed in its place; may be empty.
    """

    joint: str
    quantity: str
    value: object
    source: str
    used: bool
    reason: str = ''

    def __str__(self) -> str:
        verdict = 'used' if self.used else 'ignored'
        because = f' ({self.reason})' if self.reason else ''
        return (f'{self.joint}: {self.quantity} = {self.value} from {self.source}: '
                f'{verdict}{because}')


@dataclass(frozen=True)
class RobotDescription:
    """A robot as it was described, before fixed links are merged and joints are locked.

    ``urdf`` is the URDF text that it was read from, with xacro expanded, or a URDF that was
    written from its MJCF or SDF; it is empty for a Denavit-Hartenberg table. ``floating`` says
    that the root link moves freely; a joint of type ``floating`` that connects it to the
    environment is left out of ``joints``. ``gravity``, m/s^2 in the root frame, is None where the
    description does not give it. ``effort`` says what measured efforts and commanded torques
    contain. ``cuts`` are the closed loops that the description has, cut open.
    """

    name: str
    links: tuple[Link, ...]
    joints: tuple[Joint, ...]
    motors: dict[str, Motor] = field(default_factory=dict)
    link_friction: dict[str, Friction] = field(default_factory=dict)
    friction_curve: dict[str, FrictionCurve] = field(default_factory=dict)
    friction_width: dict[str, float] = field(default_factory=dict)
    springs: dict[str, SpringTorque] = field(default_factory=dict)
    ripple: dict[str, tuple[RippleLine, ...]] = field(default_factory=dict)
    friction_temperature: dict[str, FrictionTemperature] = field(default_factory=dict)
    gear_matrix: GearMatrix | None = None
    findings: tuple[Finding, ...] = ()
    urdf: str | bytes = field(default='', repr=False)
    floating: bool = False
    gravity: tuple[float, ...] | None = None
    effort: EffortMeaning = EffortMeaning()
    cuts: tuple[Cut, ...] = ()

    @property
    def root(self) -> str:
        """Name of the only link that is not the child of a joint."""
        children = {joint.child for joint in self.joints}
        return next(link.name for link in self.links if link.name not in children)

    def with_findings(self, *findings: Finding) -> RobotDescription:
        """Return a copy with more findings."""
        return replace(self, findings=self.findings + findings)
