"""LLVM IR -> machine code in this process, kept on disk for the next one."""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm

_LOCK = threading.RLock()
# above this size, code generation takes its fast way: the machine code is a little slower, but the
# time to make it stays bounded
LARGE_IR = 3_000_000


def cache_directory() -> Path | None:
    """Where machine code is kept: ``$ROBODYN_CACHE_DIR``, else the user's cache directory.

    ``ROBODYN_CACHE_DIR=`` (empty) keeps nothing.
    """
    configured = os.environ.get('ROBODYN_CACHE_DIR')
    if configured is not None:
        return Path(configured) if configured else None
    base = os.environ.get('XDG_CACHE_HOME') or os.path.join(os.path.expanduser('~'), '.cache')
    return Path(base) / 'robodyn_ros'


@lru_cache(maxsize=2)
def _target(level: int) -> Any:
    with suppress(RuntimeError):  # needed before llvmlite 0.45, refused since
        llvm.initialize()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(),
        opt=level, jit=True, reloc='pic', codemodel='small')


@lru_cache(maxsize=1)
def _engine() -> Any:
    return llvm.create_mcjit_compiler(llvm.parse_assembly(''), _target(2))


@lru_cache(maxsize=1)
def machine() -> str:
    """What machine code depends on besides its source."""
    return '|'.join((llvm.get_default_triple(), llvm.get_host_cpu_name(),
                     llvm.get_host_cpu_features().flatten(), llvmlite.__version__))


class Compiler:
    """Makes callable addresses from IR; one for the process."""

    def __init__(self) -> None:
        self._loaded: dict[str, int] = {}

    def address(self, key: str, write_ir: Any) -> int:
        """Return the address of a function.

        Parameters
        ----------
        key : str
            Everything the IR depends on.
        write_ir : callable
            ``write_ir(name)`` returns the IR, which defines the function ``name``; called only
            where there is no machine code for the key yet.
        """
        digest = hashlib.sha256(f'{machine()}|{key}'.encode()).hexdigest()
        with _LOCK:
            if digest not in self._loaded:
                name = f'robodyn_{digest[:40]}'
                code = _load(digest)
                if code is None:
                    code = compile_ir(write_ir(name))
                    _save(digest, code)
                engine = _engine()
                engine.add_object_file(llvm.ObjectFileRef.from_data(code))
                engine.finalize_object()
                self._loaded[digest] = engine.get_function_address(name)
            return self._loaded[digest]


def compile_ir(text: str) -> bytes:
    """Return the object file of IR that needs no optimisation but that of code generation."""
    target = _target(2 if len(text) < LARGE_IR else 1)
    module = llvm.parse_assembly(text)
    module.verify()
    # LLVM's machine scheduler shortens live ranges at the price of longer waits; the recursion's
    # own order is a quarter faster. The option is the process's: others get it back as it was.
    llvm.set_option('', '-enable-misched=0')
    try:
        return target.emit_object(module)
    finally:
        llvm.set_option('', '-enable-misched=1')


def _load(digest: str) -> bytes | None:
    """Machine code from the cache; None where there is none or it is damaged."""
    directory = cache_directory()
    if directory is None:
        return None
    try:
        path = directory / f'{digest}.o'
        owner = path.stat().st_uid
        if hasattr(os, 'getuid') and owner not in (os.getuid(), 0):
            return None  # machine code from a stranger
        content = path.read_bytes()
    except OSError:
        return None
    checksum, code = content[:32], content[32:]
    return code if hashlib.sha256(code).digest() == checksum else None


def _save(digest: str, code: bytes) -> None:
    """Keep machine code; a full or read-only disk is no reason to fail."""
    directory = cache_directory()
    if directory is None:
        return
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=directory, delete=False) as file:
            file.write(hashlib.sha256(code).digest() + code)
        os.replace(file.name, directory / f'{digest}.o')
    except OSError:
        return


COMPILER = Compiler()
