"""ROS domains for tests: no two tests that run at once on this machine share one."""

import fcntl
import itertools
import os
import tempfile
from pathlib import Path

COUNT = 100  # domains 1 to 100; from 102 on their ports are those of outgoing connections
_FOLDER = Path(tempfile.gettempdir()) / f'robodyn_test_domains_{os.getuid()}'
# nodes that ended a moment ago may still be heard, so that each test takes another domain
_NEXT = itertools.count(os.getpid())
_LOCKS = {}


def new_domain():
    """Return a ROS_DOMAIN_ID that this process holds until `release_domain` or its end."""
    _FOLDER.mkdir(exist_ok=True)
    for _ in range(COUNT):
        domain = str(1 + next(_NEXT) % COUNT)
        lock = os.open(_FOLDER / domain, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            continue
        _LOCKS[domain] = lock
        return domain
    raise RuntimeError(f'all {COUNT} ROS domains are in use: {_FOLDER} holds their locks')


def release_domain(domain):
    """Let other tests use a domain in which every process has ended."""
    os.close(_LOCKS.pop(domain))
