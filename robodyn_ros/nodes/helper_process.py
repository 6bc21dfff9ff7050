"""`HelperProcess`: runs work for a node in child processes, apart from its control loop.

A thread cannot be limited in time or memory, and control is blocked while a thread holds the
interpreter. `HelperProcess` is forked before the node starts any thread. On request it forks
again, and the child does one piece of work. Since it shares the memory pages of the node, starting
a child takes only some milliseconds. It leaves the terminal's process group, so that Ctrl-C and
Ctrl-Z reach only the node.

If the helper process was killed or is suspended, the next request starts a new one. Since a
process with threads cannot fork safely, the new one is a fresh interpreter (``python -m`` this
module).
"""

from __future__ import annotations

import ctypes
import gc
import os
import pickle
import resource
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

LENGTH = struct.Struct('<Q')
GIBIBYTE = 2**30
STARTS_WITHIN = 5.0  # s, time limit for the helper process to start a child
BEGINS_WITHIN = 60.0  # s, the same for a fresh interpreter
_LIBRARY = ctypes.CDLL(None)
_SIGNAL_AT_PARENTS_DEATH = 1  # PR_SET_PDEATHSIG of linux/prctl.h


class HelperError(Exception):
    """A task in a helper process failed, took too long or too much memory, or its process died."""


class HelperProcess:
    """Forks immediately; create it before any thread is started and before ROS is initialised.

    Parameters
    ----------
    tasks : mapping of str to callable
        Functions of one argument that children can run, by name; argument and result are pickled.
    """

    def __init__(self, tasks: dict[str, Callable[[Any], Any]]):
        self._tasks = tasks
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None  # of a restarted helper
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        gc.freeze()
        self.pid = os.fork()
        if self.pid == 0:
            ours.close()
            _serve(theirs, tasks)
        theirs.close()
        self._socket = ours

    def start(self, name: str, *descriptors: int) -> tuple[socket.socket, int]:
        """Start a child that runs a task; return a connection to it and its process id.

        If further file descriptors are given, the task is called with a tuple of the argument that
        was sent, its end of the connection, and the numbers of these descriptors.

        Raises
        ------
        HelperError
            There is no such task, or the helper process could not be restarted.
        """
        if name not in self._tasks:
            raise HelperError(f'the helper process has no task {name!r}; valid: '
                              f'{", ".join(self._tasks)}')
        pid = self.pid
        try:
            return self._start(STARTS_WITHIN, name, descriptors)
        except (OSError, EOFError):
            self._begin_again(pid)
        try:
            return self._start(BEGINS_WITHIN, name, descriptors)
        except (OSError, EOFError) as error:
            raise HelperError(f'the helper process cannot be restarted: {error!r}') from None

    def _start(self, seconds: float, name: str,
               descriptors: tuple[int, ...]) -> tuple[socket.socket, int]:
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                self._socket.settimeout(1.0)
                socket.send_fds(self._socket, [name.encode()], [theirs.fileno(), *descriptors])
            return ours, int(receive(ours, time.monotonic() + seconds))
        except BaseException:
            ours.close()
            raise

    def _begin_again(self, pid: int) -> None:
        """Replace the helper process with this id, unless another thread has already done so."""
        with self._lock:
            if pid != self.pid:
                return
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)  # it may be suspended
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)
            before = self._socket
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                process = subprocess.Popen(
                    [sys.executable, '-m', __name__, str(theirs.fileno())],
                    pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
            ours.send(pickle.dumps((sys.argv, self._tasks)))
            self._socket, self.pid, self._process = ours, process.pid, process
            before.close()

    def call(self, name: str, argument: Any, *, seconds: float = 60.0) -> Any:
        """Run a task in a child and return its result.

        Raises
        ------
        HelperError
            The task failed, took longer than this time, used too much memory, or its process died.
        """
        connection, pid = self.start(name)
        end = time.monotonic() + seconds
        with connection:
            try:
                send(connection, (argument, ()))
                failed, result = receive(connection, end)
            except TimeoutError:
                raise HelperError(f'it took longer than {seconds:g} s') from None
            except (OSError, EOFError, pickle.UnpicklingError):
                raise HelperError('its process died: it needed more memory than is allowed, or '
                                  'crashed') from None
            finally:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        if failed:
            raise HelperError(result)
        return result

    def close(self) -> None:
        """End the helper process, even a suspended one, and its tasks; watchdogs continue."""
        self._socket.close()
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)


def send(connection: socket.socket, value: Any) -> None:
    """Send a pickled value."""
    data = pickle.dumps(value, protocol=5)
    connection.sendall(LENGTH.pack(len(data)) + data)


def receive(connection: socket.socket, end: float | None = None) -> Any:
    """Receive a pickled value until a time of the monotonic clock.

    Raises
    ------
    TimeoutError, EOFError
        The value did not arrive in time, or the other side has closed the connection.
    """
    return pickle.loads(_read(connection, LENGTH.unpack(_read(
        connection, LENGTH.size, end))[0], end))


def _read(connection: socket.socket, count: int, end: float | None) -> bytes:
    parts = bytearray()
    while len(parts) < count:
        connection.settimeout(None if end is None else max(end - time.monotonic(), 1e-3))
        part = connection.recv(min(count - len(parts), 1 << 20))
        if not part:
            raise EOFError
        parts += part
    return bytes(parts)


def limit_memory(more: int) -> None:
    """Limit the memory of this process to some bytes more than it uses now."""
    with open('/proc/self/statm') as file:
        pages = int(file.read().split()[0])
    with suppress(ValueError, OSError):
        most = pages * resource.getpagesize() + more
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _serve(requests: socket.socket, tasks: dict[str, Callable[[Any], Any]]) -> None:
    """Fork for every request until the node has ended; never returns."""
    with suppress(OSError):
        os.setsid()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children are not waited for
    code = 1
    try:
        while True:
            data, descriptors, *_ = socket.recv_fds(requests, 200, 8)
            if not data:
                code = 0
                break
            if os.fork() == 0:
                requests.close()
                code = _run_task(tasks[data.decode()], *descriptors)
                break
            for descriptor in descriptors:
                os.close(descriptor)
    finally:
        os._exit(code)


def _run_task(task: Callable[[Any], Any], descriptor: int, *others: int) -> int:
    """Run one task in a child of the helper process."""
    with socket.socket(fileno=descriptor) as connection:
        if not others:  # a child that waits or is stopped must not outlive the node
            _LIBRARY.prctl(_SIGNAL_AT_PARENTS_DEATH, signal.SIGKILL, 0, 0, 0)
        send(connection, os.getpid())
        argument, _ = receive(connection)
        if others:
            task((argument, connection, others))
            return 0
        try:
            limit_memory(2 * GIBIBYTE)
            result = False, task(argument)
        except MemoryError:
            result = True, 'it needs more memory than is allowed'
        except BaseException as error:  # every error is reported to the node
            result = True, f'{type(error).__name__}: {error}'[:2000]
        with suppress(BrokenPipeError):
            send(connection, result)
    return 0


def main() -> None:
    """Serve in place of a helper process that died; its tasks are sent through the socket."""
    requests = socket.socket(fileno=int(sys.argv[1]))
    with suppress(OSError):  # children of a real-time node have ordinary priority
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    sys.argv, tasks = pickle.loads(requests.recv(1 << 20))
    _serve(requests, tasks)


if __name__ == '__main__':
    main()
