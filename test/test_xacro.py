"""xacro runs code: what an expansion may do, and what it may not."""

import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest
from robots import planar_2r

import robodyn_ros as rd
from robodyn_ros.commands.main import main
from robodyn_ros.description import xacro_process
from robodyn_ros.description.urdf import read_text

HEAD = '<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">'
# xacro looks for forbidden names in an expression, but not within a lambda in it
ESCAPE = ("(lambda: [c for c in ().__class__.__base__.__subclasses__() if c.__name__ == "
          "'_wrap_close'][0].__init__.__globals__)()")
REFUSED = 'xacro: (PermissionError|ZeroDivisionError|error|RuntimeError).*--trust'


def xacro(folder: Path, expression: str, name: str = 'arm.xacro') -> Path:
    """A robot whose xacro evaluates an expression."""
    path = folder / name
    path.write_text(HEAD + f'<note value="${{{expression}}}"/>' + planar_2r().partition('>')[2])
    return path


def test_a_trusted_xacro_can_run_code(tmp_path):
    mark = tmp_path / 'mark'
    path = xacro(tmp_path, f"{ESCAPE}['system']('touch {mark}')")
    assert rd.load_model(path, trust_xacro=True).n == 2 and mark.exists()


def harm(folder: Path, port: int) -> dict[str, str]:
    """Expressions that do what no description should do."""
    mark = folder / 'mark'
    imported = f"{ESCAPE}['__builtins__']['__import__']"
    return {
        'a command': f"{ESCAPE}['system']('touch {mark}') == 0 or 1/0",
        'a process': f"{ESCAPE}['fork']()",
        'a program': f"{ESCAPE}['execv']('/bin/touch', ['touch', '{mark}'])",
        'a file': f"{ESCAPE}['__builtins__']['open']('{mark}', 'w')",
        'appending': f"{ESCAPE}['__builtins__']['open']('{folder}/kept', 'a')",
        'a folder': f"{ESCAPE}['mkdir']('{mark}')",
        'removal': f"{ESCAPE}['remove']('{folder}/kept')",
        'renaming': f"{ESCAPE}['rename']('{folder}/kept', '{mark}')",
        'a link': f"{ESCAPE}['symlink']('/', '{mark}')",
        'permissions': f"{ESCAPE}['chmod']('{folder}/kept', 0)",
        'a signal': f"{ESCAPE}['kill']({os.getpid()}, {int(signal.SIGUSR1)})",
        'the network': f"{imported}('socket').create_connection(('127.0.0.1', {port}))",
        'typing into a terminal': f"{imported}('fcntl').ioctl(0, 0x5412, b'x')",
        'a thread': f"{imported}('_thread').start_new_thread(len, ('',))",
    }


def test_a_sandboxed_xacro_cannot_do_harm(tmp_path):
    (tmp_path / 'kept').write_text('kept')
    received = []
    before = signal.signal(signal.SIGUSR1, lambda *_: received.append(1))
    with socket.create_server(('127.0.0.1', 0)) as server:
        server.settimeout(0.0)
        try:
            for what, expression in harm(tmp_path, server.getsockname()[1]).items():
                path = xacro(tmp_path, expression)
                with pytest.raises(rd.DescriptionError, match=REFUSED):
                    rd.load_model(path)
                path.unlink()
                assert sorted(p.name for p in tmp_path.iterdir()) == ['kept'], what
            with pytest.raises(BlockingIOError):
                server.accept()
        finally:
            signal.signal(signal.SIGUSR1, before)
    assert not received and (tmp_path / 'kept').read_text() == 'kept'
    assert os.access(tmp_path / 'kept', os.R_OK)


def test_a_xacro_can_forge_nothing_but_its_own_answer(tmp_path):
    for written in ("'[' * 100000", "'5'", "'null'", "'x'"):
        path = xacro(tmp_path, f"{ESCAPE}['write'](1, ({written}).encode())")
        with pytest.raises(rd.DescriptionError, match='wrote to the standard output'):
            rd.load_model(path)


