"""The motion that was commanded during a recording, which is kept beside the bag.

It gives a log its period and the known reference, which serves as an instrumental variable
(Kolyubin 5.5.1).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from robodyn_ros.excitation import Excitation
from robodyn_ros.identification import Log

MOTION = 'motion.yaml'  # file in the folder of the bag
START = 'start'  # key in the facts of the motion: the stamp at which it began, s
WITHIN = 1.0  # s by which the stamps of a log may lie outside the motion


def save_commanded(folder: Path, motion: Excitation, start: float) -> None:
    """Write the motion of a recording into the folder of its bag.

    Parameters
    ----------
    folder : Path
        The folder.
    motion : Excitation
        The motion.
    start : float
        Stamp of the joint states at which it began, s.
    """
    facts = {**motion.facts, START: float(start)}
    (folder / MOTION).write_text(replace(motion, facts=facts).to_yaml(), encoding='utf-8')


def with_commanded(log: Log, path: Path) -> Log:
    """Return a log with the period and the reference of the motion that was commanded.

    The log stays as it is where the folder of its bag holds no motion, or one at another time.

    Parameters
    ----------
    log : Log
        The log.
    path : Path
        The folder of its bag.

    Raises
    ------
    LogError
        The motion cannot be read.
    """
    file = path.expanduser() / MOTION
    if not file.is_file():
        return log
    motion, t = Excitation.from_yaml(file), np.asarray(log.t)
    began = motion.facts.get(START)
    if not isinstance(began, (int, float)) or \
            not -WITHIN < float(t[0]) - began < motion.duration or \
            not float(t[-1]) - began < motion.duration + WITHIN:
        return log
    if log.reference is None:
        known, reference = motion.at(t - began).q, np.array(log.q)
        for k, name in enumerate(log.joint_names):
            if name in motion.joint_names:
                reference[:, k] = known[:, motion.joint_names.index(name)]
        log = replace(log, reference=reference)
    if motion.periods > 1 and log.period is None:
        log = replace(log, period=motion.period)
    return log
