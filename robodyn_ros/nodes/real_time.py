"""Real-time scheduling and locked memory, where the system permits them.

A process with real-time priority runs before every ordinary one, however busy the machine is. All
threads of a node get it: those that answer messages wait for the interpreter and for the
middleware, whose threads must not wait for other processes in their turn. Locked memory is never
moved to a disk, from which it would come back in milliseconds.
"""

from __future__ import annotations

import ctypes
import os
import resource
import sys
from contextlib import suppress
from typing import Any

from robodyn_ros.nodes.parameters import declare

HIGHEST = 98  # priority; the watchdog of a node has one more
# of sys/mman.h: what is mapped now, and later, as soon as it is used for the first time
_CURRENT, _FUTURE, _ON_FAULT = 1, 2, 4
LIMITS = '/etc/security/limits.d/robodyn.conf'


def declare_real_time(node: Any) -> None:
    """Declare the parameters of a node whose answers must be in time."""
    declare(node, 'realtime_priority', 0, 'priority of the scheduling policy SCHED_FIFO for all '
            'threads of the node; 0: ordinary scheduling', range_=(0, HIGHEST), read_only=True)
    declare(node, 'lock_memory', False, 'whether the memory of the node is locked, so that it is '
            'never moved to a disk', read_only=True)


def apply_real_time(node: Any) -> None:
    """Do what the parameters of `declare_real_time` say, or warn of what is not permitted."""
    if not node.has_parameter('realtime_priority'):
        return
    priority = node.get_parameter('realtime_priority').value
    problems = [] if priority == 0 else [set_priority(priority)]
    if node.get_parameter('lock_memory').value:
        problems.append(lock_memory())
    for problem in filter(None, problems):
        node.report('warning', f'{problem}; the node goes on without it')


def set_priority(priority: int) -> str | None:
    """Give all threads of this process a real-time priority; return why not, or None.

    Threads and processes that are started later inherit it.

    Parameters
    ----------
    priority : int
        Of SCHED_FIFO, 1 to 99.
    """
    try:
        for thread in map(int, os.listdir('/proc/self/task')):
            with suppress(ProcessLookupError):  # it has ended meanwhile
                os.sched_setscheduler(thread, os.SCHED_FIFO, os.sched_param(priority))
    except PermissionError:
        most = resource.getrlimit(resource.RLIMIT_RTPRIO)[0]
        return (f'realtime_priority is {priority}, and {most} is the highest that this user may '
                f'have; valid: a line "{_user()} - rtprio {priority + 1}" in {LIMITS} and a new '
                'login, or a service with LimitRTPRIO')
    except (AttributeError, OSError) as error:
        return f'there is no real-time scheduling: {error}'
    return None


def lock_memory() -> str | None:
    """Lock the memory of this process, now and later; return why not, or None.

    Under a limit nothing is locked: the process would end as soon as it needs more than that.
    """
    most = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    remedy = (f'valid: a line "{_user()} - memlock unlimited" in {LIMITS} and a new login, or a '
              'service with LimitMEMLOCK=infinity')
    if sys.platform != 'linux':
        return 'memory is locked on Linux alone'
    if most != resource.RLIM_INFINITY and not _may_lock_all():
        return f'the memory is not locked: this user may lock {most} bytes; {remedy}'
    system = ctypes.CDLL(None, use_errno=True)
    if system.mlockall(_CURRENT | _FUTURE | _ON_FAULT) != 0:
        return f'the memory is not locked: {os.strerror(ctypes.get_errno())}; {remedy}'
    return None


def _may_lock_all() -> bool:
    """Return whether this process has the capability CAP_IPC_LOCK, for which no limit holds."""
    with open('/proc/self/status') as file:
        words = dict(line.split(':', 1) for line in file if ':' in line)
    return bool(int(words['CapEff'], 16) >> 14 & 1)


def _user() -> str:
    return os.environ.get('USER') or str(os.getuid())
