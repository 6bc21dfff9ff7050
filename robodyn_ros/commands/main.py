"""The command `robodyn`: finds the command that is meant and runs it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Collection, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from robodyn_ros._version import __version__
from robodyn_ros.errors import RobodynError
from robodyn_ros.packages import explained

COMMANDS = {
    'check': 'check a robot description for faults in its dynamics',
    'inertia': 'print the <inertial> element of a solid',
    'motors': 'print a motor file with what is known of a robot, to fill in',
    'parameters': 'list the base parameters of a robot',
    'excite': 'find the best motion for an identification',
    'effort': 'tell from logs what measured efforts mean: torque or current, with gravity or not',
    'identify': "estimate a robot's dynamic parameters from measured logs",
    'payload': 'tell from logs what a robot holds: mass, centre of mass and inertia',
    'calibrate': 'excite, record, identify and validate through a running server',
    'fleet': 'identify many robots from many logs, and compare them',
    'equations': 'derive the closed forms of the equations of motion of a small arm',
    'export': 'write the equations of motion as plain C',
    'reproduce': 'run a published experiment again, beside its published results',
    'view': 'show a robot, its inertials and its torques in the browser',
    'run': 'start a node without the tools of ROS 2',
    'demo': 'show a closed loop: PD alone, then with feed-forward',
}
INTERRUPTED, BROKEN_PIPE = 130, 141  # 128 + the signal's number, as shells report it


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code.

    The exit code is 0 for success, 1 for a negative verdict, 2 for an error with a message, 130
    after Ctrl-C, and 141 if the reader of the output closed it.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    chosen = next((entry for entry in arguments if not entry.startswith('-')), '')
    try:
        options = command_parser([chosen]).parse_args(arguments)
        code = int(options.run(options))
        sys.stdout.flush()
        return code
    except RobodynError as error:
        print(f'robodyn: {error}', file=sys.stderr)
        return 2
    except ImportError as error:
        if explained(error) is error:
            raise
        print(f'robodyn: {explained(error)}', file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f'robodyn: {chosen} was interrupted; no file is left half-written',
              file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # Python flushes the standard output again when it exits, so it must be open
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE


class _Parser(argparse.ArgumentParser):
    """Answers a misspelt command or option with the one that was meant."""

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse, and name the option that is nearest to one that does not exist."""
        options, rest = self.parse_known_args(args, namespace)
        if rest:
            chosen = self.commands().get(getattr(options, 'command', ''), self)
            valid = [word for action in chosen._actions for word in action.option_strings]
            chosen.error('\n'.join(
                f'unknown argument {word!r}' + _nearest(word.partition('=')[0], valid)
                for word in rest))
        return options

    def commands(self) -> dict[str, argparse.ArgumentParser]:
        """Return the parsers of the commands by their names."""
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                return dict(action.choices)
        return {}

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            words = list(map(str, action.choices))
            raise argparse.ArgumentError(action, f'there is no {value!r}'
                                         + (_nearest(str(value), words) or
                                            f'; valid: {", ".join(words)}'))


def _nearest(word: str, valid: list[str]) -> str:
    near = get_close_matches(word, valid, n=1)
    return f'; did you mean {near[0]!r}?' if near else ''


class _Help(argparse.HelpFormatter):
    """Explanations in one column, and never wider than a classic terminal."""

    def __init__(self, prog: str):
        super().__init__(prog, max_help_position=26, width=79)


def command_parser(complete: Collection[str] = tuple(COMMANDS)) -> argparse.ArgumentParser:
    """Return a parser that knows all commands, and the arguments of those in `complete`.

    The arguments of a command are declared in its own file, which may import much; so it is
    imported only for the command that is run, or for a page that documents all of them.
    """
    parser = _Parser(
        prog='robodyn', formatter_class=_Help,
        description='The dynamics of any robot that has a URDF.',
        epilog='`robodyn COMMAND --help` explains the arguments of a command.')
    parser.add_argument('--version', action='version', version=__version__)
    commands = parser.add_subparsers(required=True, metavar='COMMAND', dest='command')
    for name, summary in COMMANDS.items():
        command = commands.add_parser(name, help=summary, formatter_class=_Help,
                                      description=f'{summary[0].upper()}{summary[1:]}.')
        if name in complete:
            module = import_module(f'robodyn_ros.commands.{name}')
            module.add_arguments(command)
            command.set_defaults(run=module.run)
    return parser


if __name__ == '__main__':
    sys.exit(main())
