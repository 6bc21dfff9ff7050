"""A slow, simple reference: Lagrange's closed form, link by link.

Reads the description itself, so that lumping, locking and frames are checked as well. Derivatives
are central differences.
"""

from __future__ import annotations

import numpy as np


def _turn(axis, angle):
    x, y, z = axis
    k = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * k + (1 - np.cos(angle)) * k @ k


class Lagrange:
    """M, C, g of a description; its rotors as bodies that spin on their carriers."""

    def __init__(self, model):
        self.model, self.description = model, model.description
        self.index = {name: i for i, name in enumerate(model.joint_names)}

    def positions(self, q):
        values = {}
        for joint in self.description.joints:
            if joint.type != 'fixed':
                name = joint.mimic.joint if joint.mimic else joint.name
                scale = joint.mimic.multiplier if joint.mimic else 1.0
                shift = joint.mimic.offset if joint.mimic else 0.0
                values[joint.name] = (scale * q[self.index[name]] + shift)
        return values

    def rates(self):
        """d(joint position) / dq as rows."""
        rows = {}
        for joint in self.description.joints:
            if joint.type != 'fixed':
                row = np.zeros(self.model.n)
                name = joint.mimic.joint if joint.mimic else joint.name
                row[self.index[name]] = joint.mimic.multiplier if joint.mimic else 1.0
                rows[joint.name] = row
        return rows

    def links(self, q):
        """Rotation, origin, linear and angular Jacobian of every link, in the root frame."""
        joints = {joint.child: joint for joint in self.description.joints}
        values, rows, done = self.positions(q), self.rates(), {}

        def visit(link):
            if link in done:
                return done[link]
            joint = joints.get(link)
            n = self.model.n
            if joint is None:
                done[link] = np.eye(3), np.zeros(3), np.zeros((3, n)), np.zeros((3, n))
                return done[link]
            rotation, origin, linear, angular = visit(joint.parent)
            shift = rotation @ joint.translation
            linear = linear + np.cross(angular.T, shift).T
            origin, rotation = origin + shift, rotation @ joint.rotation
            if joint.type != 'fixed':
                axis, position = rotation @ joint.axis, values[joint.name]
                row = rows[joint.name]
                if joint.type == 'prismatic':
                    linear = linear + np.cross(angular.T, axis * position).T + np.outer(axis, row)
                    origin = origin + axis * position
                else:
                    rotation = rotation @ _turn(joint.axis, position)
                    angular = angular + np.outer(axis, row)
            done[link] = rotation, origin, linear, angular
            return done[link]

        for link in self.description.links:
            visit(link.name)
        return done

    def mass_matrix(self, q):
        places, total = self.links(q), np.zeros((self.model.n, self.model.n))
        for link in self.description.links:
            if link.inertial is None:
                continue
            rotation, _, linear, angular = places[link.name]
            centre = rotation @ link.inertial.com
            jv = linear + np.cross(angular.T, centre).T
            inertia = rotation @ link.inertial.inertia @ rotation.T
            total += link.inertial.mass * jv.T @ jv + angular.T @ inertia @ angular
        return total + self.rotors(places)

    def rotors(self, places):
        """What the spinning of the rotors adds (they are in their carriers at rest already)."""
        rows, total = self.rates(), np.zeros((self.model.n, self.model.n))
        for joint in self.description.joints:
            motor = self.description.motors.get(joint.name)
            if motor is None or joint.type == 'fixed':
                continue
            ratio, spin = motor.gear_ratio, motor.gear_ratio * rows[joint.name]
            gears = self.description.gear_matrix
            if gears and joint.name in gears.joints:
                i = gears.joints.index(joint.name)
                ratio = gears.matrix[i, i]
                spin = sum(gears.matrix[i, k] * rows[name] for k, name in enumerate(gears.joints))
            inertia = (motor.rotor_inertia if motor.armature is None
                       else motor.armature / ratio**2)
            i = self.model.body_joints.index(joint.name)
            if np.isnan(self.model.spin_axis[i, 0]):
                total += inertia * np.outer(spin, spin)
                continue
            rotation, _, _, angular = places[motor.carrier or joint.parent]
            axis = motor.spin_axis if motor.spin_axis is not None else joint.rotation @ joint.axis
            carried = (rotation @ axis) @ angular
            total += inertia * (np.outer(carried + spin, carried + spin)
                                - np.outer(carried, carried))
        return total

    def potential(self, q):
        places, total = self.links(q), 0.0
        for link in self.description.links:
            if link.inertial is not None:
                rotation, origin, *_ = places[link.name]
                total -= link.inertial.mass * self.model.gravity @ (
                    origin + rotation @ link.inertial.com)
        return total

    def gravity(self, q, step=1e-6):
        return np.array([(self.potential(q + step * e) - self.potential(q - step * e)) / (2 * step)
                         for e in np.eye(self.model.n)])

    def coriolis_matrix(self, q, qd, step=1e-6):
        """Christoffel symbols of the first kind, term by term (Kolyubin 2.30)."""
        n = self.model.n
        d = np.array([(self.mass_matrix(q + step * e) - self.mass_matrix(q - step * e))
                      / (2 * step) for e in np.eye(n)])  # d[k] = dM / dq_k
        c = np.zeros((n, n))
        for k in range(n):
            for j in range(n):
                for i in range(n):
                    c[k, j] += 0.5 * (d[i][k, j] + d[j][k, i] - d[k][i, j]) * qd[i]
        return c
