"""The package as others install it: with colcon, with pip, and without the optional packages."""

import ast
import os
import re
import shutil
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET
import zipfile
from importlib import import_module
from pathlib import Path

import pytest

from robodyn_ros.packages import EXTRAS, NAMES

ROOT = Path(__file__).parent.parent
ARM = ROOT / 'urdf/articulated_3r.urdf.xacro'
# a Python in which the optional packages are not installed
WITHOUT = '''
import importlib.abc, sys
class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition('.')[0] in MISSING:
            raise ModuleNotFoundError(f'No module named {name!r}', name=name)
sys.meta_path.insert(0, Missing())
'''


def python_without(missing, code, timeout=120):
    code = f'MISSING = {sorted(missing)!r}{WITHOUT}{code}'
    return subprocess.run([sys.executable, '-c', code], capture_output=True, text=True,
                          timeout=timeout)


def constant(name):
    """A constant of setup.py, which cannot be imported."""
    for node in ast.parse((ROOT / 'setup.py').read_text()).body:
        if isinstance(node, ast.Assign) and node.targets[0].id == name:
            return ast.literal_eval(node.value)
    raise AssertionError(name)


def test_the_core_needs_few_packages():
    done = python_without({*EXTRAS, 'rclpy'}, f'''
import numpy as np, robodyn_ros as rd
model = rd.load_model({str(ARM)!r})
print(rd.Dynamics(model).gravity(np.array([0.0, 0.5, -0.8])).round(3))
rd.FlexibleDynamics
try:
    rd.identify
except rd.RobodynError as error:
    print(error)
from robodyn_ros.simulation import Simulation
try:
    Simulation({str(ARM)!r})
except rd.RobodynError as error:
    print(error)
''')
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        '[ 0.    16.58   2.811]',
        "the Python package 'scipy' is missing; install it with `pip install 'scipy'`, or "
        "install the whole extra: `pip install 'robodyn_ros[identify]'`",
        "the Python package 'mujoco' is missing; install it with `pip install 'mujoco'`, or "
        "install the whole extra: `pip install 'robodyn_ros[sim]'`"]


@pytest.mark.parametrize('command, code', [
    ((f'check {ARM}'), 0), (f'motors {ARM}', 0), (f'excite {ARM} -o out.yaml', 2),
    ('identify log.db3', 2), ('demo', 2)])
def test_commands_name_the_package_to_install(command, code, tmp_path):
    done = python_without(EXTRAS, f'''
import os
os.chdir({str(tmp_path)!r})
from robodyn_ros.commands.main import main
raise SystemExit(main({command.split()!r}))
''')
    assert done.returncode == code, done.stderr
    assert 'Traceback' not in done.stderr
    if code:
        assert 'pip install' in done.stderr and done.stderr.count('\n') == 1


def test_executables_of_nodes_say_that_they_need_ros():
    done = python_without({'rclpy', 'diagnostic_msgs', 'geometry_msgs', 'action_msgs'}, '''
from robodyn_ros.commands import executables
raise SystemExit(executables.dynamics())
''')
    assert done.returncode == 2 and done.stderr.count('\n') == 1, done.stderr
    assert done.stderr.startswith('robodyn-dynamics: nodes need ROS 2 (')


def test_the_view_needs_only_the_packages_of_its_extra():
    done = python_without(set(EXTRAS) - set(constant('EXTRAS')['view']), 'import robodyn_ros.view')
    assert done.returncode == 0, done.stderr


def test_every_optional_package_is_in_an_extra():
    extras = constant('EXTRAS')
    for name, extra in EXTRAS.items():
        assert NAMES.get(name, name) in extras[extra]
    wanted = {line for line in (ROOT / 'requirements.in').read_text().splitlines() if line}
    for names in extras.values():
        assert set(names) <= wanted


@pytest.mark.nodes
def test_a_simulator_without_its_engine_ends(world, monkeypatch, tmp_path):
    from robodyn_ros.nodes.processes import NodeProcess

    (tmp_path / 'mujoco.py').write_text("raise ImportError('no engine')")
    monkeypatch.setenv('PYTHONPATH', str(tmp_path))
    with NodeProcess('simulator') as process:
        world.wait(lambda: process.exit_code is not None, 'its end', 30.0)
        assert process.exit_code == 2
        assert "the Python package 'mujoco' is missing; install it with" in process.log()


