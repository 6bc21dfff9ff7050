"""Robots for the tests, and shorthand for writing small URDFs."""

from __future__ import annotations

import re

import numpy as np

from robodyn_ros.description.examples import PANDA, example_robots

ROBOTS = example_robots()
PANDA_URDF = ROBOTS / PANDA
UR10_URDF = ROBOTS / 'ur_description/urdf/ur10_robot.urdf'
KINOVA_URDF = ROBOTS / 'kinova_description/robots/kinova.urdf'
TIAGO_URDF = ROBOTS / 'tiago_description/robots/tiago_no_hand.urdf'
TALOS_URDF = ROBOTS / 'talos_data/robots/talos_reduced.urdf'


def link(name, mass=None, com=(0, 0, 0), inertia=(0, 0, 0, 0, 0, 0), extra=''):
    if mass is None:
        return f'<link name="{name}">{extra}</link>'
    names = ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')
    entries = ' '.join(f'{n}="{v!r}"' for n, v in zip(names, map(float, inertia), strict=True))
    return (f'<link name="{name}"><inertial><origin xyz="{_vector(com)}"/><mass value="{mass}"/>'
            f'<inertia {entries}/></inertial>{extra}</link>')


def joint(name, kind, parent, child, xyz=(0, 0, 0), rpy=(0, 0, 0), axis=(0, 0, 1), extra=''):
    return (f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
            f'<origin xyz="{_vector(xyz)}" rpy="{_vector(rpy)}"/><axis xyz="{_vector(axis)}"/>'
            f'<limit lower="-3" upper="3" velocity="5" effort="100"/>{extra}</joint>')


def robot(*parts):
    return '<robot name="test">' + ''.join(parts) + '</robot>'


def _vector(values):
    return ' '.join(repr(float(v)) for v in values)


def planar_2r(m1=2.0, m2=1.5, a1=0.7, l1=0.3, l2=0.25, i1=0.05, i2=0.03):
    """Turns in the x-y plane about z; use gravity (0, -g, 0)."""
    return robot(
        link('base'), link('upper', m1, (l1, 0, 0), (0.01, 0, 0, i1, 0, i1)),
        link('lower', m2, (l2, 0, 0), (0.01, 0, 0, i2, 0, i2)),
        joint('j1', 'revolute', 'base', 'upper'),
        joint('j2', 'revolute', 'upper', 'lower', (a1, 0, 0)))


def random_inertia(rng):
    """Inertia tensor of a random body."""
    cloud = rng.normal(size=(8, 3)) * 0.2
    tensor = sum(np.dot(r, r) * np.eye(3) - np.outer(r, r) for r in cloud)
    return tensor[np.triu_indices(3)]


def random_robot(seed, joints=6):
    """Branches, fixed joints, mimics, prismatic joints, any axes and frames."""
    rng = np.random.default_rng(seed)
    parts, names, movers = [link('l0', 1.0, (0.1, 0, 0), random_inertia(rng))], ['l0'], []
    for i in range(1, joints + 1):
        kind = str(rng.choice(['revolute', 'continuous', 'prismatic', 'fixed'],
                              p=[0.5, 0.15, 0.2, 0.15] if i > 1 else [1, 0, 0, 0]))
        extra = ''
        if kind != 'fixed':
            if movers and rng.random() < 0.2:
                extra = (f'<mimic joint="{rng.choice(movers)}" multiplier="{rng.normal()}" '
                         f'offset="{rng.normal()}"/>')
            else:
                movers.append(f'j{i}')
            extra += f'<dynamics damping="{rng.random()}" friction="{rng.random()}"/>'
        aligned = rng.random() < 0.4
        axis = np.eye(3)[rng.integers(3)] if aligned else rng.normal(size=3)
        rpy = rng.choice([0, np.pi / 2, np.pi], 3) if aligned else rng.normal(size=3)
        parts.append(link(f'l{i}', rng.uniform(0.5, 3), rng.normal(size=3) * 0.2,
                          random_inertia(rng)))
        parts.append(joint(f'j{i}', kind, str(rng.choice(names[-2:])), f'l{i}',
                           rng.normal(size=3) * 0.4, rpy, axis / np.linalg.norm(axis), extra))
        names.append(f'l{i}')
    return robot(*parts)


# Joints of these hands mimic 'index_q1'; it is called Left_index_q1 and Right_index_q1.
BROKEN_MIMICS = 'alex_description/urdf/alex_psyonic_hands.urdf'


def text_of(name):
    """Text of a robot of example-robot-data, corrected where it cannot be loaded."""
    text = (ROBOTS / name).read_text()
    if name == BROKEN_MIMICS:
        text = re.sub(r'(<joint name="(Left|Right)_(?:(?!</joint>).)*?<mimic joint = ")',
                      r'\1\2_', text, flags=re.S)
    return text
