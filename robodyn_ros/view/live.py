"""A running experiment on the page of a robot: phase, tracking, condition and residual."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from robodyn_ros.model import Model
from robodyn_ros.packages import package
from robodyn_ros.view.viewer import Viewer

# of Okabe and Ito's palette
COLOURS = ('#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#000000')
DASHES = ((), (6, 4), (2, 3))  # a second and third round of the colours
MOST_POINTS = 500  # largest number of points of a curve; beyond it, every second one is dropped
UNKNOWN = '-'


class ExperimentPage:
    """The state of an experiment beside the robot that carries it out.

    Parameters
    ----------
    server : viser.ViserServer
        The server.
    model : Model
        The robot.
    folders : iterable of Path
        Folders in which meshes are looked for.
    """

    def __init__(self, server: Any, model: Model, folders: Iterable[Path] = ()):
        self._model = model = model.with_fixed_base()
        self._history: list[tuple[float, float, Sequence[float]]] = []
        with server.gui.add_folder('Experiment'):
            self.phase = server.gui.add_markdown('waiting for the server')
            self._bar = server.gui.add_progress_bar(0.0)
            self.table = server.gui.add_markdown(self._table({}, {}))
            self._condition = _plot(server.gui, 'condition number', ('condition',),
                                    logarithmic=True)
            self._unexplained = _plot(server.gui, 'unexplained torque, %', model.joint_names)
        self.viewer = Viewer(server, model, folders, following=True)

    def move(self, positions: Mapping[str, float]) -> None:
        """Show measured positions, rad or m; joints without one stay where they are."""
        self.viewer.set_pose(np.array([positions.get(name, present) for name, present in zip(
            self._model.joint_names, self.viewer.q, strict=True)]))

    def show(self, phase: str, progress: float, *, samples: int = 0, condition: float = 0.0,
             tracking: Mapping[str, float] | None = None,
             unexplained: Mapping[str, float] | None = None) -> None:
        """Show the state of the experiment.

        Parameters
        ----------
        phase : str
            Name of the phase.
        progress : float
            Completed fraction of the phase.
        samples : int
            Number of recorded states so far.
        condition : float
            Condition number so far; 0 while it is unknown.
        tracking : mapping of str to float, optional
            Distance of each joint from its reference, rad or m.
        unexplained : mapping of str to float, optional
            Unexplained fraction of each joint's torque so far.
        """
        said = [f'**{phase}**, {progress:.0%}']
        said += [f'{samples} samples'] if samples else []
        said += [f'condition number {condition:.3g}'] if condition else []
        self.phase.content = ', '.join(said)
        self._bar.value = 100 * float(np.clip(progress, 0, 1))
        tracking, unexplained = tracking or {}, unexplained or {}
        if tracking or unexplained:
            self.table.content = self._table(tracking, unexplained)
        if condition and unexplained and (
                not self._history or samples > self._history[-1][0]):
            # curves cannot be drawn through values that are not numbers (of joints without torque)
            self._history.append((samples, condition, [
                100 * float(np.nan_to_num(unexplained.get(name, 0.0)))
                for name in self._model.joint_names]))
            if len(self._history) > MOST_POINTS:
                self._history = self._history[::2]
            self._draw()

    def end(self, verdict: str, reasons: Iterable[str]) -> None:
        """Show how the experiment ended."""
        self.phase.content = '\n'.join([f'**{verdict}**', '', *(f'- {one}' for one in reasons)])
        self._bar.value = 100.0

    def _table(self, tracking: Mapping[str, float], unexplained: Mapping[str, float]) -> str:
        lines = ['| joint | off its reference | unexplained torque |', '|---|---|---|']
        model = self._model
        for name in model.joint_names:
            unit = 'm' if model.prismatic[model.body_joints.index(name)] else 'rad'
            away, part = tracking.get(name), unexplained.get(name)
            lines.append(f'| {name} | {UNKNOWN if away is None else f"{away:+.4f} {unit}"} | '
                         f'{UNKNOWN if part is None or part != part else f"{part:.1%}"} |')
        return '\n'.join(lines)

    def _draw(self) -> None:
        samples = np.array([entry[0] for entry in self._history], np.float64)
        self._condition.data = (samples, np.array([entry[1] for entry in self._history]))
        self._unexplained.data = (samples, *np.array(
            [entry[2] for entry in self._history], np.float64).T)


def _plot(gui: Any, title: str, names: Sequence[str], logarithmic: bool = False) -> Any:
    """Add a plot of curves over the number of samples; return its handle."""
    uplot = package('viser.uplot')
    series = [uplot.Series(label='samples')]
    series += [uplot.Series(label=name, stroke=COLOURS[k % len(COLOURS)], width=2,
                            dash=DASHES[k // len(COLOURS) % len(DASHES)])
               for k, name in enumerate(names)]
    plain = {'ticks': uplot.Axis_Ticks(show=False), 'grid': uplot.Axis_Grid(width=1)}
    scales = {'x': uplot.Scale(time=False), 'y': uplot.Scale(distr=3 if logarithmic else 1)}
    return gui.add_uplot(tuple(np.zeros(0) for _ in series), tuple(series), title=title,
                         axes=(uplot.Axis(**plain), uplot.Axis(size=64, **plain)), scales=scales,
                         aspect=1.6)
