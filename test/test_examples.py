"""The numbered scripts in `examples/` run as they are."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / 'examples'
SCRIPTS = sorted(EXAMPLES.glob('*.py'))


@pytest.mark.slow
@pytest.mark.parametrize('script', SCRIPTS, ids=lambda path: path.stem)
def test_example_runs(script):
    ran = subprocess.run([sys.executable, str(script)], capture_output=True, text=True,
                         timeout=200)
    assert ran.returncode == 0, ran.stderr
    assert len(ran.stdout.splitlines()) > 3
    if 'identify' in script.stem:
        assert 'verdict: good' in ran.stdout


@pytest.mark.slow
@pytest.mark.skipif(None in map(shutil.which, ('cmake', 'g++')), reason='needs cmake and g++')
def test_the_cpp_controller_holds_and_tracks(tmp_path):
    """Exported dynamics in a C++ loop with MuJoCo, 2 s of each control law, without waiting."""
    pytest.importorskip('mujoco')
    commands = (
        [sys.executable, EXAMPLES / 'controller/prepare.py', tmp_path],
        ['cmake', '-S', EXAMPLES / 'controller', '-B', tmp_path / 'build', f'-DFOLDER={tmp_path}'],
        ['cmake', '--build', tmp_path / 'build'],
        [tmp_path / 'build/controller', tmp_path / 'robot.mjb', '2', '--no-wait'])
    for command in commands:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=200)
        assert ran.returncode == 0, ran.stdout + ran.stderr
    words = ran.stdout.split()
    drift, rms = (float(words[words.index(word) + 1]) for word in ('drift', 'rms'))
    assert drift < 1e-3 and rms < 1e-3, ran.stdout
