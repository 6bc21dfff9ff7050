"""Judges a robot description: what makes its dynamics wrong or doubtful."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from robodyn_ros.building import load_model
from robodyn_ros.description import Joint, Link
from robodyn_ros.dynamics import Dynamics, inertia_bounds
from robodyn_ros.model import Model

POSES = 2000  # random poses over the joint range
ROTOR_DOMINATES = 0.5  # of a joint's own inertia


@dataclass(frozen=True)
class Doubt:
    """One thing that makes the dynamics wrong or doubtful.

    Attributes
    ----------
    severity : str
        ``fault``: the dynamics are wrong; ``warning``: they may be.
    where : str
        Link or joint.
    text : str
        What, with numbers and what would be right.
    """

    severity: str
    where: str
    text: str


@dataclass
class CheckReport:
    """What `check_robot` found.

    Attributes
    ----------
    verdict : str
        ``good``, ``doubtful`` (warnings) or ``faulty``.
    links, joints : list of dict
        Facts, SI units.
    robot : dict
        Totals.
    doubts : list of Doubt
        Worst first.
    """

    name: str
    robot: dict[str, Any]
    links: list[dict[str, Any]]
    joints: list[dict[str, Any]]
    tree: str
    doubts: list[Doubt] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        """The worst of the doubts."""
        severities = {doubt.severity for doubt in self.doubts}
        return 'faulty' if 'fault' in severities else 'doubtful' if severities else 'good'

    @property
    def exit_code(self) -> int:
        """1 where the description is faulty, else 0."""
        return int(self.verdict == 'faulty')

    def to_json(self) -> str:
        """The report as JSON; what is infinite or unknown is null."""
        return json.dumps(_plain({**asdict(self), 'verdict': self.verdict}), indent=2)

    def to_text(self) -> str:
        """The report for a terminal."""
        lines = [f'{self.name}: {self.verdict}', '']
        lines += [f'  {doubt.severity.upper():7} {doubt.where}: {doubt.text}'
                  for doubt in self.doubts]
        lines += ['', *(f'  {key:28} {_shown(value)}' for key, value in self.robot.items()), '',
                  self.tree, '', _table(self.links), '', _table(self.joints)]
        return '\n'.join(lines)


def check_robot(source: str | Path, *, motors: str | Path | None = None,
                xacro_arguments: Mapping[str, str] | None = None) -> CheckReport:
    """Judge a robot description.

    Parameters
    ----------
    source, motors, xacro_arguments
        As `load_model` takes them.

    Raises
    ------
    RobodynError
        The description cannot be used at all.
    """
    model = load_model(source, motors=motors, xacro_arguments=xacro_arguments)
    doubts: list[Doubt] = []
    carried = {joint.child: joint for joint in model.description.joints}
    links = [_check_link(link, model, carried.get(link.name), doubts)
             for link in model.description.links]
    robot, effort = _check_dynamics(model, doubts)
    joints = [_check_joint(joint, model, effort, doubts) for joint in model.description.joints
              if joint.type != 'fixed']
    for finding in model.findings:
        if not finding.used and not finding.reason.startswith('overridden'):
            doubts.append(Doubt('warning', finding.joint, f'{finding.quantity} '
                                f'{finding.value} from {finding.source} is ignored: '
                                f'{finding.reason}'))
    doubts.sort(key=lambda doubt: doubt.severity)
    return CheckReport(model.name, robot, links, joints, _tree(model), doubts)


def _check_link(link: Link, model: Model, joint: Joint | None,
                doubts: list[Doubt]) -> dict[str, Any]:
    where = f'link {link.name}'
    facts: dict[str, Any] = {'link': link.name, 'mass': 0.0, 'com': None, 'moments': None}
    if link.inertial is None:
        alone = joint is not None and joint.type != 'fixed'
        body = model.link_frames[link.name].body
        if alone and body >= 0 and model.rigid[body, 6] == 0:
            doubts.append(Doubt('warning', where, 'it moves and has no <inertial>: it is '
                                'weightless; valid: <inertial> with <mass> and <inertia>'))
        return facts
    inertial = link.inertial
    moments = np.linalg.eigvalsh(inertial.inertia)
    facts.update(mass=inertial.mass, com=inertial.com.tolist(), moments=moments.tolist())
    size = float(moments[2])
    if moments[0] < -1e-9 * max(abs(size), 1e-12):
        doubts.append(Doubt('fault', where, f'principal moments {_shown(moments)}: one is '
                            'negative, no body has that'))
    elif moments[2] > (moments[0] + moments[1]) * (1 + 1e-3) + 1e-12:
        doubts.append(Doubt('fault', where, f'principal moments {_shown(moments)} break the '
                            'triangle inequality: each is at most the sum of the other two'))
    elif inertial.mass > 0 and size == 0:
        doubts.append(Doubt('warning', where, f'{inertial.mass} kg and no inertia: a point'))
    if inertial.mass == 0 and size > 0:
        doubts.append(Doubt('fault', where, 'an inertia without a mass'))
    elif inertial.mass > 0:
        gyration = float(np.sqrt(max(size, 0.0) / inertial.mass))
        facts['gyration'] = gyration
        if gyration > 2.0:
            doubts.append(Doubt('warning', where, f'radius of gyration {gyration:.2f} m: are the '
                                'units kg m^2?'))
        if float(np.linalg.norm(inertial.com)) > 2.0:
            doubts.append(Doubt('warning', where, 'its centre of mass lies '
                                f'{np.linalg.norm(inertial.com):.2f} m from its frame'))
    if joint is None and inertial.mass > 0:
        facts['note'] = 'root: moves nothing'
    return facts


def _check_joint(joint: Joint, model: Model, effort: dict[str, tuple[float, float]],
                 doubts: list[Doubt]) -> dict[str, Any]:
    where = f'joint {joint.name}'
    facts: dict[str, Any] = {
        'joint': joint.name, 'type': joint.type, 'lower': joint.lower, 'upper': joint.upper,
        'velocity': joint.velocity, 'effort': joint.effort, 'damping': joint.damping,
        'friction': joint.friction}
    if joint.mimic is not None:
        facts['mimics'] = joint.mimic.joint
        return facts
    i = model.body_joints.index(joint.name)
    facts['armature'] = float(model.armature[i])
    needed, own = effort[joint.name]
    facts['gravity'] = needed
    if needed > joint.effort:
        doubts.append(Doubt('warning', where, f'gravity needs up to {needed:.3g} in its range, '
                            f'its effort limit is {joint.effort:g}: it cannot hold itself up '
                            'everywhere'))
    if not np.isfinite(joint.effort):
        doubts.append(Doubt('warning', where, 'no effort limit: torques are not limited'))
    share = float(model.armature[i]) / own if own > 0 else 0.0
    facts['rotor_share'] = share
    if own < 1e-9:
        doubts.append(Doubt('fault', where, 'moves no inertia: forward dynamics are undefined'))
    return facts


def _check_dynamics(model: Model, doubts: list[Doubt],
                    ) -> tuple[dict[str, Any], dict[str, tuple[float, float]]]:
    """Facts of the whole robot; and for each joint its largest gravity torque and its inertia."""
    dynamics = Dynamics(model)
    rng = np.random.default_rng(0)
    lower = np.where(np.isfinite(model.lower), model.lower, -np.pi)
    upper = np.where(np.isfinite(model.upper), model.upper, np.pi)
    q = rng.uniform(lower, upper, (POSES, model.n))
    gravity = np.abs(dynamics.gravity(q)).max(axis=0)
    mass = dynamics.mass_matrix(q)
    diagonal = np.median(np.diagonal(mass, axis1=1, axis2=2), axis=0)
    bounds = inertia_bounds(model, samples=500, refinements=6)
    values = np.linalg.eigvalsh(mass)
    if bounds.lambda_min <= 0:
        doubts.append(Doubt('fault', 'robot', 'its mass matrix is not positive definite: '
                            f'smallest eigenvalue {bounds.lambda_min:.3g}'))
    tips = [link for link, frame in model.link_frames.items() if frame.body >= 0]
    reach = max(float(np.linalg.norm(dynamics.pose(q[:200], tip)[:, :3, 3], axis=1).max())
                for tip in tips[-12:])
    total = sum(link.inertial.mass for link in model.description.links if link.inertial)
    with np.errstate(divide='ignore', invalid='ignore'):
        condition = float(np.median(values[:, -1] / values[:, 0]))
    dominated = [name for k, name in enumerate(model.joint_names) if diagonal[k] > 0 and
                 model.armature[model.body_joints.index(name)] > ROTOR_DOMINATES * diagonal[k]]
    facts = {'joints that move': model.n, 'total mass, kg': total, 'reach, m': reach,
             'smallest eigenvalue of M': bounds.lambda_min,
             'largest eigenvalue of M': bounds.lambda_max, 'condition of M, median': condition,
             'dominated by their rotors': dominated}
    return facts, {name: (float(gravity[k]), float(diagonal[k]))
                   for k, name in enumerate(model.joint_names)}


def _tree(model: Model) -> str:
    children: dict[str, list[Joint]] = {}
    for joint in model.description.joints:
        children.setdefault(joint.parent, []).append(joint)
    roots = {link.name for link in model.description.links} - {
        joint.child for joint in model.description.joints}
    lines, stack = [], [(root, '', 0) for root in roots]
    while stack:
        link, by, depth = stack.pop()
        lines.append('  ' * (depth + 1) + link + by)
        for joint in reversed(children.get(link, [])):
            stack.append((joint.child, f'  ({joint.name}, {joint.type})', depth + 1))
    return '\n'.join(lines)


def _table(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return ''
    columns = list(dict.fromkeys(key for row in rows for key in row))
    cells = [columns] + [[_shown(row.get(key)) for key in columns] for row in rows]
    widths = [max(len(line[k]) for line in cells) for k in range(len(columns))]
    return '\n'.join('  ' + '  '.join(text.ljust(width) for text, width in zip(
        line, widths, strict=True)).rstrip() for line in cells)


def _shown(value: Any) -> str:
    if value is None:
        return '-'
    if isinstance(value, float):
        return f'{value:.4g}'
    if isinstance(value, (list, tuple, np.ndarray)):
        return ' '.join(_shown(entry) for entry in value) or 'none'
    return str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value
