"""Robots with closed loops against Pinocchio: forward dynamics of all joints in random states.

    python benchmarks/parallel_robots.py FOLDER     # the folder `robots` of Gepetto's public
                                                    # example-parallel-robots, see its licence

Each folder has a `robot.urdf`, and a `robot.yaml` with pairs of frames that coincide and the
motors. Ball and universal joints that it asks for replace joints of the URDF for both libraries.
The oracle is Gauss' principle with Pinocchio's mass matrix, bias and constraint Jacobians, whose
rank may be deficient; beside it stands the difference from Pinocchio's `constraintDynamics`.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin
import yaml

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / 'test'))

from oracle import Oracle  # noqa: E402

import robodyn_ros as rd  # noqa: E402

STATES, STEP = 5, 0.05  # random states, and the range of the independent joints, rad
# the URDF of disney_robot spells the joint that its robot.yaml makes a ball joint in another way
MISSPELT = {'left_s\u0125erical_free_foot': 'left_spherical_free_foot'}
AXES = {'X': '1 0 0', 'Y': '0 1 0', 'Z': '0 0 1'}


def read(folder: Path) -> tuple[str, dict[str, Any], dict[str, float]]:
    """Return the URDF with the joints that the file asks for, its loops and joints to hold."""
    file = folder / 'robot.urdf'
    try:
        root = ElementTree.parse(file).getroot()
    except ElementTree.ParseError as error:
        raise ValueError(f'{file} is not XML: {error}') from error
    for tag in ('visual', 'collision'):
        for link in root.iter('link'):
            for one in link.findall(tag):
                link.remove(one)
    loops = yaml.safe_load((folder / 'robot.yaml').read_text())
    kinds = dict(zip(loops.pop('joint_name', ()), loops.pop('joint_type', ()), strict=True))
    for joint in root.iter('joint'):
        joint.set('name', MISSPELT.get(joint.get('name', ''), joint.get('name', '')))
    unknown = kinds.keys() - {joint.get('name') for joint in root.iter('joint')}
    if unknown:
        raise ValueError(f'robot.yaml gives the kind of {sorted(unknown)}, which the URDF lacks')
    held = {name: 0.0 for name, kind in kinds.items() if kind == 'FIXED'}
    for name, kind in kinds.items():
        axes = 'XYZ' if kind == 'SPHERICAL' else kind.removeprefix('UJOINT_') * (kind != 'FIXED')
        if axes:
            split(root, name, axes)
    return ElementTree.tostring(root, 'unicode'), loops, held


def split(root: ElementTree.Element, name: str, axes: str) -> None:
    """Replace a joint by several revolute ones about given axes, with links without mass."""
    joint = next(one for one in root.iter('joint') if one.get('name') == name)
    parent, child = joint.find('parent'), joint.find('child')
    assert parent is not None and child is not None
    for tag in ('axis', 'limit'):
        for one in joint.findall(tag):
            joint.remove(one)
    last = child.get('link', '')
    for k, axis in enumerate(axes):
        one = joint
        if k:
            one = ElementTree.SubElement(root, 'joint', name=f'{name}_{axis}')
            ElementTree.SubElement(one, 'parent', link=f'{name}_after_{k - 1}')
        one.set('type', 'continuous')
        ElementTree.SubElement(one, 'axis', xyz=AXES[axis])
        target = last if k == len(axes) - 1 else f'{name}_after_{k}'
        if k:
            ElementTree.SubElement(one, 'child', link=target)
        else:
            child.set('link', target)
        if target != last:
            ElementTree.SubElement(root, 'link', name=target)


class LoopOracle(Oracle):
    """Pinocchio's constrained dynamics of the same tree."""

    def __init__(self, robot: rd.ClosedLoopDynamics, urdf: str, held: dict[str, float]):
        model = pin.buildModelFromXML(urdf)
        if held:
            model = pin.buildReducedModel(model, [model.getJointId(name) for name in held],
                                          pin.neutral(model))
        self._take(robot.model, model)
        self.cuts = robot.cuts

    def gauss(self, q: np.ndarray, qd: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """Accelerations by Gauss' principle."""
        jacobian, drift = self.constraints(q, qd, [
            (*cut.links, 3 if len(cut.points) == 1 else 6) for cut in self.cuts])
        return self.constrained(q, qd, tau, jacobian, drift, smallest=1e-7)

    def constraint_dynamics(self, q: np.ndarray, qd: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """Accelerations of Pinocchio's proximal solver."""
        model, constraints = self.pin, pin.StdVec_RigidConstraintModel()
        for cut in self.cuts:
            one, other = (model.frames[model.getFrameId(link, pin.FrameType.BODY)]
                          for link in cut.links)
            kind = pin.ContactType.CONTACT_3D if len(cut.points) == 1 else (
                pin.ContactType.CONTACT_6D)
            constraints.append(pin.RigidConstraintModel(
                kind, model, one.parentJoint, one.placement, other.parentJoint, other.placement))
        data, datas = model.createData(), pin.StdVec_RigidConstraintData()
        for one in constraints:
            datas.append(one.createData())
        pin.initConstraintDynamics(model, data, constraints, datas)
        return self.constraint.T @ pin.constraintDynamics(
            model, data, self.q(q), self.v(qd), self.v(tau), constraints, datas,
            pin.ProximalSettings(1e-14, 1e-9, 200))


def closes(robot: rd.ClosedLoopDynamics, q: np.ndarray) -> bool:
    """Return whether the loops close in a state, away from singularities."""
    try:
        robot.motion_matrix(q)
    except rd.ValueRangeError:
        return False
    return True


def compare(folder: Path) -> str:
    """Return the row of one robot."""
    urdf, loops, held = read(folder)
    model = rd.load_model(urdf, locked_joints=held).without_friction()
    began = time.perf_counter()
    robot = rd.ClosedLoopDynamics(model, loops)
    rng, oracle = np.random.default_rng(0), LoopOracle(robot, urdf, held)
    free = [model.joint_names.index(name) for name in robot.joint_names]
    worst, proximal, step = 0.0, 0.0, STEP
    for _ in range(STATES):
        away = rng.uniform(-1, 1, robot.n)
        while not closes(robot, robot.home[free] + step * away):
            step /= 2
        q = robot.home[free] + step * away
        qd, tau = rng.normal(size=(2, robot.n))
        motion = robot.motion(q, qd)
        full = np.zeros(model.n)
        full[free] = tau
        found = motion.qdd(robot.forward_dynamics(q, qd, tau))
        for k, call in enumerate((oracle.gauss, oracle.constraint_dynamics)):
            expected = call(motion.q, motion.qd, full)
            error = float(np.abs(found - expected).max() / np.abs(expected).max())
            worst, proximal = (max(worst, error), proximal) if k == 0 else (
                worst, max(proximal, error))
    seconds = time.perf_counter() - began
    return (f'| {folder.name} | {model.n} | {robot.n} | {len(robot.driven_names)} '
            f'| {len(robot.cuts)} | {worst:.1e} | {proximal:.1e} | {seconds:.1f} |')


def main(folder: Path, wanted: list[str]) -> None:
    """Print a row for each robot."""
    print('| robot | joints | independent | driven | cuts | from Gauss | from constraintDynamics '
          '| s |\n|---|---|---|---|---|---|---|---|')
    for path in sorted(folder.iterdir()):
        if (path / 'robot.yaml').exists() and (path / 'robot.urdf').exists() and (
                not wanted or path.name in wanted):
            try:
                print(compare(path), flush=True)
            except (rd.RobodynError, np.linalg.LinAlgError, ValueError) as error:
                print(f'| {path.name} | {type(error).__name__}: {str(error)[:300]} |', flush=True)


if __name__ == '__main__':
    main(Path(sys.argv[1]), sys.argv[2:])
