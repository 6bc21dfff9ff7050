"""Exported C as a package: built by CMake and by colcon, and used by another one."""

import os
import shutil
import subprocess
import sys

import pytest
from exports import CONSUMER, compilers

GCC, GXX = compilers()
pytestmark = pytest.mark.skipif(GCC is None or GXX is None,
                                reason='gcc and g++ are not there')

PLAIN = '''
cmake_minimum_required(VERSION 3.16)
project(consumer LANGUAGES C CXX)
find_package(arm_dynamics 1.0 REQUIRED)
add_executable(consumer main.cpp)
target_link_libraries(consumer PRIVATE arm_dynamics::arm_dynamics)
target_compile_features(consumer PRIVATE cxx_std_17)
'''


def build(*command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True,
                          timeout=300, **options)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_cmake_package_and_its_consumer(folders, tmp_path):
    cmake = shutil.which('cmake')
    if cmake is None:
        pytest.skip('cmake is not there')
    prefix, user = tmp_path / 'prefix', tmp_path / 'user'
    # a plain CMake: no ament, wherever the machine has it
    build(cmake, '-S', folders('parametric'), '-B', tmp_path / 'build',
          f'-DCMAKE_INSTALL_PREFIX={prefix}', '-DCMAKE_DISABLE_FIND_PACKAGE_ament_cmake=ON')
    build(cmake, '--build', tmp_path / 'build')
    build(cmake.replace('cmake', 'ctest') if shutil.which('ctest') is None else 'ctest',
          '--test-dir', tmp_path / 'build')
    build(cmake, '--install', tmp_path / 'build')
    user.mkdir()
    (user / 'CMakeLists.txt').write_text(PLAIN)
    (user / 'main.cpp').write_text(CONSUMER)
    build(cmake, '-S', user, '-B', user / 'build', f'-DCMAKE_PREFIX_PATH={prefix}')
    build(cmake, '--build', user / 'build')
    build(user / 'build/consumer')


@pytest.mark.slow
def test_a_colcon_build(folders, tmp_path):
    """As a package in a ROS 2 workspace; another package finds it."""
    colcon = shutil.which('colcon', path=f'{os.path.dirname(sys.executable)}:{os.environ["PATH"]}')
    pytest.importorskip('ament_package', reason='ROS 2 is not set up')
    if colcon is None:
        pytest.skip('colcon is not there')
    prefix = os.environ.get('AMENT_PREFIX_PATH', sys.prefix)
    environment = {
        **os.environ, 'PATH': f'{os.path.dirname(sys.executable)}:{os.environ["PATH"]}',
        'AMENT_PREFIX_PATH': prefix, 'CMAKE_PREFIX_PATH': prefix}
    if 'AMENT_PREFIX_PATH' not in os.environ:
        environment['LD_LIBRARY_PATH'] = f'{sys.prefix}/lib'
    shutil.copytree(folders('parametric'), tmp_path / 'src/arm_dynamics')
    build(colcon, 'build', '--cmake-args', f'-DPython3_EXECUTABLE={sys.executable}',
          f'-DPYTHON_EXECUTABLE={sys.executable}', cwd=tmp_path, env=environment)
    share = tmp_path / 'install/arm_dynamics/share/arm_dynamics'
    assert (share / 'package.xml').exists() and (share / 'cmake/arm_dynamicsConfig.cmake').exists()
    user = tmp_path / 'user'
    user.mkdir()
    (user / 'CMakeLists.txt').write_text(PLAIN)
    (user / 'main.cpp').write_text(CONSUMER)
    build('cmake', '-S', user, '-B', user / 'build',
          f'-DCMAKE_PREFIX_PATH={tmp_path / "install/arm_dynamics"};{prefix}',
          f'-DPython3_EXECUTABLE={sys.executable}', env=environment)
    build('cmake', '--build', user / 'build', env=environment)
    build(user / 'build/consumer')
