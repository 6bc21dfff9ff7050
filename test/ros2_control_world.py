"""ros2_control for tests: builds robodyn_controllers, starts a controller manager, calls it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sysconfig
import tempfile
from pathlib import Path

import robodyn_ros as rd

ROOT = Path(__file__).parent.parent
NEEDED = ('controller_manager', 'controller_interface', 'generate_parameter_library',
          'realtime_tools')


def prefixes():
    return [Path(path) for path in os.environ.get('AMENT_PREFIX_PATH', '').split(':') if path]


def why_no_ros2_control():
    """Return why the controller cannot be tested here; '' if it can."""
    missing = [name for name in NEEDED
               if not any((path / 'share' / name).is_dir() for path in prefixes())]
    if missing:
        return f'not in AMENT_PREFIX_PATH: {", ".join(missing)}'
    return '' if shutil.which('cmake') and shutil.which('g++') else 'cmake or g++ is not there'


def has(package):
    return any((path / 'share' / package).is_dir() for path in prefixes())


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]


def build(source, folder, prefix, *options):
    """Build a CMake package of ament and install it into a prefix."""
    python = Path(sysconfig.get_path('scripts')) / 'python'
    run('cmake', '-S', source, '-B', folder, f'-DCMAKE_INSTALL_PREFIX={prefix}',
        '-DCMAKE_BUILD_TYPE=Release', '-DBUILD_TESTING=OFF', '-Wno-dev',
        f'-DPython3_EXECUTABLE={python}', f'-DPYTHON_EXECUTABLE={python}', *options)
    run('cmake', '--build', folder)
    run('cmake', '--install', folder)


def export_and_build(model, folder, prefix, name='arm', **options):
    rd.export_c(model, folder / name, prefix=name, parametric=True, own_sincos=True,
                terms=('gravity', 'friction', 'inverse_dynamics'), **options)
    build(folder / name, folder / f'{name}_build', prefix)


def description(model, start, plugin='robodyn_controllers/MujocoSystem'):
    """Return the URDF with a tag for ros2_control: efforts in, all states out."""
    joints = ''.join(
        f'<joint name="{name}"><command_interface name="effort"/>'
        f'<state_interface name="position"><param name="initial_value">{q}</param>'
        '</state_interface><state_interface name="velocity"/><state_interface name="effort"/>'
        '</joint>' for name, q in zip(model.joint_names, start, strict=True))
    tag = (f'<ros2_control name="{model.name}" type="system"><hardware><plugin>{plugin}</plugin>'
           f'</hardware>{joints}</ros2_control>')
    return model.description.urdf.replace('</robot>', tag + '</robot>')


class ControllerManager:
    """A process with the controller manager, in the domain of a world of test/ros_world.py."""

    def __init__(self, world, urdf, controllers, prefix, rate=1000):
        self.world, self.folder = world, Path(tempfile.mkdtemp())
        file = self.parameters = self.folder / 'parameters.yaml'
        types = {name: {'type': kind, 'params_file': [str(file)]}
                 for name, (kind, _) in controllers.items()}
        parameters = {'controller_manager': {'ros__parameters': {'update_rate': rate, **types}},
                      **{name: {'ros__parameters': values}
                         for name, (_, values) in controllers.items()}}
        file.write_text(json.dumps(parameters))  # YAML without aliases
        node = next(path for path in (place / 'lib/controller_manager/ros2_control_node'
                                      for place in prefixes()) if path.exists())
        environment = {**os.environ, 'AMENT_PREFIX_PATH': ':'.join(map(str, (prefix,
                                                                           *prefixes())))}
        environment['LD_LIBRARY_PATH'] = f'{prefix}/lib:{environment.get("LD_LIBRARY_PATH", "")}'
        self.log = (self.folder / 'log').open('w')
        self.process = subprocess.Popen([node, '--ros-args', '--params-file', file],
                                        env=environment, stdout=self.log, stderr=self.log)
        world.describe(urdf)

    def output(self):
        return (self.folder / 'log').read_text()

    def start(self, *names):
        """Load, configure and activate controllers; the first one is the last in the chain."""
        from controller_manager_msgs.srv import (
            ConfigureController,
            LoadController,
            SwitchController,
        )

        for name in names:
            assert self.call(LoadController, 'load_controller',
                             LoadController.Request(name=name)).ok, self.output()
            assert self.call(ConfigureController, 'configure_controller',
                             ConfigureController.Request(name=name)).ok, self.output()
        request = SwitchController.Request(
            activate_controllers=list(names), strictness=SwitchController.Request.STRICT,
            activate_asap=True)
        request.timeout.sec = 10
        assert self.call(SwitchController, 'switch_controller', request).ok, self.output()

    def call(self, kind, service, request):
        client = self.world.node.create_client(kind, f'/controller_manager/{service}')
        assert client.wait_for_service(60.0), self.output()
        self.world.spin(0.5)  # both directions must match, or the answer is lost
        future = client.call_async(request)
        self.world.wait(future.done, f'an answer of {service}')
        self.world.node.destroy_client(client)
        return future.result()

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        try:
            code = self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        self.log.close()
        return code
