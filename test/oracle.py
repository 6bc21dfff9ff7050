"""Pinocchio as an oracle, with arrays in the joint order of a robodyn model."""

from __future__ import annotations

import numpy as np
import pinocchio as pin


class Oracle:
    """The same robot in Pinocchio: fixed base, the same mimic joints."""

    def __init__(self, model, urdf_text):
        self._take(model, pin.buildModelFromXML(urdf_text))

    def _take(self, model, robot, base=0):
        """Use Pinocchio's model of a robot; ``base``: how many velocities its base has, 0 or 6."""
        self.model, self.pin = model, robot
        self.pin.gravity.linear = np.array(model.gravity)
        self.data = self.pin.createData()
        self.ids = [self.pin.getJointId(name) for name in model.body_joints]
        columns = [self.pin.joints[i].idx_v for i in self.ids]
        assert self.pin.nv == base + len(columns), (self.pin.nv, base, len(columns))
        # qd of Pinocchio's joints = constraint @ qd of the coordinates: mimic joints follow
        self.constraint = np.zeros((self.pin.nv, model.n))
        self.constraint[:base, :base] = np.eye(base)
        self.constraint[columns] = model.row

    @staticmethod
    def _set(pin_model, q, joint_id, value):
        joint = pin_model.joints[joint_id]
        if joint.nq == 2:
            q[joint.idx_q:joint.idx_q + 2] = np.cos(value), np.sin(value)
        else:
            q[joint.idx_q] = value

    def q(self, values):
        q = pin.neutral(self.pin)
        for i, joint_id in enumerate(self.ids):
            self._set(self.pin, q, joint_id, self.model.row[i] @ values + self.model.offset[i])
        return q

    def v(self, values):
        return self.constraint @ values

    def inverse_dynamics(self, q, qd, qdd):
        return self.constraint.T @ pin.rnea(self.pin, self.data, self.q(q), self.v(qd),
                                            self.v(qdd))

    def gravity(self, q):
        return self.inverse_dynamics(q, 0 * q, 0 * q)

    def coriolis(self, q, qd):
        return self.inverse_dynamics(q, qd, 0 * qd) - self.gravity(q)

    def mass_matrix(self, q):
        upper = np.triu(pin.crba(self.pin, self.data, self.q(q)))
        full = upper + np.triu(upper, 1).T
        return self.constraint.T @ full @ self.constraint

    def coriolis_matrix(self, q, qd):
        full = pin.computeCoriolisMatrix(self.pin, self.data, self.q(q), self.v(qd))
        return self.constraint.T @ full @ self.constraint

    def jacobian(self, q, link):
        frame = self.pin.getFrameId(link, pin.FrameType.BODY)
        pin.computeJointJacobians(self.pin, self.data, self.q(q))
        pin.updateFramePlacements(self.pin, self.data)
        return pin.getFrameJacobian(self.pin, self.data, frame,
                                    pin.LOCAL_WORLD_ALIGNED) @ self.constraint

    def pose(self, q, link):
        pin.framesForwardKinematics(self.pin, self.data, self.q(q))
        return self.data.oMf[self.pin.getFrameId(link, pin.FrameType.BODY)].homogeneous

    def drift(self, q, qd, link):
        pin.forwardKinematics(self.pin, self.data, self.q(q), self.v(qd), self.v(0 * qd))
        frame = self.pin.getFrameId(link, pin.FrameType.BODY)
        return pin.getFrameClassicalAcceleration(self.pin, self.data, frame,
                                                 pin.LOCAL_WORLD_ALIGNED).vector

    def constraints(self, q, qd, cuts):
        """Jacobian and drift of cuts, each two links and how many rows of six vanish, 3 or 6."""
        jacobian = np.vstack([(self.jacobian(q, a) - self.jacobian(q, b))[:rows]
                              for a, b, rows in cuts])
        drift = np.concatenate([(self.drift(q, qd, a) - self.drift(q, qd, b))[:rows]
                                for a, b, rows in cuts])
        return jacobian, drift

    def constrained(self, q, qd, tau, jacobian, drift, smallest=1e-8):
        """Accelerations of the tree, projected onto what constraints allow: Gauss' principle.

        Redundant constraints have no effect on it. Singular values below ``smallest`` times the
        largest one count as zero.
        """
        mass, force = self.mass_matrix(q), tau - self.inverse_dynamics(q, qd, 0 * qd)
        _, values, rows = np.linalg.svd(jacobian)
        free = rows[int((values > smallest * values[0]).sum()):].T
        fixed = -np.linalg.pinv(jacobian, rcond=smallest) @ drift
        return fixed + free @ np.linalg.solve(free.T @ mass @ free,
                                              free.T @ (force - mass @ fixed))

    def energy(self, q, qd):
        return (pin.computeKineticEnergy(self.pin, self.data, self.q(q), self.v(qd)),
                pin.computePotentialEnergy(self.pin, self.data, self.q(q)))


class FreeFlyer(Oracle):
    """The same with a free-flyer: q begins with the base's pose, velocities with its twist."""

    def __init__(self, model, text):
        self._take(model, pin.buildModelFromXML(text, pin.JointModelFreeFlyer()), base=6)

    def q(self, values):
        q = pin.neutral(self.pin)
        q[:7] = values[:7]
        for joint_id, row, offset in zip(self.ids, self.model.row, self.model.offset, strict=True):
            self._set(self.pin, q, joint_id, row[6:] @ values[7:] + offset)
        return q