@pytest.mark.nodes
@pytest.mark.parametrize('bad', ['rate:=0.0', 'rate:=fast', 'brakes:=3'])
def test_a_node_with_a_parameter_that_it_cannot_take_ends(world, bad):
    from robodyn_ros.nodes.processes import NodeProcess

    with NodeProcess('simulator', '--ros-args', '-p', bad) as process:
        world.wait(lambda: process.exit_code is not None, 'its end', 30.0)
        assert process.exit_code == 2
        assert bad.partition(':')[0] in process.log() and 'Traceback' not in process.log()


@pytest.mark.nodes
def test_a_node_ends_although_the_middleware_hangs(world, tmp_path):
    """`ros2 launch` would end it by SIGTERM 5 s after an interrupt, and report an error."""
    script = tmp_path / 'hangs.py'
    script.write_text("""
import threading
from robodyn_ros.nodes import running
from robodyn_ros.nodes.dynamics import DynamicsPublisher

class Hangs(DynamicsPublisher):
    def destroy_node(self):
        threading.Event().wait()

running.ENDS_WITHIN = 0.2
raise SystemExit(running.run(Hangs))
""")
    process = subprocess.Popen([sys.executable, script])
    try:
        world.wait(lambda: 'dynamics' in world.diagnostics, 'the node')
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()


def keys(kind, file='package.xml'):
    return [element.text for element in ET.parse(ROOT / file).getroot().iter(kind)]


def test_every_imported_package_is_declared():
    """ROS packages and Python packages that the code imports are dependencies of package.xml."""
    imported = set()
    for path in [*(ROOT / 'robodyn_ros').rglob('*.py'), *(ROOT / 'launch').glob('*.py')]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition('.')[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                imported.add(node.module.partition('.')[0])
    imported |= set(EXTRAS)
    declared = set(keys('exec_depend'))
    names = {'yaml': 'python3-yaml', 'urdf_parser_py': 'urdfdom_py', 'llvmlite': 'python3-numba',
             'mujoco': 'python3-mujoco-pip', 'rosbags': 'python3-rosbags-pip',
             'trimesh': 'python3-trimesh-pip',
             'threadpoolctl': 'python3-sklearn'}  # which depends on it
    # docs/tutorials/installation.md names these
    without_a_rule = {'clarabel', 'distributed', 'duckdb', 'fsspec', 'plotly', 'pyarrow', 'viser'}
    page = (ROOT / 'docs/tutorials/installation.md').read_text()
    assert all(name in page for name in without_a_rule)
    for_checkers = {'typing_extensions'}  # under TYPE_CHECKING; every type checker brings it
    others = imported - set(sys.stdlib_module_names) - without_a_rule - for_checkers - {
        'robodyn_ros'}
    assert {names.get(name, name) for name in others} - declared <= {
        name.removeprefix('python3-') for name in declared}
    assert 'action_msgs' in keys('depend', 'robodyn_interfaces/package.xml')


@pytest.mark.parametrize('file', ['package.xml', 'robodyn_interfaces/package.xml'])
def test_the_address_of_the_maintainer_is_no_example(file):
    maintainer = next(ET.parse(ROOT / file).getroot().iter('maintainer'))
    assert 'example' not in maintainer.get('email')


def copy_repository(target, without):
    """Copy the files that git tracks or does not ignore, except those below a folder."""
    files = subprocess.run(['git', 'ls-files', '-co', '--exclude-standard'], cwd=ROOT,
                           capture_output=True, text=True)
    if files.returncode:
        pytest.skip('the repository is not under git here')
    for name in files.stdout.splitlines():
        if (ROOT / name).is_file() and not name.startswith(without):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)


