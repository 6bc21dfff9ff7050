"""A motion on the page of a robot: how close it comes to every limit, and its capsules."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from robodyn_ros.dynamics import Dynamics
from robodyn_ros.excitation import Constraints, Excitation, Limits, Motion
from robodyn_ros.model import Model
from robodyn_ros.spatial import Array
from robodyn_ros.view.scene import RobotScene

FRAMES = 30.0  # per second
RATE = 100.0  # Hz, at which the limits are evaluated
FRICTION_WIDTH = 0.02  # rad/s or m/s, width of the smooth sign in planned torques
QUANTITIES = ('position', 'velocity', 'torque')
UNLIMITED = '-'


class Clearance(NamedTuple):
    """Least distance between the capsules of two links that can collide, m."""

    links: tuple[str, str]
    distance: float


class MotionLimits:
    """How much of each limit a motion uses.

    Parameters
    ----------
    model : Model
        The robot.
    motion : Excitation
        The motion.
    folders : iterable of Path
        Folders in which meshes are looked for.

    Attributes
    ----------
    t : ndarray, shape (N,)
        Times, s.
    used : ndarray, shape (3, N, n)
        Used fractions of the position, velocity and torque limits; nan for a joint without one.
        Of a position limit, 0 is the middle of the range and 1 one of its ends.
    """

    def __init__(self, model: Model, motion: Excitation, folders: Iterable[Path] = ()):
        self.constraints = Constraints(Dynamics(model, friction_width=FRICTION_WIDTH), Limits(
            torque_margin=0.0, self_collision=True, gap=0.0, mesh_folders=tuple(folders)))
        self.t, samples = motion.samples(RATE)
        torque = self.constraints.dynamics.inverse_dynamics(samples.q, samples.qd, samples.qdd)
        self.used = np.full((len(QUANTITIES), len(self.t), model.n), np.nan)
        self._distances: dict[tuple[str, str], Array] = {}
        for family in self.constraints.families(samples, torque):
            quantity = family.name.partition(' ')[0]
            if family.joint >= 0 and quantity in QUANTITIES:
                self.used[QUANTITIES.index(quantity), :, family.joint] = 1 + family.values
            elif ' against ' in family.name:
                first, _, second = family.name.partition(' against ')
                self._distances[first, second] = -family.values

    def at(self, t: float) -> Array:
        """Return the used fractions at a time, shape (3, n)."""
        return self.used[:, self._index(t)]

    def clearance(self, t: float | None = None) -> Clearance | None:
        """Return the closest pair at a time, or over the motion; None without capsules."""
        if not self._distances:
            return None
        now = {pair: float(values.min() if t is None else values[self._index(t)])
               for pair, values in self._distances.items()}
        pair = min(now, key=lambda one: now[one])
        return Clearance(pair, now[pair])

    def _index(self, t: float) -> int:
        return int(np.clip(np.searchsorted(self.t, t), 0, len(self.t) - 1))


class Playback:
    """The controls of a motion on a page.

    Parameters
    ----------
    gui : viser.GuiApi
        Where the controls are added.
    scene : RobotScene
        The robot; the capsules of its links are added.
    motion : Excitation
        The motion.
    folders : iterable of Path
        Folders in which meshes are looked for.
    show : callable
        Shows the robot at positions, shape (n,).
    """

    def __init__(self, gui: Any, scene: RobotScene, motion: Excitation, folders: Iterable[Path],
                 show: Callable[[Array], None]):
        self.motion, self._scene, self._show = motion, scene, show
        self.limits = MotionLimits(scene.model, motion, folders)
        self._playing = threading.Event()
        self._showing = False  # the slider follows the motion instead of setting its time
        scene.add_capsules(self.limits.constraints.capsules)
        with gui.add_folder(f'Motion, {motion.duration:.3g} s'):
            self.button = gui.add_button('Play')
            self.time = gui.add_slider('time, s', min=0.0, max=motion.duration, step=1e-3,
                                       initial_value=0.0)
            self.table = gui.add_markdown('')
            self.capsules = gui.add_checkbox('capsules', bool(self.limits.constraints.capsules),
                                             disabled=not self.limits.constraints.capsules)
        self.button.on_click(lambda _: self._toggle())
        self.time.on_update(lambda _: None if self._showing else self.go_to(self.time.value))
        self.capsules.on_update(lambda _: scene.show_capsules(self.capsules.value))
        self._write(0.0)

    def go_to(self, t: float) -> Motion:
        """Show the robot at a time of the motion (s), and what it uses of its limits then."""
        state = self.motion.at(t)
        self._show(state.q)
        self._write(t)
        return state

    def play(self) -> None:
        """Play the motion once from the time of the slider, or from the start if that is over."""
        self._playing.set()
        self.button.label = 'Stop'
        start = self.time.value if self.time.value < self.motion.duration else 0.0
        begin = time.monotonic() - start
        try:
            while self._playing.is_set():
                t = min(time.monotonic() - begin, self.motion.duration)
                self._showing = True
                self.time.value = t
                self._showing = False
                self.go_to(t)
                if t >= self.motion.duration:
                    return
                time.sleep(1 / FRAMES)
        finally:
            self._playing.clear()
            self.button.label = 'Play'

    def _toggle(self) -> None:
        if self._playing.is_set():
            self._playing.clear()
        else:
            self.play()

    def _write(self, t: float) -> None:
        self.table.content = self.text(t)
        nearest = self.limits.clearance(t)
        self._scene.mark_capsules(nearest.links if nearest and nearest.distance < 0 else ())

    def text(self, t: float) -> str:
        """Return the used fractions at a time and their largest values, as a table."""
        now, most = self.limits.at(t), self.limits.used.max(axis=1)
        lines = ['Used part of each limit, now (at most), %:', '',
                 f'| joint | {" | ".join(QUANTITIES)} |', '|---' * (1 + len(QUANTITIES)) + '|']
        for k, joint in enumerate(self._scene.model.joint_names):
            cells = [f'{_percent(now[i, k])} ({_percent(most[i, k])})'
                     if np.isfinite(most[i, k]) else UNLIMITED for i in range(len(QUANTITIES))]
            lines.append(f'| {joint} | ' + ' | '.join(cells) + ' |')
        nearest, least = self.limits.clearance(t), self.limits.clearance()
        if nearest and least:
            lines += ['', f'Closest capsules: {" and ".join(nearest.links)}, '
                      f'{nearest.distance:.3f} m; over the motion {" and ".join(least.links)}, '
                      f'{least.distance:.3f} m.']
        return '\n'.join([*lines, *(f'\n{note}' for note in self.limits.constraints.notes)])


def _percent(fraction: float) -> str:
    return f'{100 * fraction:.0f}'
