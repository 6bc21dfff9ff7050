"""The robots of the campaign on running nodes: one of each structure."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from robots import planar_2r

import robodyn_ros as rd
from robodyn_ros.control.tuning import MODES

ROOT = Path(__file__).parents[2]
ROBOTS = ROOT / 'config/robots'


@dataclass(frozen=True)
class Robot:
    """A robot and what the nodes know about it."""

    structure: str
    text: str
    names: tuple[str, ...]
    q: np.ndarray
    limit: np.ndarray  # N m
    link: str  # that takes a payload
    options: tuple[str, ...]
    motors: str = ''  # text

    @property
    def modes(self):
        """Control modes that it can have."""
        return [m for m in MODES if m != 'elastic_feedforward_pd' or self.structure == 'elastic']

    def heavier(self, mass):
        """The description of a robot with the same joints and another mass."""
        return planar_2r(m1=mass) if self.structure == 'tree' else self.text


def robot_of(structure):
    """The robot of a structure: tree, elastic or loops."""
    if structure == 'tree':
        text, options = planar_2r(), ('gravity:=[0.0, -9.81, 0.0]',)
        motors, link, names, limit = '', 'lower', ('j1', 'j2'), (100.0, 100.0)
        q = (0.3, -0.4)
    elif structure == 'elastic':
        file = ROBOTS / 'flexible_2r_motors.yaml'
        text = rd.load_model(ROOT / 'urdf/flexible_2r.urdf.xacro').description.urdf
        options, motors = (f'motors_file:={file}',), file.read_text()
        link, names, limit, q = 'tip', ('joint1', 'joint2'), (100.0, 100.0), (0.3, -0.4)
    else:
        text = rd.load_model(ROOT / 'urdf/palletiser.urdf.xacro').description.urdf
        options, motors = (f'loops_file:={ROBOTS / "palletiser_loops.yaml"}',), ''
        link, names = 'tip', ('turn', 'shoulder', 'lift', 'wrist')
        limit, q = (900.0, 1500.0, 1200.0, 60.0), (0.2, 0.1, -0.1, 0.3)
    return Robot(structure, text, names, np.array(q), np.array(limit), link, options, motors)
