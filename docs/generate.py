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
             'validation); 2 an error, explained by one sentence; 130 interrupted by Ctrl-C; 141 '
             'the program that read the output closed it.',
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
    from robodyn_ros.nodes.declarations import NODES, parameters_of

    lines = ['# Parameters of the nodes', '',
             'Generated from the declarations in the nodes, as the files in `config/` are. '
             '"Changes" says whether a parameter may be changed while the node runs.', '']
    for node in NODES:
        lines += [f'## {node}', '', '| parameter | default | range | changes | meaning |',
                  '|---|---|---|---|---|']
        for name, one in sorted(parameters_of(node).items()):
            limits = '' if one.range is None else '{:g} to {:g}'.format(*one.range)
            lines.append(f'| `{name}` | `{one.default!r}` | {limits} | '
                         f'{"no" if one.read_only else "yes"} | '
                         + one.description.replace('|', '\\|') + ' |')
        lines.append('')
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
