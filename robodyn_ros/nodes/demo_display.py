"""What the demo shows: the latest values on the topics, and the comparison of the control laws."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from rclpy.serialization import deserialize_message
from rich.console import Group
from rich.table import Table
from sensor_msgs.msg import JointState

from robodyn_interfaces.msg import DynamicsTerms
from robodyn_ros.excitation import Excitation
from robodyn_ros.model import Model
from robodyn_ros.nodes.stamps import nanoseconds

LAWS = {'pd': 'PD', 'pd_gravity': 'PD + gravity', 'feedforward_pd': 'PD + whole model'}
WIDE = 110  # columns of a terminal that shows every term
TOLERANCE = 1e-9  # largest error of a published term, relative to the term's largest value
HEARD = {'/joint_states': JointState, '/simulator/torque': JointState,
         '/dynamics/terms': DynamicsTerms}


@dataclass(eq=False)
class Track:
    """The motion under one law: time from its start (s), measured and wanted positions, torque.

    ``frame`` is what the terminal showed in the middle of the motion.
    """

    law: str
    t: Any
    q: Any
    wanted: Any
    torque: Any
    frame: Any

    @property
    def error(self) -> Any:
        """Root mean square of each joint, rad or m."""
        return np.sqrt(np.mean(np.square(self.q - self.wanted), axis=0))


@dataclass(eq=False)
class Received:
    """Received messages, serialised."""

    messages: dict[str, list[bytes]] = field(default_factory=lambda: {t: [] for t in HEARD})

    def latest(self, topic: str) -> Any:
        """The last message of a topic, or None."""
        raw = self.messages[topic]
        return deserialize_message(raw[-1], HEARD[topic]) if raw else None


def table(title: str, heard: Received, motion: Excitation, start: int, elapsed: float,
          model: Model, width: int) -> Group:
    """Show the latest values on the topics; a narrow terminal leaves out three columns."""
    state, terms = heard.latest('/joint_states'), heard.latest('/dynamics/terms')
    wide = width >= WIDE
    columns = ['joint', *(('wanted',) if wide else ()), 'position', 'error', 'torque', 'gravity',
               *(('Coriolis', 'diag M') if wide else ())]
    rows = Table(title=f'{model.name}, {title}', expand=True)
    for column in columns:
        rows.add_column(column, justify='left' if column == 'joint' else 'right', no_wrap=True)
    if state is not None and terms is not None:
        wanted = motion.at((nanoseconds(state.header.stamp) - start) * 1e-9).q
        for i, joint in enumerate(model.joint_names):
            values = {'wanted': wanted[i], 'position': state.position[i],
                      'error': state.position[i] - wanted[i], 'torque': state.effort[i],
                      'gravity': terms.gravity[i], 'Coriolis': terms.coriolis[i],
                      'diag M': terms.mass_matrix[i * (model.n + 1)]}
            rows.add_row(joint, *(f'{values[column]:+9.4f}' for column in columns[1:]))
    rates = '  '.join(f'{topic} {len(messages) / max(elapsed, 1e-3):.0f} Hz'
                       for topic, messages in heard.messages.items())
    return Group(rows, f'{elapsed:4.1f} s  {rates}',
                 'units: rad, N m, kg m^2; for prismatic joints m, N, kg')


def overall(model: Model, track: Track) -> tuple[float, str]:
    """Return the root mean square over revolute joints (rad) or, if there are none, all (m)."""
    turns = np.array([not model.prismatic[model.body_joints.index(name)]
                      for name in model.joint_names])
    some = turns if turns.any() else ~turns
    return (float(np.sqrt(np.mean(np.square(track.error[some])))),
            'revolute joints' if turns.any() and not turns.all() else 'all joints')


def summary(model: Model, tracks: list[Track], wrong: float) -> Group:
    """Compare the laws joint by joint."""
    rows = Table(title='tracking error, root mean square, equal gains; rad (m); ratio to PD')
    for column in ('joint', *LAWS.values(), 'ratio'):
        rows.add_column(column, justify='left' if column == 'joint' else 'right',
                        overflow='fold')
    for k, joint in enumerate(model.joint_names):
        errors = [track.error[k] for track in tracks]
        rows.add_row(joint, *(f'{error:.6f}' for error in errors),
                      f'1 : {errors[0] / max(errors[-1], 1e-12):.0f}')
    totals = [overall(model, track)[0] for track in tracks]
    rows.add_row(overall(model, tracks[0])[1], *(f'{error:.6f}' for error in totals),
                  f'[bold green]1 : {totals[0] / max(totals[-1], 1e-12):.0f}', end_section=True)
    colour = 'green' if wrong <= TOLERANCE else 'red'
    return Group(rows, f'[{colour}]/dynamics/terms agrees with the Python library to {wrong:.1e}')
