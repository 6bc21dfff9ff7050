"""The command line `ros2` in processes of a test, where it is installed."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

MISSING = ('the command ros2, launch and launch_ros are on no package index; they come with a ROS '
           'distribution')


def need_ros2():
    """Skip where there is no `ros2` with this package in a sourced workspace."""
    if shutil.which('ros2') is None:
        pytest.skip(MISSING)
    from ament_index_python.packages import PackageNotFoundError, get_package_prefix

    pytest.importorskip('launch_ros', reason=MISSING)
    try:
        prefix = Path(get_package_prefix('robodyn_ros'))
    except PackageNotFoundError:
        prefix = Path()
    if not (prefix / 'lib/robodyn_ros').is_dir():
        pytest.skip('no workspace with robodyn_ros is sourced')


def stop_daemon():
    """End the background process that `ros2 topic` leaves behind."""
    if shutil.which('ros2'):
        subprocess.run(['ros2', 'daemon', 'stop'], capture_output=True, timeout=60)


class Ros2:
    """One `ros2` command in a process group of its own; its output goes to a file."""

    def __init__(self, *words, cwd=None):
        self._log = tempfile.NamedTemporaryFile('w+', suffix='.ros2.log')
        self._process = subprocess.Popen(
            ['ros2', *map(str, words)], stdout=self._log, stderr=subprocess.STDOUT, cwd=cwd,
            stdin=subprocess.DEVNULL, start_new_session=True,
            env={**os.environ, 'PYTHONUNBUFFERED': '1', 'RCUTILS_COLORIZED_OUTPUT': '0'})

    @property
    def exit_code(self):
        """None while it runs."""
        return self._process.poll()

    def log(self):
        """What it and its nodes wrote so far."""
        return Path(self._log.name).read_text(errors='replace')

    def wait(self, timeout=60.0):
        """Wait for its end; return the exit code."""
        return self._process.wait(timeout)

    def wait_for(self, text, timeout=60.0):
        """Wait until a text is in its output, or it ends."""
        end = time.monotonic() + timeout
        while text not in self.log():
            assert time.monotonic() < end and self.exit_code is None, self.log()[-3000:]
            time.sleep(0.1)

    def stop(self, timeout=30.0):
        """Interrupt it as Ctrl-C does; return the exit code."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGINT)
            try:
                self._process.wait(timeout)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
        return self._process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.stop()
        self._log.close()
