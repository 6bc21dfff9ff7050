"""A headless Gazebo server for tests, which are skipped where Gazebo is not installed."""

import itertools
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from robodyn_ros.simulation.gazebo import world_sdf
from robodyn_ros.simulation.gazebo_bindings import GazeboError, load_bindings

_COUNT = itertools.count()


def why_no_gazebo():
    """Why Gazebo cannot be used here, or None."""
    if shutil.which('gz') is None:
        return 'Gazebo is not installed: there is no command gz'
    try:
        load_bindings()
    except GazeboError as error:
        return str(error)
    return None


class GazeboServer:
    """`gz sim -s`: physics without a window, paused, in a partition of its own.

    Nodes that are started while it runs find it through the environment.
    """

    def __init__(self, timestep=0.001, gravity=(0.0, 0.0, -9.80665), *options):
        os.environ['GZ_IP'] = '127.0.0.1'
        os.environ['GZ_PARTITION'] = f'test{os.getpid()}x{next(_COUNT)}'
        self._folder = tempfile.TemporaryDirectory()
        self._world = Path(self._folder.name, 'world.sdf')
        self._world.write_text(world_sdf(timestep, gravity))
        self._options = options
        self.log = Path(self._folder.name, 'log')
        self.start()

    def start(self):
        with self.log.open('a') as log:
            self._process = subprocess.Popen(
                ['gz', 'sim', '-s', '-v', '2', *self._options, str(self._world)], stdout=log,
                stderr=subprocess.STDOUT, start_new_session=True)

    def send(self, number):
        """Send a signal to the server."""
        os.killpg(self._process.pid, number)

    def end(self, number=signal.SIGINT):
        """End the server, by interrupt or by SIGKILL."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, number)
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.end()
        self._folder.cleanup()
