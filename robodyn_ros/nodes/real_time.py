"""Real-time scheduling and locked memory, if the system permits them.

A process with real-time priority runs before every ordinary process, however busy the machine is.
All threads of a node get this priority, because those that answer messages wait for the
interpreter and for the threads of the middleware. Locked memory is never swapped to disk; reading
it back would take milliseconds.
"""

from __future__ import annotations

import ctypes
import os
import resource
import sys
from contextlib import suppress
from typing import Any

from robodyn_ros.nodes.parameters import declare

HIGHEST = 98  # largest priority of a node; that of its watchdog is one higher
# MCL_CURRENT, MCL_FUTURE and MCL_ONFAULT of sys/mman.h
_CURRENT, _FUTURE, _ON_FAULT = 1, 2, 4
LIMITS = '/etc/security/limits.d/robodyn.conf'


def declare_real_time(node: Any) -> None:
    """Declare the parameters of a node that has to respond in time."""
    declare(node, 'realtime_priority', 0, 'SCHED_FIFO priority of all threads of the node; 0: '
            'ordinary scheduling', range_=(0, HIGHEST), read_only=True)
    declare(node, 'lock_memory', False, 'whether to lock the memory of the node, so that it is '
            'never swapped to disk', read_only=True)


def apply_real_time(node: Any) -> None:
    """Apply the parameters of `declare_real_time`; warn if the system does not permit them."""
    if not node.has_parameter('realtime_priority'):
        return
    priority = node.get_parameter('realtime_priority').value
    problems = [] if priority == 0 else [set_priority(priority)]
    if node.get_parameter('lock_memory').value:
        problems.append(lock_memory())
    for problem in filter(None, problems):
        node.report('warning', f'{problem}; the node continues without it')


def set_priority(priority: int) -> str | None:
    """Give all threads of this process a real-time priority; return an error message or None.

    Threads and processes that are started later inherit it.

    Parameters
    ----------
    priority : int
        Priority of SCHED_FIFO, 1 to 99.
    """
    try:
        for thread in map(int, os.listdir('/proc/self/task')):
            with suppress(ProcessLookupError):  # the thread has ended
                os.sched_setscheduler(thread, os.SCHED_FIFO, os.sched_param(priority))
    except PermissionError:
        most = resource.getrlimit(resource.RLIMIT_RTPRIO)[0]
        return (f'realtime_priority is {priority}, but this user may use at most {most}; '
                f'valid: a line "{_user()} - rtprio {priority + 1}" in {LIMITS} and a new '
                'login, or a service with LimitRTPRIO')
    except (AttributeError, OSError) as error:
        return f'real-time scheduling is not available: {error}'
    return None


def lock_memory() -> str | None:
    """Lock current and future memory of this process; return an error message or None.

    With a memory limit nothing is locked, because allocations beyond the limit would fail.
    """
    most = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    remedy = (f'valid: a line "{_user()} - memlock unlimited" in {LIMITS} and a new login, or a '
              'service with LimitMEMLOCK=infinity')
    if sys.platform != 'linux':
        return 'memory can be locked on Linux only'
    if most != resource.RLIM_INFINITY and not _may_lock_all():
        return f'the memory is not locked: this user may lock {most} bytes; {remedy}'
    system = ctypes.CDLL(None, use_errno=True)
    if system.mlockall(_CURRENT | _FUTURE | _ON_FAULT) != 0:
        return f'the memory is not locked: {os.strerror(ctypes.get_errno())}; {remedy}'
    return None


def _may_lock_all() -> bool:
    """Return whether this process has the capability CAP_IPC_LOCK, which lifts the limit."""
    with open('/proc/self/status') as file:
        words = dict(line.split(':', 1) for line in file if ':' in line)
    return bool(int(words['CapEff'], 16) >> 14 & 1)


def _user() -> str:
    return os.environ.get('USER') or str(os.getuid())
