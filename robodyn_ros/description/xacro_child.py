"""Expands one xacro file; ``xacro_process.py`` runs this module as a separate process.

xacro evaluates Python expressions, so a xacro file can run code. Before the file is read, a
seccomp filter restricts the process to the system calls that reading files needs. It then cannot
start programs, use the network, signal other processes or change files. It may still read every
file that its user may read.

The module uses only the standard library and xacro, and is run by its path, because importing
``robodyn_ros`` would take longer than the expansion.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import resource
import runpy
import struct
import sys
from pathlib import Path
from typing import Any

NOT_SANDBOXED = 3  # exit code if this system cannot sandbox the expansion

# Numbers of the allowed system calls, from the kernel's unistd.h; None: absent on this machine.
_CALLS: dict[str, tuple[int | None, int | None]] = {  # x86_64, aarch64
    'read': (0, 63), 'write': (1, 64), 'close': (3, 57), 'fstat': (5, 80), 'stat': (4, None),
    'lstat': (6, None), 'newfstatat': (262, 79), 'statx': (332, 291), 'statfs': (137, 43),
    'fstatfs': (138, 44), 'lseek': (8, 62), 'pread64': (17, 67), 'readv': (19, 65),
    'writev': (20, 66), 'access': (21, None), 'faccessat': (269, 48), 'faccessat2': (439, 439),
    'getcwd': (79, 17), 'readlink': (89, None), 'readlinkat': (267, 78), 'getdents64': (217, 61),
    'dup': (32, 23), 'poll': (7, None), 'ppoll': (271, 73),
    'mmap': (9, 222), 'mprotect': (10, 226), 'munmap': (11, 215), 'mremap': (25, 216),
    'madvise': (28, 233), 'brk': (12, 214), 'futex': (202, 98),
    'rt_sigaction': (13, 134), 'rt_sigprocmask': (14, 135), 'rt_sigreturn': (15, 139),
    'sigaltstack': (131, 132), 'restart_syscall': (219, 128),
    'getpid': (39, 172), 'gettid': (186, 178), 'getppid': (110, 173), 'getuid': (102, 174),
    'geteuid': (107, 175), 'getgid': (104, 176), 'getegid': (108, 177), 'uname': (63, 160),
    'sysinfo': (99, 179), 'getrusage': (98, 165), 'getrandom': (318, 278),
    'sched_getaffinity': (204, 123), 'sched_yield': (24, 124),
    'set_robust_list': (273, 99), 'rseq': (334, 293), 'clock_gettime': (228, 113),
    'clock_getres': (229, 114), 'clock_nanosleep': (230, 115), 'gettimeofday': (96, 169),
    'time': (201, None), 'exit': (60, 93), 'exit_group': (231, 94)}
_OPENAT = (257, 56)  # allowed for reading only
_IOCTL = (16, 29)  # allowed for isatty() only; other requests could write to a terminal
_GET_TERMINAL = 0x5401  # TCGETS of asm-generic/ioctls.h
_MACHINES = {'x86_64': (0, 0xC000003E), 'aarch64': (1, 0xC00000B7)}  # column, audit architecture
_WRITES = 0x1 | 0x2 | 0x40 | 0x200 | 0x400 | 0x400000  # O_WRONLY RDWR CREAT TRUNC APPEND TMPFILE
# linux/seccomp.h, linux/filter.h and linux/prctl.h
_ALLOW, _REFUSE, _KILL = 0x7FFF0000, 0x00050001, 0x80000000  # REFUSE: the call fails with EPERM
_LOAD, _EQUAL, _ANY_BIT, _RETURN = 0x20, 0x15, 0x45, 0x06
# offsets in struct seccomp_data
_NUMBER, _ARCHITECTURE, _SECOND_ARGUMENT, _THIRD_ARGUMENT = 0, 4, 24, 32
_NO_NEW_PRIVILEGES, _SET_SECCOMP, _FILTER = 38, 22, 2


def enter_sandbox() -> bool:
    """Restrict this process to the system calls for reading files; return whether that worked."""
    machine = _MACHINES.get(platform.machine())
    if sys.platform != 'linux' or sys.maxsize < 2**32 or machine is None:
        return False
    column, architecture = machine
    numbers = [call[column] for call in _CALLS.values()]
    program = [(_LOAD, 0, 0, _ARCHITECTURE), (_EQUAL, 1, 0, architecture), (_RETURN, 0, 0, _KILL),
               (_LOAD, 0, 0, _NUMBER)]
    for number in numbers:
        if number is not None:
            program += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ALLOW)]
    program += [(_EQUAL, 0, 3, _IOCTL[column]), (_LOAD, 0, 0, _SECOND_ARGUMENT),
                (_EQUAL, 0, 5, _GET_TERMINAL), (_RETURN, 0, 0, _ALLOW),
                (_EQUAL, 0, 3, _OPENAT[column]), (_LOAD, 0, 0, _THIRD_ARGUMENT),
                (_ANY_BIT, 1, 0, _WRITES), (_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _REFUSE)]
    code = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *step) for step in program))
    header = ctypes.create_string_buffer(
        struct.pack('HxxxxxxP', len(program), ctypes.addressof(code)))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
    return prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) == 0 and \
        prctl(_SET_SECCOMP, _FILTER, ctypes.addressof(header), 0, 0) == 0


class MissingPackageInFile(Exception):
    """What is wrong with ``$(find PACKAGE)``, and what would be valid."""


def expand(request: dict[str, Any]) -> str:
    """Return the URDF text of a xacro file."""
    import xacro
    from xacro import substitution_args

    search = runpy.run_path(str(Path(__file__).with_name('packages.py')))
    path, missing = Path(request['path']), []

    def find(package: str) -> str:
        for folder in search['package_folders'](package, [path.resolve().parent]):
            return str(folder)
        missing.append(package)
        raise substitution_args.SubstitutionException(package)

    substitution_args._eval_find = find
    if hasattr(substitution_args, '_eval_dict'):
        substitution_args._eval_dict['find'] = find
    try:
        return str(xacro.process_file(request['path'], mappings=request['arguments']).toxml())
    except Exception as error:  # xacro repeats the text of the error that it wraps
        if not missing:
            raise
        raise MissingPackageInFile(f'$(find {missing[-1]}): there is no such package',
                                   search['REMEDY']) from error


def main() -> int:
    """Read a request from standard input and write the reply to standard output, as JSON."""
    request = json.loads(sys.stdin.read())
    answer = os.fdopen(os.dup(1), 'w', encoding='utf-8')
    sys.stdout = sys.stderr
    sys.path[:] = request['search_path']
    for limit, most in request['limits'].items():
        hard = resource.getrlimit(getattr(resource, limit))[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(getattr(resource, limit), (most, most))
    if not request['trust'] and not enter_sandbox():
        return NOT_SANDBOXED
    try:
        reply = {'text': expand(request)}
    except MissingPackageInFile as error:
        reply = dict(zip(('error', 'valid'), error.args, strict=True))
    except BaseException as error:  # an expression in the file may raise anything
        cause = error
        while isinstance(getattr(cause, 'exc', None), BaseException):  # xacro wraps errors
            cause = cause.exc  # type: ignore[attr-defined]
        reply = {'error': f'{type(cause).__name__}: {" ".join(str(error).split())[:1000]}'}
    json.dump(reply, answer)
    answer.flush()
    return 0


if __name__ == '__main__':
    os._exit(main())
