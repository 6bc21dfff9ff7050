"""The command `robodyn`: finds the command that is meant and runs it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Collection, Sequence
from importlib import import_module

from robodyn_ros._version import __version__
from robodyn_ros.errors import RobodynError
from robodyn_ros.packages import explained

COMMANDS = {
    'check': 'check a robot description for faults in its dynamics',
    'inertia': 'print the <inertial> element of a solid',
    'motors': 'print a motor file with what is known of a robot, to fill in',
    'parameters': 'list the base parameters of a robot',
    'excite': 'find the best motion for an identification',
    'identify': "estimate a robot's dynamic parameters from measured logs",
    'calibrate': 'excite, record, identify and validate through a running server',
    'export': 'write the equations of motion as plain C',
    'demo': 'show a closed loop: PD alone, then with feed-forward',
}
INTERRUPTED, BROKEN_PIPE = 130, 141  # 128 + the signal's number, as shells report it


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code.

    The exit code is 0 for success, 1 for a negative verdict, 2 for an error that is explained in
    one sentence, 130 after Ctrl-C, 141 if whoever read the output closed it.
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
        # Python flushes the standard output once more at its end; it shall find an open one
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE


class _Help(argparse.HelpFormatter):
    """Explanations in one column, and never wider than a classic terminal."""

    def __init__(self, prog: str):
        super().__init__(prog, max_help_position=26, width=79)


def command_parser(complete: Collection[str] = tuple(COMMANDS)) -> argparse.ArgumentParser:
    """Return a parser that knows all commands, and the arguments of those in `complete`.

    The arguments of a command are declared in its own file, which may import much; so it is
    imported only for the command that is run, or for a page that documents all of them.
    """
    parser = argparse.ArgumentParser(
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