@pytest.mark.slow
def test_a_workspace_built_with_colcon(tmp_path):
    """An empty workspace with the repository in src/, as the installation page has it."""
    colcon = shutil.which('colcon', path=f'{Path(sys.executable).parent}:{os.environ["PATH"]}')
    if colcon is None:
        pytest.skip('colcon is not installed')
    copy_repository(tmp_path / 'src/robodyn_ros', without='test/data')
    environment = os.environ | {
        'COLCON_DEFAULTS_FILE': os.devnull,
        'PATH': f'{Path(sys.executable).parent}:{os.environ["PATH"]}'}
    paths = 'src/robodyn_ros', 'src/robodyn_ros/robodyn_interfaces'
    assert f'--base-paths {" ".join(paths)}' in (
        ROOT / 'docs/tutorials/installation.md').read_text()
    listed = subprocess.run([colcon, 'list', '--names-only', '--base-paths', *paths],
                            cwd=tmp_path, env=environment, capture_output=True, text=True)
    if "invalid choice: 'list'" not in listed.stderr:
        assert sorted(listed.stdout.split()) == ['robodyn_interfaces', 'robodyn_ros']
    # the interfaces are those of the environment: building them takes minutes
    done = subprocess.run([colcon, 'build', '--base-paths', paths[0]], cwd=tmp_path,
                          env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    prefix = tmp_path / 'install/robodyn_ros'
    for name in ('lib/robodyn_ros/dynamics', 'lib/robodyn_ros/simulator', 'bin/robodyn'):
        assert (prefix / name).read_text().splitlines()[0] == '#!/usr/bin/env python3'
        assert os.access(prefix / name, os.X_OK)
    share = prefix / 'share/robodyn_ros'
    for name in ('launch/experiment.launch.py', 'config/experiment.yaml', 'urdf/scara.urdf.xacro',
                 'docs/reference/conventions.md', 'examples/ros2_control/controllers.yaml'):
        assert (share / name).is_file()
    said = subprocess.run(['sh', '-c', '. install/setup.sh && command -v robodyn && robodyn '
                           '--version'], cwd=tmp_path, env=environment, capture_output=True,
                          text=True, timeout=60)
    assert said.stdout.splitlines()[0] == str(prefix / 'bin/robodyn'), said.stderr
    assert said.returncode == 0


@pytest.mark.slow
def test_a_wheel_has_all_files_and_no_common_names_on_path(tmp_path):
    """Built by pip from the files under version control."""
    source = tmp_path / 'source'
    copy_repository(source, without='test/')
    done = subprocess.run([sys.executable, '-m', 'pip', 'wheel', '-q', '--no-deps',
                           '--no-build-isolation', '-w', tmp_path, source],
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(next(tmp_path.glob('*.whl'))) as wheel:
        names = wheel.namelist()
        text = {name.rpartition('/')[2]: wheel.read(name).decode() for name in names
                if name.endswith(('dist-info/METADATA', 'dist-info/entry_points.txt'))}
    assert {f'robodyn_ros/{path.relative_to(ROOT / "robodyn_ros")}' for path in
            (ROOT / 'robodyn_ros').rglob('*') if path.suffix in ('.py', '.typed', '.jinja')
            } <= set(names)
    scripts = [line.partition(' = ')[0] for line in text['entry_points.txt'].splitlines()
               if ' = ' in line]
    assert 'robodyn' in scripts and 'robodyn-dynamics' in scripts
    assert all(name == 'robodyn' or name.startswith('robodyn-') for name in scripts)
    for target in re.findall(r' = (\S+)$', text['entry_points.txt'], re.MULTILINE):
        module, _, function = target.partition(':')
        assert callable(getattr(import_module(module), function)), target
    for extra in constant('EXTRAS'):
        assert f'Provides-Extra: {extra}' in text['METADATA']
    assert 'Description-Content-Type: text/markdown' in text['METADATA']


def test_pages_that_messages_cite_exist():
    cited = set()
    for path in (ROOT / 'robodyn_ros').rglob('*.py'):
        for word in path.read_text().replace('(', ' ').replace(')', ' ').replace("'", ' ').split():
            if word.startswith('docs/') and '.md' in word:
                cited.add(word[:word.index('.md') + 3])
    assert cited
    for page in cited:
        assert (ROOT / page).is_file(), page
