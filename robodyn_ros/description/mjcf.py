"""Reads MJCF, the format of MuJoCo, into a `RobotDescription`.

MuJoCo's own compiler reads the file, so that defaults, included files, inertias from geometry,
units and frames are what MuJoCo makes of them. The compiled model is then converted body by body.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from robodyn_ros.description.robot import (
    APART,
    BALL_IS_HINGES,
    Cut,
    Finding,
    Friction,
    Joint,
    Link,
    Mimic,
    Motor,
    RobotDescription,
)
from robodyn_ros.description.spring import SpringTorque
from robodyn_ros.description.tree import check_mimics
from robodyn_ros.description.xml import NO_LIMIT
from robodyn_ros.errors import DescriptionError
from robodyn_ros.packages import package
from robodyn_ros.spatial import Array, Inertial, axis_rotation, rotation_from_quaternion

WORLD = 'world'
FREE, BALL, SLIDE, HINGE = range(4)  # mjtJoint
CONNECT, WELD, JOINT_EQUALITY = range(3)  # mjtEq
GRAVITY_OFF = 1 << 7  # mjDSBL_GRAVITY
AT_JOINTS = (0, 1)  # mjtTrn: JOINT, JOINTINPARENT


def read_mjcf(source: str | bytes | Path) -> RobotDescription:
    """Read a robot from an MJCF file, or from its text.

    Parameters
    ----------
    source : str, bytes or Path
        A path, beside which the files are found that the model includes, or the text (bytes).

    Raises
    ------
    DescriptionError
        MuJoCo cannot compile the model, or it is not one robot of hinges, slides and ball
        joints.
    MissingPackageError
        MuJoCo is not installed.
    """
    mujoco = package('mujoco')
    try:
        if isinstance(source, bytes):
            compiled = mujoco.MjModel.from_xml_string(source.decode('utf-8-sig'))
        else:
            compiled = mujoco.MjModel.from_xml_path(str(Path(source).expanduser()))
    except (ValueError, mujoco.FatalError) as error:
        raise DescriptionError(f'MuJoCo cannot compile it: {str(error)[:300]}', element='MJCF',
                               valid='a file that MuJoCo loads, beside its meshes') from None
    return _Reader(compiled, lambda kind, i: mujoco.mj_id2name(
        compiled, getattr(mujoco.mjtObj, f'mjOBJ_{kind}'), i)).description()


def cuts_of(compiled: Any) -> tuple[Cut, ...]:
    """Return the ``connect`` and ``weld`` constraints of a compiled model, of bodies or sites."""
    from mujoco import mjtObj

    def end(e: int, index: int, point: Array, turn: Array) -> tuple[str, Array, Array]:
        """Return the body of a constraint, and the frame that coincides, in the body's frame."""
        if compiled.eq_objtype[e] == mjtObj.mjOBJ_SITE:
            point, turn = compiled.site_pos[index], _rotation(compiled.site_quat[index])
            index = compiled.site_bodyid[index]
        return compiled.body(index).name or f'body_{index}', np.array(point), turn

    cuts = []
    for e in range(compiled.neq):
        if compiled.eq_type[e] not in (CONNECT, WELD) or not compiled.eq_active0[e]:
            continue
        data, turn, directions = compiled.eq_data[e], np.eye(3), np.zeros((1, 3))
        points = data[:3], data[3:6]
        if compiled.eq_type[e] == WELD:  # the second body's point comes first
            points, turn = (data[3:6], data[:3]), _rotation(data[6:10])
            directions = np.vstack([directions, APART * np.eye(3)[:2]])
        ends = [end(e, int(compiled.eq_obj1id[e]), points[0], turn),
                end(e, int(compiled.eq_obj2id[e]), points[1], np.eye(3))]
        cuts.append(Cut((ends[0][0], ends[1][0]), np.array([
            [point + axes @ way for _, point, axes in ends] for way in directions])))
    return tuple(cuts)


