"""The compiler of kernels: its cache of machine code, LLVM's options, and forks."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

import robodyn_ros as rd
from robodyn_ros.kernels import code_cache, compiler


def constant_kernel(value):
    """IR of a function that stores a number."""
    double = compiler.native_pointers().to('double')
    return (f'define void @NAME({double} %in, {double} %out) {{\n'
            f'  store double {value}, {double} %out\n  ret void }}')


def computed(text, fresh=None):
    """The number that a function of constant_kernel stores, compiled by a new compiler."""
    fresh = fresh or compiler.Compiler()
    address = fresh.address('a key', lambda name: text.replace('NAME', name))
    out = ctypes.c_double()
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(address)(None, ctypes.addressof(out))
    return out.value


def test_machine_code_is_kept_and_damaged_files_are_not_trusted(tmp_path, monkeypatch):
    monkeypatch.setenv('ROBODYN_CACHE_DIR', str(tmp_path / 'cache'))
    text = constant_kernel(4.0)
    assert computed(text) == 4.0
    kept, = (tmp_path / 'cache').iterdir()
    digest = kept.stem
    assert code_cache.load(digest) is not None
    damaged = bytearray(kept.read_bytes())
    damaged[-1] ^= 1
    kept.write_bytes(bytes(damaged))
    assert code_cache.load(digest) is None
    kept.write_bytes(b'')
    assert code_cache.load(digest) is None
    monkeypatch.setenv('ROBODYN_CACHE_DIR', str(tmp_path / 'file'))
    (tmp_path / 'file').write_text('not a directory')
    assert computed(constant_kernel(5.0)) == 5.0
    monkeypatch.setenv('ROBODYN_CACHE_DIR', '')
    assert code_cache.cache_directory() is None and code_cache.load(digest) is None


@pytest.mark.skipif(not hasattr(os, 'getuid'), reason='no owners and modes of files here')
def test_machine_code_that_others_may_write_is_not_used(tmp_path, monkeypatch):
    cache = tmp_path / 'cache'
    monkeypatch.setenv('ROBODYN_CACHE_DIR', str(cache))
    code_cache.save('digest', b'machine code')
    kept = cache / 'digest.o'
    assert cache.stat().st_mode & 0o777 == 0o700 and kept.stat().st_mode & 0o777 == 0o600
    assert code_cache.load('digest') == b'machine code'
    for mode in (0o620, 0o602, 0o666):
        kept.chmod(mode)
        assert code_cache.load('digest') is None
    kept.chmod(0o644)
    assert code_cache.load('digest') == b'machine code'
    other = tmp_path / 'elsewhere.o'
    kept.rename(other)
    kept.symlink_to(other)
    assert code_cache.load('digest') is None
    kept.unlink()
    other.rename(kept)
    for mode in (0o770, 0o777, 0o1777):
        cache.chmod(mode)
        code_cache._warn.cache_clear()
        with pytest.warns(UserWarning, match='may be written by others.*ROBODYN_CACHE_DIR'):
            assert code_cache.load('digest') is None
        code_cache.save('another', b'more')
        assert not (cache / 'another.o').exists() and len(list(cache.iterdir())) == 1
    cache.chmod(0o700)
    assert code_cache.load('digest') == b'machine code'
    monkeypatch.setattr(os, 'getuid', lambda: 4242)  # only files of root are trusted
    strangers = [os.stat_result((0o100600, 1, 1, 1, uid, 0, 1, 0, 0, 0)) for uid in (0, 4242, 7)]
    assert [code_cache._problem(found) for found in strangers] == [
        '', '', 'belongs to the user 7']


def test_llvm_options_are_left_as_they_were_found():
    """In a new process: LLVM's options are global, and other libraries use LLVM as well."""
    script = '''
import os, sys
os.environ['ROBODYN_CACHE_DIR'] = ''
import llvmlite.binding as llvm
from robodyn_ros.kernels import Kernel, KernelSpec, compiler
compiler._initialize()
if sys.argv[1] == 'off':
    llvm.set_option('', '-enable-misched=0')
before = compiler._probe()
Kernel(KernelSpec('key', ('a',), (2,), (1,), lambda a: a[:1] + a[1:])).single([1.0, 2.0])
assert compiler._probe() == before
print('on' if before != b'' else '', end='')
with compiler._without_machine_scheduler():
    changed = compiler._probe() != before
print(changed, compiler._probe() == before)
'''
    fixed = llvm_version() < compiler.REPEATABLE_OPTIONS
    for found in ('on', 'off'):
        done = subprocess.run([sys.executable, '-c', script, found], capture_output=True,
                              text=True, check=True)
        changes = found == 'on' and not fixed
        assert done.stdout.split() == [f'on{changes}', 'True'] and not done.stderr


