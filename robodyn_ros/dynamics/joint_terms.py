"""Joint torques of armature and friction (Kolyubin 5.7-5.8, Velagić 4.45)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from robodyn_ros.dynamics.tree import sparse_dot
from robodyn_ros.kernels import sign, smooth_sign
from robodyn_ros.model import Model
from robodyn_ros.spatial import Array

_HALVINGS = 6  # number of times the argument of the exponential is halved


def stribeck_decay(x: Any) -> Any:
    """Return ``(1 + x / 64)^-64``, which differs from exp(-x) by less than 0.005 for x >= 0.

    Identification and compiled equations use this same function, so that the difference from the
    exponential does not matter.
    """
    value = 1.0 / (1.0 + x / 2**_HALVINGS)
    for _ in range(_HALVINGS):
        value = value * value
    return value


class FrictionWidths(NamedTuple):
    """Widths of the smooth sign of dry friction, rad/s or m/s.

    Attributes
    ----------
    link, motor : ndarray, shape (b,)
        Those of the friction of each joint's link side and motor side.
    """

    link: Array
    motor: Array


def friction_widths(model: Model, friction_width: float | None) -> FrictionWidths:
    """Return the widths of all joints.

    Parameters
    ----------
    model : Model
        The robot. Where a gear matrix couples motors, the width of a motor is that of the joints
        that it moves.
    friction_width : float or None
        One width for all joints; None: those of the model.
    """
    if friction_width is not None:
        return FrictionWidths(*np.full((2, len(model.parent)), float(friction_width)))
    of_joints = model.friction_width[[model.body_joints.index(name)
                                      for name in model.joint_names]]
    return FrictionWidths(model.friction_width,
                          np.abs(model.motor_row[:, model.first_joint:]) @ of_joints)


def friction_torque(model: Model, qd: Any, widths: FrictionWidths, loads: Any = None) -> Any:
    """Link- and motor-side friction at the coordinates, shape (n,) (Kolyubin 5.7-5.8).

    ``Fv s + Fc d + off`` for the velocity s and the direction d of each joint, and of each motor
    at the joint. If the model has a friction curve, it replaces the friction of the link side:
    ``Fv s + Fc d + off + Fa |s| + Fs d exp(-|s| / v) + Ft d |load|``.

    Parameters
    ----------
    model : Model
        The robot.
    qd : ndarray, shape (n,)
        Velocities; floats or symbols.
    widths : FrictionWidths
        Widths of the smooth sign, see `friction_widths`.
    loads : ndarray, shape (n,), optional
        Torques that the gears transmit to the links; if omitted, ``Ft`` has no effect.
    """
    total: list[Any] = [0.0] * model.n

    def add(row: Any, torque: Any) -> None:
        for k in np.flatnonzero(row):
            total[k] = total[k] + row[k] * torque

    curved = model.has_curve
    for i in np.flatnonzero(curved):
        load = None if loads is None else loads[np.flatnonzero(model.row[i])[0]]
        curve, speed = model.friction_curve[i].tolist(), sparse_dot(model.row[i], qd)
        add(model.row[i], _curve(curve, speed, float(widths.link[i]), load))
    for rows, parameters, width_of, plain in (
            (model.row, model.link_friction, widths.link, ~curved),
            (model.motor_row, model.motor_friction, widths.motor, np.ones_like(curved))):
        for row, (viscous, coulomb, offset), width, counts in zip(
                rows, parameters, width_of.tolist(), plain, strict=True):
            if not counts or not (viscous or coulomb or offset):
                continue
            speed = sparse_dot(row, qd)
            torque = viscous * speed + offset
            if coulomb:
                torque = torque + coulomb * smooth_sign(speed, width)
            add(row, torque)
    return np.array(total)


def _curve(curve: Any, speed: Any, width: float, load: Any) -> Any:
    """Friction torque of one joint's friction curve, see `CURVE`; it has no presliding."""
    viscous, coulomb, offset, asymmetric, stribeck, velocity, by_load = curve[:7]
    direction, size = smooth_sign(speed, width), speed * sign(speed)
    dry: Any = coulomb
    if stribeck:
        dry = dry + stribeck * stribeck_decay(size / velocity)
    if by_load and load is not None:
        dry = dry + by_load * (load * sign(load))
    return viscous * speed + offset + asymmetric * size + dry * direction


def spring_torque(model: Model, q: Any) -> Any:
    """Torques that hold the springs at the joints, and torque ripple; shape (n,)."""
    total: list[Any] = [0.0] * model.n
    for i, position in _sprung(model, q):
        linear, sine, cosine = model.spring[i].tolist()
        torque = linear * position
        if sine or cosine:
            torque = torque + sine * np.sin(position) + cosine * np.cos(position)
        for harmonic, s, c in _ripple_lines(model, i):
            torque = torque + s * np.sin(harmonic * position) + c * np.cos(harmonic * position)
        for k in np.flatnonzero(model.row[i]):
            total[k] = total[k] + model.row[i, k] * torque
    return np.array(total)


def spring_energy(model: Model, q: Any) -> Any:
    """Potential energy of springs and torque ripple, J; its gradient is `spring_torque`."""
    total: Any = 0.0
    for i, position in _sprung(model, q):
        linear, sine, cosine = model.spring[i].tolist()
        total = total + linear * 0.5 * (position * position) \
            - sine * np.cos(position) + cosine * np.sin(position)
        for harmonic, s, c in _ripple_lines(model, i):
            total = total + (c * np.sin(harmonic * position)
                             - s * np.cos(harmonic * position)) / harmonic
    return total


def _ripple_lines(model: Model, body: int) -> list[tuple[float, float, float]]:
    """Return harmonic, sine and cosine of the torque ripple at one joint, see `RippleLine`."""
    return [(n, s, c) for n, s, c in model.ripple[body].tolist() if n and (s or c)]


def _sprung(model: Model, q: Any) -> Any:
    """Yield every body whose joint has a spring or ripple, and the position of this joint."""
    for i in np.flatnonzero(model.spring.any(axis=1) | model.ripple.any(axis=(1, 2))).tolist():
        coordinates = q[1:] if model.floating else q  # a pose has seven numbers, a twist six
        yield i, sparse_dot(model.row[i], coordinates) + float(model.offset[i])


def armature_torque(model: Model, qdd: Any) -> Any:
    """Reflected rotor inertia of the motors without a spin axis, shape (n,) (Kolyubin 5.6)."""
    total: list[Any] = [0.0] * model.n
    for i in np.flatnonzero(np.isnan(model.spin_axis[:, 0])):
        if model.armature[i]:
            torque = model.armature[i] * sparse_dot(model.motor_row[i], qdd)
            for k in np.flatnonzero(model.motor_row[i]):
                total[k] = total[k] + model.motor_row[i, k] * torque
    return np.array(total)


def armature_matrix(model: Model) -> Any:
    """The constant matrix of `armature_torque`, shape (n, n)."""
    plain = np.isnan(model.spin_axis[:, 0])
    rows = model.motor_row[plain]
    return rows.T @ (model.armature[plain, None] * rows)
