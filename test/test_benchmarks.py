"""The benchmarks of `make bench`."""

import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).parent.parent / 'benchmarks/run.py'


def test_all_benchmarks_can_be_imported_together():
    """Also those that have the name of a helper of the tests; an unknown name is refused."""
    pytest.importorskip('rclpy')
    ended = subprocess.run([sys.executable, RUN, 'nothing'], capture_output=True, text=True,
                           timeout=120)
    assert ended.returncode == 1
    assert 'unknown benchmark in nothing; valid: speed, floating_base, ' in ended.stderr
