"""Writes the reference pages that come from the code: command line, parameters, interfaces.

They are written into docs/reference/generated/, which is not under version control, each time the
site is built; so they cannot fall behind the code.
"""

from __future__ import annotations

import argparse
from pathlib import Path

INTERFACES = Path(__file__).parent.parent / 'robodyn_interfaces'


def write_generated_pages(docs: Path) -> None:
    """Write all of them."""
    folder = docs / 'reference' / 'generated'
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (('command_line', command_line()), ('parameters', parameters()),
                       ('interfaces', interfaces())):
        page = folder / f'{name}.md'
        if not page.exists() or page.read_text(encoding='utf-8') != text:
            page.write_text(text, encoding='utf-8')


def command_line() -> str:
    """Return the page of `robodyn` and its commands, as their parsers describe them."""
    from robodyn_ros.commands.main import command_parser

    parser = command_parser()
    lines = ['# Command line', '',
             'Exit codes: 0 success; 1 the result is bad (a faulty description, a bad '
             'validation); 2 an error, which one sentence explains; 130 interrupted by Ctrl-C.',
             '']
    for name, command in _commands(parser):
        lines += [f'## robodyn {name}', '', '```text', command.format_help().rstrip(), '```', '']
    return '\n'.join(lines)


def _commands(parser: argparse.ArgumentParser,
              prefix: str = '') -> list[tuple[str, argparse.ArgumentParser]]:
    found = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, child in action.choices.items():
                inner = _commands(child, f'{prefix}{name} ')
                found += inner or [(f'{prefix}{name}', child)]
    return found


def parameters() -> str:
    """Return the page of all nodes' parameters, as the nodes declare them."""
    import os

    os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'OFF'
    import rclpy
    from rclpy.parameter import Parameter, parameter_value_to_python

    from robodyn_ros.nodes.dynamics import DynamicsPublisher
    from robodyn_ros.nodes.feedforward import Feedforward
    from robodyn_ros.nodes.identification import Identification
    from robodyn_ros.nodes.simulator import Simulator

    lines = ['# Parameters of the nodes', '',
             'Generated from the declarations in the nodes. "Changes" says whether a parameter '
             'may be changed while the node runs.', '']
    context = rclpy.Context()
    rclpy.init(context=context)
    try:
        for make in (DynamicsPublisher, Feedforward, Identification, Simulator):
            node = make(context=context,
                        parameter_overrides=[Parameter('autostart', value=False)])
            lines += [f'## {node.get_name()}', '',
                      '| parameter | default | range | changes | meaning |',
                      '|---|---|---|---|---|']
            names = sorted(name for name in node._parameters if not name.startswith((
                'qos_overrides', 'start_type_description', 'use_sim_time')))
            for name, descriptor in zip(names, node.describe_parameters(names), strict=True):
                value = parameter_value_to_python(node.get_parameter(name).get_parameter_value())
                value = True if name == 'autostart' else value
                limits = [*descriptor.floating_point_range, *descriptor.integer_range]
                range_ = f'{limits[0].from_value:g} to {limits[0].to_value:g}' if limits else ''
                lines.append(f'| `{name}` | `{value!r}` | {range_} | '
                             f'{"no" if descriptor.read_only else "yes"} | '
                             + descriptor.description.replace('|', '\\|') + ' |')
            lines.append('')
            node.destroy_node()
    finally:
        rclpy.shutdown(context=context)
    return '\n'.join(lines)


def interfaces() -> str:
    """Return the page of messages, services and actions: their definitions, comments included."""
    lines = ['# Messages, services and actions', '',
             'The package `robodyn_interfaces`; the comments in each definition explain every '
             'field.', '']
    for kind in ('msg', 'srv', 'action'):
        for file in sorted((INTERFACES / kind).glob(f'*.{kind}')):
            lines += [f'## robodyn_interfaces/{kind}/{file.stem}', '', '```text',
                      file.read_text(encoding='utf-8').rstrip(), '```', '']
    return '\n'.join(lines)