class _Reader:
    """Turns a compiled model into links and joints."""

    def __init__(self, compiled: Any, name_of: Callable[[str, int], str | None]):
        self.model, self._name_of = compiled, name_of
        self.links: list[Link] = []
        self.joints: list[Joint] = []
        self.findings: list[Finding] = []
        self.motors: dict[str, Motor] = {}
        self.springs: dict[str, SpringTorque] = {}
        self.link_friction: dict[str, Friction] = {}
        self._gears, self._efforts = self._actuators()

    def name(self, kind: str, i: int) -> str:
        """Return the name of an object, or one made of its kind and number."""
        return self._name_of(kind, i) or f'{kind.lower()}_{i}'

    def description(self) -> RobotDescription:
        """Return the robot."""
        m = self.model
        root, members, floating = self._robot()
        self.links.append(Link(WORLD if root == 0 else self.name('BODY', root), self._inertial(
            root)))
        for body in members:
            if body != root:
                self._add_body(body)
        mimics = self._mimics()
        joints = check_mimics(tuple(
            replace(joint, mimic=mimics[joint.name]) if joint.name in mimics else joint
            for joint in self.joints), self.findings)
        self._report_ignored()
        cuts = self._cuts()
        return RobotDescription(
            _model_name(m), tuple(self.links), joints,
            motors=self.motors, springs=self.springs,
            link_friction=self.link_friction, findings=tuple(self.findings), floating=floating,
            gravity=(0.0, 0.0, 0.0) if m.opt.disableflags & GRAVITY_OFF else tuple(
                map(float, m.opt.gravity)), cuts=cuts)

    def _cuts(self) -> tuple[Cut, ...]:
        """Return the constraints between links of the robot."""
        names = {link.name for link in self.links}
        cuts = cuts_of(self.model)
        for cut in cuts:
            for other in {*cut.links} - names:
                self.findings.append(Finding(
                    other, 'equality', ', '.join(cut.links), 'MJCF', False,
                    'this body is not a link of the robot: the constraint is ignored'))
        return tuple(cut for cut in cuts if names.issuperset(cut.links))

    def _robot(self) -> tuple[int, list[int], bool]:
        """Return the root body, the bodies of the robot, and whether the root floats."""
        m = self.model
        moving = sorted({int(m.body_rootid[m.jnt_bodyid[j]]) for j in range(m.njnt)})
        free = [int(m.jnt_bodyid[j]) for j in range(m.njnt) if m.jnt_type[j] == FREE]
        if not free:
            return 0, list(range(m.nbody)), False
        if len(moving) > 1:
            raise DescriptionError(
                f'it has {len(moving)} bodies that move independently of each other: '
                + ', '.join(self.name('BODY', body) for body in moving[:10]), element='MJCF',
                valid='one robot, without movable objects around it')
        root = free[0]
        still = [self.name('BODY', b) for b in range(1, m.nbody) if m.body_rootid[b] != root]
        if still:
            self.findings.append(Finding(self.name('BODY', root), 'environment', ', '.join(
                still[:20]), 'MJCF', False, 'these bodies do not move'))
        return root, [b for b in range(m.nbody) if m.body_rootid[b] == root], True

    def _add_body(self, body: int) -> None:
        """Add a body as a link, and its joints.

        A single joint at the body's origin moves the link itself. Otherwise each joint moves a
        massless link, and the body is fixed to the last one.
        """
        m, name = self.model, self.name('BODY', body)
        parent = int(m.body_parentid[body])
        above = WORLD if parent == 0 else self.name('BODY', parent)
        place, turn = np.array(m.body_pos[body]), _rotation(m.body_quat[body])
        first, count = int(m.body_jntadr[body]), int(m.body_jntnum[body])
        anchor = np.zeros(3)  # of the last joint, where the frame of its link is
        for j in range(first, first + count):
            joint, anchor_now = self.name('JOINT', j), np.array(m.jnt_pos[j])
            simple = count == 1 and not anchor_now.any()
            child = name if simple else f'{joint} frame'
            at = place + turn @ (anchor_now - anchor)
            if m.jnt_type[j] == BALL:
                self._add_ball(j, joint, above, child, at, turn)
            else:
                self.joints.append(self._joint(j, joint, above, child, at, turn))
            if not simple:
                self.links.append(Link(child, added=True))
            above, place, turn, anchor = child, np.zeros(3), np.eye(3), anchor_now
        self.links.append(Link(name, self._inertial(body)))
        if above != name:
            self.joints.append(Joint(f'{name} mount', 'fixed', above, name, place - anchor, turn,
                                     np.array([1.0, 0.0, 0.0])))

    def _add_ball(self, j: int, name: str, parent: str, child: str, place: Array,
                  turn: Array) -> None:
        """Add a ball joint as three hinges about the axes of its body, with links between them."""
        m, dof = self.model, int(self.model.jnt_dofadr[j])
        names = [f'{name}_{letter}' for letter in 'xyz']
        for hinge, axis, end in zip(names, np.eye(3), (*names[:2], child), strict=True):
            self.joints.append(Joint(hinge, 'continuous', parent, end, place, turn, axis))
            if end != child:
                self.links.append(Link(end, added=True))
            parent, place, turn = end, np.zeros(3), np.eye(3)
        self.findings.append(Finding(name, 'ball', ', '.join(names), 'MJCF', True, BALL_IS_HINGES))
        lost = {'range': m.jnt_limited[j], 'damping': m.dof_damping[dof],
                'frictionloss': m.dof_frictionloss[dof], 'armature': m.dof_armature[dof],
                'stiffness': m.jnt_stiffness[j]}
        left_out = [quantity for quantity, value in lost.items() if np.any(value)]
        if left_out:
            self.findings.append(Finding(name, 'ball', ', '.join(left_out), 'MJCF', False,
                                         'these act on the ball joint as a whole, not on hinges'))

    def _joint(self, j: int, name: str, parent: str, child: str, place: Array,
               turn: Array) -> Joint:
        m, kind, dof = self.model, int(self.model.jnt_type[j]), int(self.model.jnt_dofadr[j])
        if kind not in (SLIDE, HINGE):
            raise DescriptionError('is a free joint', element=f'joint {name!r}',
                                   valid='hinge, slide or ball; a free joint '
                                   'of the one body on which the robot is based')
        axis, home = np.array(m.jnt_axis[j]), float(m.qpos0[m.jnt_qposadr[j]])
        if kind == SLIDE:
            place = place - turn @ axis * home
        elif home:
            turn = turn @ axis_rotation(axis, -home)
        low, high = map(float, m.jnt_range[j]) if m.jnt_limited[j] else (-np.inf, np.inf)
        if m.dof_armature[dof] or self._gears[j] != 1.0:
            self.motors[name] = Motor(gear_ratio=self._gears[j],
                                      armature=float(m.dof_armature[dof]))
        if np.any(m.jnt_stiffness[j]):
            stiffness = float(np.ravel(m.jnt_stiffness[j])[0])
            self.springs[name] = SpringTorque(linear=stiffness)
            self.link_friction[name] = Friction(
                float(np.ravel(m.dof_damping[dof])[0]), float(m.dof_frictionloss[dof]),
                -stiffness * float(m.qpos_spring[m.jnt_qposadr[j]]))
            self.findings.append(Finding(name, 'spring', stiffness, 'MJCF', True))
        turning = 'revolute' if m.jnt_limited[j] else 'continuous'
        return Joint(name, 'prismatic' if kind == SLIDE else turning, parent, child, place,
                     turn, axis, low, high, effort=self._efforts[j],
                     damping=float(np.ravel(m.dof_damping[dof])[0]),
                     friction=float(m.dof_frictionloss[dof]))

    def _inertial(self, body: int) -> Inertial | None:
        m = self.model
        if body == 0 or not m.body_mass[body]:
            return None
        turn = _rotation(m.body_iquat[body])
        return Inertial(float(m.body_mass[body]), np.array(m.body_ipos[body]),
                        turn @ np.diag(m.body_inertia[body]) @ turn.T)

    def _actuators(self) -> tuple[list[float], list[float]]:
        """Return gear and effort limit of each joint."""
        m = self.model
        gears, efforts = [1.0] * m.njnt, [np.inf] * m.njnt
        # where controls and outputs of each actuator begin
        first, output = (getattr(m, f'actuator_{name}adr', range(m.nu))
                         for name in ('ctrl', 'out'))
        for a in range(len(m.actuator_trntype)):  # some have several controls since MuJoCo 4
            j = int(m.actuator_trnid[a, 0])
            if m.actuator_trntype[a] not in AT_JOINTS or m.jnt_type[j] not in (SLIDE, HINGE):
                continue
            gears[j] = float(m.actuator_gear[output[a], 0]) or 1.0
            force = np.inf
            if m.actuator_forcelimited[a]:
                force = float(np.abs(m.actuator_forcerange[a]).max())
            elif m.actuator_ctrllimited[first[a]] and m.actuator_biastype[a] == 0:  # a motor
                force = float(np.abs(m.actuator_ctrlrange[first[a]]).max()
                              * m.actuator_gainprm[a, 0])
            efforts[j] = min(efforts[j], force * abs(gears[j]))
        for j in range(m.njnt):
            if m.jnt_actfrclimited[j]:
                efforts[j] = min(efforts[j], float(np.abs(m.jnt_actfrcrange[j]).max()))
        return gears, [effort if 0 < effort < NO_LIMIT else np.inf for effort in efforts]

    def _mimics(self) -> dict[str, Mimic]:
        """Return the joints that an equality makes proportional to another."""
        m, mimics = self.model, {}
        for e in range(m.neq):
            if m.eq_type[e] != JOINT_EQUALITY or not m.eq_active0[e]:
                continue
            one, other = int(m.eq_obj1id[e]), int(m.eq_obj2id[e])
            data, name = m.eq_data[e], self.name('JOINT', one)
            if other < 0 or np.any(data[2:5]):
                self.findings.append(Finding(name, 'equality', self.name('EQUALITY', e), 'MJCF',
                                             False, 'only linear relations of two joints are '
                                             'kept; this joint moves on its own'))
                continue
            home = [float(m.qpos0[m.jnt_qposadr[j]]) for j in (one, other)]
            mimics[name] = Mimic(self.name('JOINT', other), float(data[1]),
                                 home[0] + float(data[0]) - float(data[1]) * home[1])
        return mimics

    def _report_ignored(self) -> None:
        m = self.model
        closed = [self.name('EQUALITY', e) for e in range(m.neq) if m.eq_type[e] in (
            CONNECT, WELD) and m.eq_active0[e]]
        if closed:
            self.findings.append(Finding(WORLD, 'equality', ', '.join(closed[:20]), 'MJCF', True,
                                         'these close loops: Dynamics leaves them open, '
                                         'ClosedLoopDynamics closes them'))
        if m.nflex:
            self.findings.append(Finding(WORLD, 'flexes', int(m.nflex), 'MJCF', False,
                                         'bodies do not deform'))
        if m.ntendon:
            self.findings.append(Finding(WORLD, 'tendons', int(m.ntendon), 'MJCF', False,
                                         'tendons are not part of the dynamics'))
        held = [self.name('BODY', b) for b in range(m.nbody) if m.body_gravcomp[b]]
        if held:
            self.findings.append(Finding(WORLD, 'gravcomp', ', '.join(held[:20]), 'MJCF', False,
                                         'gravity acts on all bodies'))


def _rotation(quaternion: Any) -> Array:
    """Return the rotation matrix of a quaternion w x y z."""
    return rotation_from_quaternion(np.roll(quaternion, -1))


def _model_name(compiled: Any) -> str:
    """Return the name of the model, which begins the table of all names."""
    return bytes(compiled.names).split(b'\0', 1)[0].decode('utf-8', 'replace') or 'robot'
