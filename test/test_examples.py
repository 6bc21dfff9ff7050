"""The numbered scripts in `examples/` run as they are."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = sorted((Path(__file__).parent.parent / 'examples').glob('*.py'))


@pytest.mark.parametrize('script', SCRIPTS, ids=lambda path: path.stem)
def test_example_runs(script):
    ran = subprocess.run([sys.executable, str(script)], capture_output=True, text=True,
                         timeout=200)
    assert ran.returncode == 0, ran.stderr
    assert len(ran.stdout.splitlines()) > 3
    if 'identify' in script.stem:
        assert 'verdict: good' in ran.stdout
