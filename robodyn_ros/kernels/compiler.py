"""Compiles LLVM IR to machine code in this process, and caches it on disk for later ones."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from robodyn_ros.errors import RobodynError
from robodyn_ros.kernels import code_cache
from robodyn_ros.kernels.pointers import Pointers

_LOCK = threading.RLock()
OLDEST = (0, 39)  # oldest supported version of llvmlite, that of Debian 12
REPEATABLE_OPTIONS = 15  # first version of LLVM in which an option can be set more than once
# Characters of IR above which code generation uses a lower optimisation level. The machine code is
# within 5 % as fast (measured on arms and humanoids) and is generated two to four times as fast.
LARGE_IR = 300_000
# Characters above which code generation does not optimise: the code of a chain of 100 joints is
# generated four to ten times as fast, and takes 1.5 times as long.
HUGE_IR = 2_000_000


class LlvmliteVersionError(RobodynError):
    """The installed version of llvmlite is too old."""


@lru_cache(maxsize=1)
def _initialize() -> None:
    check_version(llvmlite.__version__)
    with suppress(RuntimeError):  # required before llvmlite 0.45, an error since
        llvm.initialize()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


def check_version(version: str) -> None:
    """Raise LlvmliteVersionError if a version of llvmlite is too old."""
    numbers = version.split('.')[:2]
    if all(part.isdigit() for part in numbers) and tuple(map(int, numbers)) < OLDEST:
        raise LlvmliteVersionError(
            f'llvmlite is {version}; valid: {".".join(map(str, OLDEST))} or newer, as in '
            'python3-llvmlite of Debian 12 and Ubuntu 24.04, or from pip')


@lru_cache(maxsize=3)
def _target(level: int) -> Any:
    _initialize()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(),
        opt=level, jit=True, reloc='pic', codemodel='small')


@lru_cache(maxsize=1)
def _engine() -> Any:
    return llvm.create_mcjit_compiler(llvm.parse_assembly(''), _target(2))


@lru_cache(maxsize=1)
def machine() -> str:
    """Return what machine code depends on besides its key: this machine, LLVM, this package."""
    own = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob('*.py')):
        own.update(path.read_bytes())
    return '|'.join((llvm.get_default_triple(), llvm.get_host_cpu_name(),
                     llvm.get_host_cpu_features().flatten(), llvmlite.__version__,
                     own.hexdigest()))


@lru_cache(maxsize=1)
def native_pointers() -> Pointers:
    """Return how the installed LLVM writes pointers.

    Versions 15 and 16 support both ways; the text of a small module shows which one is active.
    """
    _initialize()
    version = llvm.llvm_version_info[0]
    if 15 <= version <= 16:
        return Pointers(opaque='ptr' in str(llvm.parse_assembly('@x = global i8* null')))
    return Pointers(opaque=version > 16)


class Compiler:
    """Turns IR into callable addresses; there is one for the process."""

    def __init__(self) -> None:
        self._loaded: dict[str, int] = {}

    def address(self, key: str, write_ir: Callable[[str], str]) -> int:
        """Return the address of a function.

        Parameters
        ----------
        key : str
            Identifies everything that the IR depends on.
        write_ir : callable
            ``write_ir(name)`` returns IR that defines the function ``name``. It is called only if
            there is no machine code for the key yet.

        Raises
        ------
        LlvmliteVersionError
            llvmlite is too old.
        """
        with _LOCK:
            _initialize()
            digest = _digest(key)
            if digest not in self._loaded:
                name = self.symbol(key)
                code = code_cache.load(digest)
                if code is None:
                    code = compile_ir(write_ir(name))
                    code_cache.save(digest, code)
                engine = _engine()
                engine.add_object_file(llvm.ObjectFileRef.from_data(code))
                engine.finalize_object()
                self._loaded[digest] = engine.get_function_address(name)
            return self._loaded[digest]

    def symbol(self, key: str) -> str:
        """Return the name of the function of a key, by which other functions can call it.

        Such a function must be loaded first.
        """
        return f'robodyn_{_digest(key)[:40]}'


def _digest(key: str) -> str:
    return hashlib.sha256(f'{machine()}|{key}'.encode()).hexdigest()


def compile_ir(text: str) -> bytes:
    """Return the object file of IR; only code generation optimises, no passes run on the IR."""
    target = _target(2 if len(text) < LARGE_IR else 1 if len(text) < HUGE_IR else 0)
    module = llvm.parse_assembly(text)
    module.verify()
    with _without_machine_scheduler():
        return bytes(target.emit_object(module))


# Sums the squares of more numbers than there are registers, from the last to the first. The
# machine scheduler reorders this, so that fewer values are spilled to memory.
_PROBE = '\n'.join([
    'define double @probe({p} %x) {{',
    *(f'  %a{k} = getelementptr double, {{p}} %x, i64 {k}\n'
      f'  %v{k} = load double, {{p}} %a{k}\n  %w{k} = fmul double %v{k}, %v{k}'
      for k in range(40)),
    *(f'  %s{k} = fadd double %{"w39" if k == 38 else f"s{k + 1}"}, %w{k}'
      for k in reversed(range(39))),
    '  ret double %s0', '}}'])


@contextmanager
def _without_machine_scheduler() -> Iterator[None]:
    """Switch LLVM's machine scheduler off, and restore its state afterwards.

    The scheduler shortens live ranges at the price of longer stalls; the order of the recursion is
    faster. The option is global to the process and cannot be read, so the code generated for a
    small function shows whether the scheduler was on. Before LLVM 15 an option can be set only
    once; there the scheduler is left unchanged.
    """
    if llvm.llvm_version_info[0] < REPEATABLE_OPTIONS:
        yield
        return
    before = _probe()
    llvm.set_option('', '-enable-misched=0')
    was_on = _probe() != before
    try:
        yield
    finally:
        if was_on:
            llvm.set_option('', '-enable-misched=1')


def _probe() -> bytes:
    text = _PROBE.format(p=native_pointers().to('double'))
    return bytes(_target(2).emit_object(llvm.parse_assembly(text)))


COMPILER = Compiler()
if hasattr(os, 'register_at_fork'):
    # a child process inherits the lock and LLVM's state: fork only while no thread compiles
    os.register_at_fork(before=_LOCK.acquire, after_in_parent=_LOCK.release,
                        after_in_child=_LOCK.release)
