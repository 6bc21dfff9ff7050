"""The command `robodyn`, as a user runs it."""

import os
import subprocess
import sys

import pytest
from domains import new_domain
from robots import PANDA_URDF, planar_2r

import robodyn_ros as rd
from robodyn_ros import __version__


def robodyn(*arguments, timeout=300):
    environment = {**os.environ, 'ROS_DOMAIN_ID': new_domain()}
    return subprocess.run([sys.executable, '-m', 'robodyn_ros.cli', *arguments], env=environment,
                          capture_output=True, text=True, timeout=timeout)


def test_help_and_version():
    assert 'demo' in robodyn('--help').stdout
    assert robodyn('--version').stdout.strip() == __version__
    assert robodyn().returncode == 2 and robodyn('dance').returncode == 2


def test_demo_closes_the_loop_and_ends_by_itself(tmp_path):
    """PD alone, then with the model; table, picture, plot and bag."""
    pytest.importorskip('rclpy', reason='ROS 2 is not set up')
    picture, plot, bag = tmp_path / 'demo.svg', tmp_path / 'errors.png', tmp_path / 'bag'
    ran = robodyn('demo', '--seconds', '6', '--picture', str(picture), '--plot', str(plot),
                  '--record', str(bag))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    for words in ('PD alone', 'feed-forward + PD', 'panda_joint7', 'agrees with the core'):
        assert words in ran.stdout
    assert_five_times_better(ran)
    assert picture.read_text().startswith('<svg') and plot.stat().st_size > 10_000
    log = rd.read_log(bag, rd.load_model(PANDA_URDF))
    kept = next(line for line in ran.stdout.splitlines() if ' messages in ' in line)
    assert len(log) > 0.4 * int(kept.split()[0]) and log.duration > 3.0  # both laws
    assert robodyn('demo', '--record', str(bag)).returncode == 2  # nothing is overwritten


def assert_five_times_better(ran):
    whole = next(line for line in ran.stdout.splitlines() if line.startswith('│ all'))
    plain, helped = (float(cell) for cell in whole.replace('│', '|').split('|')[2:4])
    assert helped < plain / 5, ran.stdout


def test_demo_of_another_robot(tmp_path):
    pytest.importorskip('rclpy', reason='ROS 2 is not set up')
    path = tmp_path / 'planar.urdf'
    path.write_text(planar_2r())
    ran = robodyn('demo', '--seconds', '6', '--urdf', str(path))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert_five_times_better(ran)


def test_bad_arguments_are_answered_in_one_line(tmp_path):
    broken = tmp_path / 'broken.urdf'
    broken.write_text('<robot name="r"><link name="a"/></robot>')
    for arguments, culprit in ((('--urdf', str(tmp_path / 'none.urdf')), 'cannot be read'),
                               (('--urdf', str(broken)), 'no joint that moves'),
                               (('--seconds', '0'), '--seconds')):
        ran = robodyn('demo', *arguments)
        assert ran.returncode == 2 and culprit in ran.stderr and 'Traceback' not in ran.stderr
        assert len(ran.stderr.strip().splitlines()) == 1
