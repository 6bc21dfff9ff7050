"""Starts nodes as processes, and ends them."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any


class NodeProcess:
    """A node of this package as a process, whose output goes to a file.

    Parameters
    ----------
    name : str
        Module under ``robodyn_ros.nodes``.
    arguments : sequence of str
        Command-line arguments, like those of ``ros2 run robodyn_ros NAME``.
    """

    def __init__(self, name: str, *arguments: str):
        self.name = name
        self._log = tempfile.NamedTemporaryFile('w+', suffix=f'.{name}.log', delete=False)
        self._process = subprocess.Popen(
            [sys.executable, '-m', f'robodyn_ros.nodes.{name}', *arguments],
            stdout=self._log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
            env={**os.environ, 'PYTHONUNBUFFERED': '1'})

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """Exit code; None while the process runs."""
        return self._process.poll()

    def log(self) -> str:
        """Return its output so far."""
        return Path(self._log.name).read_text(errors='replace')

    def stop(self, timeout: float = 10.0) -> int:
        """Interrupt it and return its exit code."""
        if self._process.poll() is None:
            self._process.send_signal(2)
            try:
                self._process.wait(timeout)
            except subprocess.TimeoutExpired:
                self._process.kill()
        return self._process.wait()

    def __enter__(self) -> NodeProcess:
        return self

    def __exit__(self, *_: Any) -> None:
        self.stop()
        self._log.close()
        Path(self._log.name).unlink(missing_ok=True)