def test_limits_of_an_expansion(tmp_path, monkeypatch):
    monkeypatch.setattr(xacro_process, 'CPU_TIME', 1)
    monkeypatch.setattr(xacro_process, 'WALL_TIME', 10.0)
    started = time.monotonic()
    for expression, reason in (('9 ** 9 ** 9', 'took more than 1 s'),
                               ("len('x' * 10 ** 11)", 'MemoryError|limit of memory')):
        with pytest.raises(rd.DescriptionError, match=reason):
            rd.load_model(xacro(tmp_path, expression))
    assert time.monotonic() - started < 30
    monkeypatch.setattr(xacro_process, 'MAX_BYTES', 10_000)
    with pytest.raises(rd.DescriptionError, match='ended with code'):
        rd.load_model(xacro(tmp_path, "'x' * 10 ** 5"))
    fifo = tmp_path / 'fifo.xacro'
    os.mkfifo(fifo)
    with pytest.raises(rd.DescriptionError, match='FIFO'):
        rd.load_model(fifo)


def test_xacro_is_rejected_where_there_is_no_sandbox(tmp_path, monkeypatch, capsys):
    child = tmp_path / 'child.py'
    child.write_text(Path(xacro_process._CHILD).read_text().replace(
        "machine = _MACHINES.get(platform.machine())", 'machine = None'))
    (tmp_path / 'packages.py').write_text(
        Path(xacro_process._CHILD).with_name('packages.py').read_text())
    monkeypatch.setattr(xacro_process, '_CHILD', child)
    path = xacro(tmp_path, '1')
    with pytest.raises(rd.DescriptionError, match='offers no sandbox.*trust'):
        rd.load_model(path)
    assert main(['check', str(path)]) == 2 and '--trust' in capsys.readouterr().err
    assert main(['check', str(path), '--trust']) in (0, 1)


def test_the_environment_of_an_expansion_is_small(tmp_path, monkeypatch):
    monkeypatch.setenv('SECRET_TOKEN', 'hunter2')
    path = tmp_path / 'arm.xacro'
    path.write_text(HEAD + '<link name="$(optenv SECRET_TOKEN none)"/></robot>')
    assert 'hunter2' not in read_text(path) and 'hunter2' in read_text(path, trust_xacro=True)
    path.write_text(HEAD + '<link name="$(env SECRET_TOKEN)"/></robot>')
    with pytest.raises(rd.DescriptionError, match='SECRET_TOKEN. is not set.*--trust'):
        read_text(path)


def test_packages_are_found_without_ros(tmp_path, monkeypatch):
    package = tmp_path / 'checkout' / 'my_arm'
    (package / 'urdf').mkdir(parents=True)
    (package / 'package.xml').write_text('<package><name>my_arm_description</name></package>')
    (package / 'urdf/part.xacro').write_text(HEAD + '<link name="included"/></robot>')
    path = package / 'urdf/arm.xacro'
    for name in ('my_arm_description', 'my_arm'):
        path.write_text(HEAD + f'<xacro:include filename="$(find {name})/urdf/part.xacro"/>'
                        '</robot>')
        assert 'included' in read_text(path)
    path.write_text(HEAD + '<xacro:include filename="$(find ghost)/part.xacro"/></robot>')
    with pytest.raises(rd.DescriptionError, match=r'xacro: \$\(find ghost\): there is no such '
                       r'package; valid: a package in (?!.*find ghost).*ROS_PACKAGE_PATH'):
        read_text(path)
    for variable, folder in (('AMENT_PREFIX_PATH', 'share/ghost'), ('ROS_PACKAGE_PATH', 'ghost')):
        (tmp_path / variable / folder).mkdir(parents=True)
        (tmp_path / variable / folder / 'part.xacro').write_text(
            HEAD + f'<link name="{variable}"/></robot>')
        with monkeypatch.context() as patch:
            patch.setenv(variable, str(tmp_path / variable))
            assert variable in read_text(path)


def test_an_expansion_leaves_no_process(tmp_path):
    read_text(xacro(tmp_path, '1'))
    children = subprocess.run(['ps', '-o', 'args=', '--ppid', str(os.getpid())],
                              capture_output=True, text=True, check=False).stdout
    assert 'xacro_child' not in children
