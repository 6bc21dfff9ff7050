"""Writes config/NODE.yaml: every parameter of a node, with its description and its default.

The files are generated from the declarations in the nodes, and a test checks that they are up to
date. After a change, run: .venv/bin/python tools/write_config.py
"""

import textwrap
from pathlib import Path

import yaml

from robodyn_ros.nodes.declarations import NODES, parameters_of

CONFIG = Path(__file__).resolve().parent.parent / 'config'
FILES = {'gazebo_bridge': 'gazebo'}  # names of files that differ from the node's
NOT_FROM_FILES = ('robot_description',)
WIDTH = 99


def config_of(node: str) -> str:
    """Return the content of a node's file."""
    lines = [f'# Parameters of the node `{node}`, with their defaults; written by',
             '# tools/write_config.py from the declarations in the node.',
             '/**:', '  ros__parameters:']
    for name, one in sorted(parameters_of(node).items()):
        if name in NOT_FROM_FILES:
            continue
        limits = '' if one.range is None else '; {:g} to {:g}'.format(*one.range)
        lines += textwrap.wrap(one.description + limits, WIDTH,
                               initial_indent='    # ', subsequent_indent='    # ')
        lines.append(f'    {name}: {_written(one.default)}')
    return '\n'.join(lines) + '\n'


def _written(value: object) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, width=10_000, default_style=None)
    return '""' if value == '' else text.removesuffix('...\n').strip()


if __name__ == '__main__':
    for node in NODES:
        (CONFIG / f'{FILES.get(node, node)}.yaml').write_text(config_of(node), encoding='utf-8')
