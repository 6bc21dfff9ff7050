"""Caches machine code on disk, in files and a folder that only their owner may write.

Anyone who can write such a file can run code as the user who loads it. A folder or file that
belongs to another user, or that others may write, is therefore not used.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
import warnings
from functools import lru_cache
from pathlib import Path

_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def cache_directory() -> Path | None:
    """Return the folder of the cache: ``$ROBODYN_CACHE_DIR``, else the user's cache directory.

    ``ROBODYN_CACHE_DIR=`` (empty) switches the cache off.
    """
    configured = os.environ.get('ROBODYN_CACHE_DIR')
    if configured is not None:
        return Path(configured) if configured else None
    base = os.environ.get('XDG_CACHE_HOME') or os.path.join(os.path.expanduser('~'), '.cache')
    return Path(base) / 'robodyn_ros'


def load(digest: str) -> bytes | None:
    """Return cached machine code, or None if it is missing, damaged or not trustworthy.

    Parameters
    ----------
    digest : str
        The name of the code.
    """
    directory = cache_directory()
    if directory is None or not _trusted_directory(directory):
        return None
    try:
        # check the open file, so that it cannot be exchanged in between; do not follow links
        handle = os.open(directory / f'{digest}.o', os.O_RDONLY | getattr(os, 'O_NOFOLLOW', 0))
        with os.fdopen(handle, 'rb') as file:
            found = os.fstat(handle)
            if _problem(found) or not stat.S_ISREG(found.st_mode):
                return None
            content = file.read()
    except OSError:
        return None
    checksum, code = content[:32], content[32:]
    return code if hashlib.sha256(code).digest() == checksum else None


def save(digest: str, code: bytes) -> None:
    """Store machine code; errors of the disk (full, read-only) are ignored.

    Parameters
    ----------
    digest : str
        The name of the code.
    code : bytes
        An object file.
    """
    directory = cache_directory()
    if directory is None:
        return
    temporary = None
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _trusted_directory(directory):
            return
        with tempfile.NamedTemporaryFile(dir=directory, delete=False) as file:
            temporary = file.name
            file.write(hashlib.sha256(code).digest() + code)
        os.replace(temporary, directory / f'{digest}.o')
    except OSError:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def _trusted_directory(directory: Path) -> bool:
    try:
        problem = _problem(directory.stat())
    except OSError:
        return False
    if problem:
        _warn(str(directory), problem)
    return not problem


def _problem(found: os.stat_result) -> str:
    """Return why a file or folder is not trustworthy, '' if it is."""
    if not hasattr(os, 'getuid'):
        return ''
    if found.st_uid not in (os.getuid(), 0):
        return f'belongs to the user {found.st_uid}'
    return 'may be written by others' if found.st_mode & _WRITABLE_BY_OTHERS else ''


@lru_cache(maxsize=16)
def _warn(directory: str, problem: str) -> None:
    warnings.warn(
        f'the cache of machine code, {directory}, {problem}: it is not used, and kernels are '
        f'compiled in every process; valid: a folder that only you may write (chmod go-w '
        f'{directory}), or another one in ROBODYN_CACHE_DIR', UserWarning, stacklevel=2)
