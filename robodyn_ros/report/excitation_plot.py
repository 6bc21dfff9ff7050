"""Plots an excitation: its motion, its limits, and the expected accuracy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from robodyn_ros.dynamics import RobotDynamics, dynamics_of
from robodyn_ros.excitation import Excitation, Limits
from robodyn_ros.excitation.criteria import Criterion
from robodyn_ros.excitation.fourier import Basis
from robodyn_ros.excitation.plan import SIGN_WIDTH, smooth_constraints
from robodyn_ros.identification.base_parameters import base_parameters
from robodyn_ros.identification.friction import FrictionShape
from robodyn_ros.identification.linear_model import LinearModel
from robodyn_ros.model import Model
from robodyn_ros.numerics import safe_divide
from robodyn_ros.report.figures import MEASURED, NOMINAL, PREDICTED, RESIDUAL, line
from robodyn_ros.spatial import Array

NOISE = 0.01  # default of the noise, relative to each joint's largest torque


def expectation(model: Model | RobotDynamics, excitation: Excitation, limits: Limits,
                noise: Array | None = None) -> tuple[tuple[str, ...], Array, Array, Array]:
    """Return the expected accuracy of an identification with this motion.

    Parameters
    ----------
    model : Model, Dynamics or ClosedLoopDynamics
        The nominal robot.
    excitation : Excitation
        The motion.
    limits : Limits
        The limits of the motion; the friction model refers to its velocity limits.
    noise : ndarray, shape (n,), optional
        Standard deviation of the torques at 20 independent samples per second, N m or N. The
        default is 1 % of each joint's largest torque.

    Returns
    -------
    names : tuple of str
        The b base parameters.
    nominal, deviation : ndarray, shape (b,)
        Nominal values and expected standard deviations, SI units.
    singular : ndarray, shape (b,)
        Singular values of the observation matrix with columns of equal norm.
    """
    robot = dynamics_of(model)
    constraints = smooth_constraints(robot, limits)
    linear = LinearModel(robot, excitation.facts.get('kind', 'lumped'), friction=FrictionShape(
        'coulomb', SIGN_WIDTH, constraints.speeds()))
    base = base_parameters(linear)
    size = max(50, int(20 * excitation.period))
    motion = excitation.at(np.arange(size) * excitation.period / size)
    if noise is None:
        torque = constraints.dynamics.inverse_dynamics(motion.q, motion.qd, motion.qdd)
        noise = np.maximum(NOISE * np.abs(torque).max(axis=0), 1e-6)
    basis = Basis(excitation.period, max(2, excitation.harmonics), size)
    criterion = Criterion(linear, base, basis, 'condition', 'columns', np.ones(robot.n))
    w = criterion.matrix(motion)
    singular = np.linalg.svd(safe_divide(w, np.linalg.norm(w, axis=0)), compute_uv=False)
    return (base.names, base.matrix @ linear.nominal(),
            criterion.deviations(motion, noise, excitation.periods), np.asarray(singular))


def save_excitation_plot(model: Model | RobotDynamics, excitation: Excitation, limits: Limits,
                         path: str | Path, noise: Array | None = None) -> None:
    """Write `excitation_figure` to a file, whose suffix (.svg, .pdf, .png) is its format."""
    excitation_figure(model, excitation, limits, noise).savefig(path, dpi=110)


def excitation_figure(model: Model | RobotDynamics, excitation: Excitation,
                      limits: Limits | None = None, noise: Array | None = None) -> Any:
    """Return a figure of the motion with its limits, the tool's path, and the accuracy."""
    from matplotlib.figure import Figure

    limits = limits or Limits()
    robot = dynamics_of(model)
    constraints = smooth_constraints(robot, limits)
    size = 800
    t = np.arange(size) * excitation.period / size
    motion = excitation.at(t)
    torque = constraints.dynamics.inverse_dynamics(motion.q, motion.qd, motion.qdd)
    tool = constraints.dynamics.points(motion.q, ((constraints.tool, (0.0, 0.0, 0.0)),))[:, 0]
    names, nominal, deviation, singular = expectation(model, excitation, limits, noise)
    figure = Figure(figsize=(14, 9), layout='constrained')
    grid = figure.add_gridspec(3, 3, width_ratios=[1.3, 1, 1.2])
    rows = (('position', motion.q, constraints.position),
            ('velocity', motion.qd, np.column_stack([-constraints.velocity,
                                                     constraints.velocity])),
            ('torque', torque, np.column_stack([-constraints.torque, constraints.torque])))
    for row, (name, values, bounds) in enumerate(rows):
        axis = figure.add_subplot(grid[row, 0])
        _relative_to_limits(axis, t, values, bounds, robot.joint_names)
        axis.set_ylabel(f'{name} over its limit', fontsize=9)
    axis.set_xlabel('time, s')
    figure.legend(*axis.get_legend_handles_labels(), loc='outside lower left', fontsize=8,
                  ncols=min(7, robot.n), frameon=False)
    _path(figure, grid[:2, 1], tool, constraints.tool)
    axis = figure.add_subplot(grid[2, 1])
    axis.semilogy(np.arange(1, len(singular) + 1), singular / singular[0], 'o', ms=3,
                  color=PREDICTED)
    axis.set_title(f'condition {singular[0] / singular[-1]:.3g} (columns of equal length)',
                   fontsize=9)
    axis.set_xlabel('number of the singular value', fontsize=9)
    axis.set_ylabel('over the largest one', fontsize=9)
    _deviations(figure, grid[:, 2], names, nominal, deviation)
    facts = excitation.facts
    figure.suptitle(f'{robot.model.name}: {excitation.harmonics} harmonics of '
                    f'{excitation.period:.3g} s, condition {facts.get("condition", np.nan):.4g} '
                    f'({facts.get("scaling", "")}), closest limit: '
                    f'{facts.get("check", {}).get("closest", "-")}', fontsize=11)
    return figure