def llvm_version():
    import llvmlite.binding as llvm
    return llvm.llvm_version_info[0]


def test_an_old_llvmlite_is_refused():
    for version in ('0.38.1', '0.9.0'):
        with pytest.raises(rd.RobodynError, match=f'^llvmlite is {version}; valid: 0.39 or newer'):
            compiler.check_version(version)
    for version in ('0.39.1', '0.42.0', '0.50.0', '1.0.0rc1', 'unknown'):
        compiler.check_version(version)


@pytest.mark.skipif(not hasattr(os, 'fork'), reason='no fork here')
def test_a_fork_while_another_thread_compiles_does_not_hang():
    script = '''
import os, sys, threading
os.environ['ROBODYN_CACHE_DIR'] = ''
import numpy as np
from robodyn_ros.kernels import Kernel, KernelSpec, compiler

def kernel(k):
    spec = KernelSpec(f'key {k}', ('a',), (1,), (1,), lambda a: a * float(k))
    return Kernel(spec, threads=2)

many = np.ones((300000, 1))
assert kernel(1).general(many).sum() == 300000  # with a thread, which a child does not have
entered, leave = threading.Event(), threading.Event()

def write(name):
    entered.set()
    leave.wait(20)
    return kernel(2)._write(name, batch=False)

thread = threading.Thread(target=lambda: compiler.COMPILER.address('slow', write))
thread.start()
entered.wait(20)
threading.Timer(0.2, leave.set).start()
child = os.fork()
if not child:
    ok = kernel(3).single(np.ones(1)) == 3.0 and kernel(1).general(many).sum() == 300000
    os._exit(0 if ok else 1)
thread.join()
assert kernel(4).single(np.ones(1)) == 4.0
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
'''
    done = subprocess.run([sys.executable, '-W', 'ignore', '-c', script], timeout=60,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not hasattr(os, 'fork'), reason='no fork here')
def test_a_fork_while_another_thread_uses_a_robot_for_the_first_time_does_not_hang():
    """The child computes with the same object and with a new one."""
    urdf = Path(__file__).parent.parent / 'urdf/kuka_lwr4.urdf.xacro'
    script = f'''
import os, signal, sys, threading, time
os.environ['ROBODYN_CACHE_DIR'] = ''
import numpy as np
import robodyn_ros as rd

model = rd.load_model({str(urdf)!r})
still = np.zeros(model.n)
for _ in range(3):
    dynamics, started = rd.Dynamics(model, friction_width=time.time()), threading.Event()

    def use():
        started.set()
        for name in ('mass_matrix', 'gravity', 'coriolis', 'inverse_dynamics', 'energy'):
            dynamics.warm_up(name)

    thread = threading.Thread(target=use)
    thread.start()
    started.wait()
    time.sleep(0.02)
    child = os.fork()
    if not child:
        signal.alarm(20)
        for one in (dynamics, rd.Dynamics(model)):
            one.mass_matrix(still), one.gravity(still), one.terms(still, still)
        os._exit(0)
    thread.join()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code:
        sys.exit(f'the child ended with {{code}}')
'''
    done = subprocess.run([sys.executable, '-W', 'ignore', '-c', script], timeout=100,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
