"""The command `robodyn`, as a user runs it."""

import os
import subprocess
import sys

import pytest
from robots import planar_2r

from robodyn_ros import __version__


def robodyn(*arguments, timeout=120):
    environment = {**os.environ, 'ROS_DOMAIN_ID': str(1 + os.getpid() % 99)}
    return subprocess.run([sys.executable, '-m', 'robodyn_ros.cli', *arguments], env=environment,
                          capture_output=True, text=True, timeout=timeout)


def test_help_and_version():
    assert 'demo' in robodyn('--help').stdout
    assert robodyn('--version').stdout.strip() == __version__
    assert robodyn().returncode == 2 and robodyn('dance').returncode == 2


def test_demo_ends_by_itself_with_a_summary(tmp_path):
    pytest.importorskip('rclpy', reason='ROS 2 is not set up')
    picture = tmp_path / 'demo.svg'
    ran = robodyn('demo', '--seconds', '3', '--picture', str(picture))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert 'every value agrees with the core' in ran.stdout and 'panda_joint7' in ran.stdout
    assert 'mass_matrix' in ran.stdout and 'median' in ran.stdout
    assert picture.read_text().startswith('<svg')


def test_demo_of_another_robot(tmp_path):
    pytest.importorskip('rclpy', reason='ROS 2 is not set up')
    path = tmp_path / 'planar.urdf'
    path.write_text(planar_2r())
    ran = robodyn('demo', '--seconds', '2', '--urdf', str(path))
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_bad_arguments_are_answered_in_one_line(tmp_path):
    broken = tmp_path / 'broken.urdf'
    broken.write_text('<robot name="r"><link name="a"/></robot>')
    for arguments, culprit in ((('--urdf', str(tmp_path / 'none.urdf')), 'cannot be read'),
                               (('--urdf', str(broken)), 'no joint that moves'),
                               (('--seconds', '0'), '--seconds')):
        ran = robodyn('demo', *arguments)
        assert ran.returncode == 2 and culprit in ran.stderr and 'Traceback' not in ran.stderr
        assert len(ran.stderr.strip().splitlines()) == 1
