"""Expands xacro in a sandboxed process, because xacro files can run code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from robodyn_ros.description.xacro_child import NOT_SANDBOXED
from robodyn_ros.description.xml import MAX_BYTES
from robodyn_ros.errors import DescriptionError
from robodyn_ros.files import check_regular

CPU_TIME = 30  # s; the largest public descriptions take 3 s
WALL_TIME = 120.0  # s, enough on a busy machine
MEMORY = 2 * 2**30  # bytes of address space; an expansion takes about 100 MB
# environment variables that $(env ...) can read in a sandboxed expansion
_ENVIRONMENT = ('LANG', 'LC_ALL', 'AMENT_PREFIX_PATH', 'COLCON_PREFIX_PATH', 'ROS_PACKAGE_PATH',
                'ROS_DISTRO')
_CHILD = Path(__file__).with_name('xacro_child.py')
_VALID = 'a xacro file and its arguments as name:=value'


def expand_xacro(path: Path, arguments: Mapping[str, str], *, trust: bool = False) -> str:
    """Return the URDF text of a xacro file.

    The expansion runs in a process with limits on time and memory, which cannot start programs,
    use the network or change files, and which sees few environment variables. It may read every
    file that its user may read.

    Parameters
    ----------
    path : Path
        The xacro file.
    arguments : mapping of str to str
        Its arguments.
    trust : bool
        Do not sandbox the expansion, and pass on all environment variables: code in the file then
        has all rights of the user.

    Raises
    ------
    DescriptionError
        The file cannot be expanded, takes too much time or memory, or cannot be sandboxed on this
        system.
    """
    check_regular(path, MAX_BYTES)
    request = json.dumps({
        'path': str(path), 'arguments': {str(k): str(v) for k, v in arguments.items()},
        'search_path': sys.path, 'trust': trust,
        'limits': {'RLIMIT_CPU': CPU_TIME, 'RLIMIT_AS': MEMORY, 'RLIMIT_CORE': 0,
                   # JSON writes some characters as an escape of six characters
                   'RLIMIT_FSIZE': 6 * MAX_BYTES}})
    environment = dict(os.environ) if trust else {
        name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    with tempfile.TemporaryFile() as answer:
        try:
            code = subprocess.run(
                [sys.executable, '-I', '-B', str(_CHILD)], input=request.encode(), stdout=answer,
                stderr=subprocess.DEVNULL, env=environment, timeout=WALL_TIME,
                start_new_session=True, check=False).returncode
        except subprocess.TimeoutExpired:
            code = -signal.SIGXCPU
        if code == NOT_SANDBOXED:
            raise DescriptionError(
                'xacro files can run code, and this system offers no sandbox for them',
                element=str(path), valid='--trust (trust_xacro=True) for a file that you trust, '
                'or the URDF that xacro makes of it')
        answer.seek(0)
        reply = answer.read()
    if code == 0:
        answered = _answer(reply, path)
        if 'text' in answered:
            return str(answered['text'])
        hint = '' if trust else ('; the expansion runs in a sandbox, --trust (trust_xacro=True) '
                                 'runs it with all your rights')
        raise DescriptionError(f'xacro: {str(answered["error"])[:1200]}', element=str(path),
                               valid=answered.get('valid', _VALID + hint))
    raise DescriptionError(
        f'xacro: the expansion took more than {CPU_TIME} s' if code in (
            -signal.SIGXCPU, -signal.SIGKILL) else
        f'xacro: the expansion ended with code {code} (a limit of memory or size, or a crash)',
        element=str(path), valid=_VALID)


def _answer(reply: bytes, path: Path) -> dict[str, Any]:
    """Return the reply of the process; code in the xacro file may have written to it as well."""
    try:
        answer = json.loads(reply)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict) or not answer.keys() & {'text', 'error'}:
        raise DescriptionError('xacro: code in the file wrote to the standard output, so that the '
                               'expansion cannot be read',
                               element=str(path), valid=_VALID)
    return answer