def _relative_to_limits(axis: Any, t: Array, values: Array, bounds: Array,
                        joints: tuple[str, ...]) -> None:
    """Draw each joint's values so that its limits are at -1 and 1; without limits, its peak."""
    low, high = bounds.T
    known = np.isfinite(high - low)
    centre = np.where(known, (low + high) / 2, 0.0)
    half = np.where(known, (high - low) / 2, np.abs(values).max(axis=0) + 1e-12)
    for k, joint in enumerate(joints):
        axis.plot(t, (values[:, k] - centre[k]) / half[k], lw=1, label=joint, **line(k))
    axis.axhspan(-1, 1, color=PREDICTED, alpha=0.06, lw=0)
    axis.set_ylim(-1.15, 1.15)


def _path(figure: Any, place: Any, tool: Array, name: str) -> None:
    axis = figure.add_subplot(place, projection='3d')
    axis.plot(*tool.T, lw=1, color=PREDICTED)
    axis.plot(*tool[:1].T, 'o', color=RESIDUAL, ms=5)
    axis.set_title(f'path of {name} (dot: start)', fontsize=9)
    for direction in 'xyz':
        getattr(axis, f'set_{direction}label')(f'{direction}, m', fontsize=8)
    axis.set_aspect('equal')
    axis.tick_params(labelsize=7)


def _deviations(figure: Any, place: Any, names: tuple[str, ...], nominal: Array,
                deviation: Array) -> None:
    axis = figure.add_subplot(place)
    zero = np.abs(nominal) < 1e-9
    relative = np.where(zero, deviation, deviation / np.where(zero, 1.0, np.abs(nominal)))
    places = np.arange(len(names))
    for chosen, colour, meaning in (
            (~zero & (relative <= 0.3), PREDICTED, 'over the nominal value'),
            (~zero & (relative > 0.3), MEASURED, 'over the nominal value, above 0.3'),
            (zero, NOMINAL, 'in SI units, as the nominal value is 0')):
        if not chosen.any():
            continue
        axis.barh(places[chosen], np.clip(relative[chosen], 1e-4, 10), color=colour, height=0.7,
                  label=meaning)
    axis.legend(loc='lower center', bbox_to_anchor=(0.5, 1.0), fontsize=7, frameon=False)
    axis.set_xlabel('two scales: a fraction, or SI units', fontsize=9)
    axis.set_xscale('log')
    axis.set_xlim(1e-4, 10)
    axis.axvline(0.3, color=RESIDUAL, lw=0.8)
    axis.set_yticks(places, names, fontsize=max(3.5, min(8.0, 420 / len(names))))
    axis.set_ylim(len(names) - 0.4, -0.6)
    axis.set_title('expected standard deviation', fontsize=9, pad=42)
