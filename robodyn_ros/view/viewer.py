"""The page around a robot: sliders with live torques, the issues of its check."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from robodyn_ros.check import CheckReport, check_model
from robodyn_ros.dynamics import Dynamics
from robodyn_ros.errors import ValueRangeError
from robodyn_ros.excitation import Excitation
from robodyn_ros.model import Model
from robodyn_ros.spatial import Array
from robodyn_ros.view.playback import Playback
from robodyn_ros.view.scene import RobotScene
from robodyn_ros.view.server import PORT, opened

SMALLEST = 1e-9  # N m, N, kg m^2, kg; smaller values are round-off and shown as 0


class Viewer:
    """A robot on a page of a server, with controls.

    Parameters
    ----------
    server : viser.ViserServer
        The server.
    model : Model
        The robot.
    folders : iterable of Path
        Folders in which meshes are looked for.
    beside : Model, optional
        Another model of the same robot, drawn and computed beside the first.
    motion : Excitation, optional
        A motion to play.
    following : bool
        Whether the page shows a measured pose, so that the sliders cannot be moved.

    Attributes
    ----------
    playback : Playback or None
        The controls of the motion.
    """

    def __init__(self, server: Any, model: Model, folders: Iterable[Path] = (), *,
                 beside: Model | None = None, motion: Excitation | None = None,
                 following: bool = False):
        model = model.with_fixed_base()  # a floating base is drawn at the origin
        beside = None if beside is None else beside.with_fixed_base()
        self.model = model
        self.dynamics = Dynamics(model)
        self.other = None if beside is None else Dynamics(beside)
        self.report: CheckReport = check_model(model, folders=tuple(folders))
        server.scene.set_up_direction('+z')
        server.scene.add_grid('/ground', width=4.0, height=4.0)
        reach = float(self.report.robot['reach_m'])
        server.initial_camera.position = (reach, reach, 0.9 * reach)
        server.initial_camera.look_at = (0.0, 0.0, 0.4 * reach)
        self.scene = RobotScene(server.scene, model, folders, report=self.report, beside=beside)
        self._lock = threading.Lock()
        self._moving = False  # by the motion, not by a slider
        self.playback = None if motion is None else Playback(
            server.gui, self.scene, motion, tuple(folders), self.set_pose)
        self._add_controls(server.gui, following)
        self.refresh()

    @property
    def q(self) -> Array:
        """Positions that the sliders show, shape (n,)."""
        return np.array([slider.value for slider in self.sliders], np.float64)

    def set_pose(self, q: Array) -> None:
        """Move the robot and the sliders to a pose."""
        with self._lock:
            self._moving = True
            try:
                for slider, value in zip(self.sliders, q, strict=True):
                    slider.value = float(np.clip(value, slider.min, slider.max))
            finally:
                self._moving = False
        self.refresh()

    def refresh(self) -> None:
        """Draw the pose of the sliders, and write its torques and inertias."""
        q = self.q
        self.scene.move(q)
        self.table.content = self.torques(q)

    def torques(self, q: Array) -> str:
        """Return gravity and the diagonal of M at a pose, as a table."""
        columns = [('gravity', self.dynamics.gravity(q)),
                   ('M', np.diag(self.dynamics.mass_matrix(q)))]
        if self.other is not None:
            columns += [('gravity beside', self.other.gravity(q)),
                        ('M beside', np.diag(self.other.mass_matrix(q)))]
        lines = ['| joint | ' + ' | '.join(name for name, _ in columns) + ' |',
                 '|---' * (len(columns) + 1) + '|']
        lines += [f'| {joint} | ' + ' | '.join(_number(values[k]) for _, values in columns) + ' |'
                  for k, joint in enumerate(self.model.joint_names)]
        return '\n'.join(lines)

    def _add_controls(self, gui: Any, following: bool) -> None:
        gui.add_markdown(f'**{self.model.name}**: {self.report.verdict}')
        with gui.add_folder('Joints, rad or m'):
            lower, upper = self.model.joints.position_range()
            self.sliders = [gui.add_slider(name, min=float(low), max=float(max(high, low + 1e-3)),
                                           step=1e-3, disabled=following,
                                           initial_value=float(np.clip(0.0, low, high)))
                            for name, low, high in zip(self.model.joint_names, lower, upper,
                                                       strict=True)]
        for slider in self.sliders:
            slider.on_update(lambda _: None if self._moving else self.refresh())
        with gui.add_folder('Gravity, N m or N; diagonal of M, kg m\u00b2 or kg'):
            self.table = gui.add_markdown('')
        with gui.add_folder('Show'):
            shapes = gui.add_checkbox('geometry', True)
            shapes.on_update(lambda _: self.scene.show_shapes(shapes.value))
            inertials = gui.add_checkbox('inertia boxes and centres of mass', True)
            inertials.on_update(lambda _: self.scene.show_inertials(inertials.value))
        lines = [f'- {issue.severity}, {issue.where}: {issue.text}'
                 for issue in self.report.issues]
        lines += [f'- not drawn: {note}' for note in self.scene.notes]
        if lines:
            with gui.add_folder('What the check found'):
                gui.add_markdown('\n'.join(lines))


def _number(value: float) -> str:
    return '0' if abs(value) < SMALLEST else f'{value:.3g}'


def serve(model: Model, folders: Iterable[Path] = (), *, port: int = PORT,
          beside: Model | None = None, motion: Excitation | None = None,
          ready: Callable[[str], None] = print) -> None:
    """Show a robot in the browser until the program is interrupted.

    Parameters
    ----------
    model, folders, beside, motion
        See `Viewer`.
    port : int
        Port on the loopback interface.
    ready : callable
        Called with the address when the page can be opened.

    Raises
    ------
    ValueRangeError
        The port is out of range, or the motion or the other model has other joints.
    OutputError
        The port is in use.
    """
    for what, one in (('motion', motion), ('other model', beside)):
        if one is not None and tuple(one.joint_names) != model.joint_names:
            raise ValueRangeError(f'joints of the {what}', ', '.join(one.joint_names),
                                  ', '.join(model.joint_names))
    with opened(port, model.name) as (server, address):
        Viewer(server, model, folders, beside=beside, motion=motion)
        ready(address)
        threading.Event().wait()
