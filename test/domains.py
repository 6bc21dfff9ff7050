"""ROS domains for tests: none is used by two at once, in whichever worker of pytest they run."""

import itertools
import os

WORKERS = 4  # that may run side by side
EACH = 100 // WORKERS  # domains
_WORKER = int(os.environ.get('PYTEST_XDIST_WORKER', 'gw0')[2:]) % WORKERS
_COUNT = itertools.count(os.getpid())  # another run on this machine begins elsewhere


def new_domain():
    """Return the next ROS_DOMAIN_ID."""
    return str(1 + EACH * _WORKER + next(_COUNT) % EACH)
