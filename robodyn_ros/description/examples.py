"""Finds the robots of the package `example-robot-data`, whether pip or ROS installed it."""

from __future__ import annotations

import sysconfig
from pathlib import Path

from robodyn_ros.errors import DescriptionError

PANDA = 'panda_description/urdf/panda.urdf'


def example_robots() -> Path:
    """Return the folder of the robots.

    Raises
    ------
    DescriptionError
        The package is not installed.
    """
    relative = Path('share/example-robot-data/robots')
    prefixes = [Path(sysconfig.get_path('purelib')) / 'cmeel.prefix']
    prefixes += sorted(Path('/opt/ros').glob('*'), reverse=True)
    for prefix in prefixes:
        if (prefix / relative).is_dir():
            return prefix / relative
    raise DescriptionError('is not installed', element='example-robot-data',
                           valid='`pip install example-robot-data`, or give a URDF')
