"""Plots tracking errors of several control laws."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from robodyn_ros.errors import LogError
from robodyn_ros.report.figures import line
from robodyn_ros.spatial import Array

POINTS = 2000


def save_tracking_plot(joint_names: Sequence[str], errors: Sequence[tuple[str, Array, Array]],
                       path: str | Path) -> None:
    """Plot the error of every joint over time, one panel for each law.

    Parameters
    ----------
    joint_names : sequence of str
        The n joints.
    errors : sequence of (str, ndarray, ndarray)
        Title of the panel, times (N,) in s, errors (N, n) in rad or m.
    path : str or Path
        The file to write.

    Raises
    ------
    LogError
        The file cannot be written.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 2.6 * len(errors) + 0.6), layout='constrained')
    axes = np.atleast_1d(figure.subplots(len(errors), 1, sharex=True))
    for axis, (law, t, wrong) in zip(axes, errors, strict=True):
        step = max(1, len(t) // POINTS)
        for k, joint in enumerate(joint_names):
            axis.plot(t[::step], wrong[::step, k], lw=1.1, label=joint, **line(k))
        axis.set_title(law, fontsize=10, loc='left')
        axis.set_ylabel('error, rad or m', fontsize=9)
        axis.axhline(0, color='black', lw=0.5)
        for side in ('top', 'right'):
            axis.spines[side].set_visible(False)
    figure.legend(*axes[0].get_legend_handles_labels(), loc='outside upper center', fontsize=8,
                  ncols=min(len(joint_names), 7), frameon=False)
    axes[-1].set_xlabel('time, s')
    try:
        figure.savefig(path, dpi=110)
    except OSError as error:
        raise LogError(f'cannot be written: {error.strerror}', source=str(path)) from None
