"""Writes the reference pages that come from the code: command line, parameters, interfaces.

They are written into docs/reference/generated/, which is not under version control, each time the
site is built; so they cannot fall behind the code.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

INTERFACES = Path(__file__).parent.parent / 'robodyn_interfaces'


def write_generated_pages(docs: Path) -> None:
    """Write all of them."""
    folder = docs / 'reference' / 'generated'
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (('command_line', command_line()), ('parameters', parameters()),
                       ('interfaces', interfaces()), ('check_json', check_json())):
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


def check_json() -> str:
    """Return the page of the JSON that `robodyn check --json` prints."""
    from robodyn_ros.check.quantities import JOINT, LINK, ROBOT, SCHEMA_VERSION, json_schema

    lines = ['# JSON of robodyn check', '',
             '`robodyn check --json` prints one object. Keys are in snake_case and name their '
             'unit, or the entries `unit_of_position` and `unit_of_effort` of a joint do. A '
             'number that is infinite or not known is `null`. `schema_version` is '
             f'{SCHEMA_VERSION}; it grows where a key is renamed or removed, or gets another '
             'meaning. Keys may be added without that.', '',
             'The exit code is 1 where the verdict is `faulty`, 0 otherwise, and 2 where the '
             'description cannot be read at all; then nothing is printed but the error.', '']
    for title, quantities in (('robot', ROBOT), ('links', LINK), ('joints', JOINT)):
        lines += [f'## {title}', '', '| key | unit | meaning |', '|---|---|---|',
                  *(f'| `{key}` | {one.unit} | {one.meaning} |'
                    for key, one in quantities.items()), '']
    return '\n'.join([*lines, '## JSON schema', '', '```json',
                      json.dumps(json_schema(), indent=2), '```', ''])


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
