"""Reads untrusted files safely, and writes files completely or not at all.

Only regular files up to a given size are read: a FIFO would block the reader forever, reading a
device may have side effects or never end, and a huge file would exhaust the memory. All three are
rejected before anything is read.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from robodyn_ros.errors import DescriptionError, OutputError, PlacedError, shown

HASHED_AT_ONCE = 1 << 20  # bytes


def check_regular(path: str | Path, limit: int, *, error: PlacedError = DescriptionError) -> Path:
    """Return the path, with ``~`` expanded, of a regular file of at most ``limit`` bytes.

    Use it where another library opens the file itself; otherwise use `open_regular`.

    Parameters
    ----------
    path : str or Path
        The file.
    limit : int
        Maximum size, in bytes.
    error : type
        DescriptionError or LogError.

    Raises
    ------
    DescriptionError or LogError
        The file does not exist, is not a regular file, or is too large.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise error.at(shown(path, 40), f'is not the path of a file (type {type(path).__name__})',
                       valid='a str or Path')
    try:
        path = Path(path).expanduser()
        status = path.stat()
    except (OSError, ValueError, RuntimeError) as reason:  # a null character, no home folder
        raise error.at(str(path)[:200], f'cannot be read: {_why(reason)}',
                       valid='the path of a file') from None
    _check(status, path, limit, error)
    return path


def open_regular(path: str | Path, limit: int, *,
                 error: PlacedError = DescriptionError) -> BinaryIO:
    """Open a regular file of at most ``limit`` bytes for reading; see `check_regular`.

    Raises
    ------
    DescriptionError or LogError
        The file cannot be read, is not a regular file, or is too large.
    """
    path = check_regular(path, limit, error=error)
    try:
        # the path may have been replaced by a FIFO since the check: do not block, and check again
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as reason:
        raise error.at(str(path), f'cannot be read: {_why(reason)}') from None
    file = os.fdopen(descriptor, 'rb')
    try:
        _check(os.fstat(descriptor), path, limit, error)
    except BaseException:
        file.close()
        raise
    return file


def read_regular(path: str | Path, limit: int, *, error: PlacedError = DescriptionError) -> bytes:
    """Return the content of a regular file of at most ``limit`` bytes.

    Raises
    ------
    DescriptionError or LogError
        The file cannot be read, is not a regular file, or is too large.
    """
    with open_regular(path, limit, error=error) as file:
        try:
            content = file.read(limit + 1)  # files in /proc report 0 bytes but contain more
        except OSError as reason:
            raise error.at(str(path), f'cannot be read: {_why(reason)}') from None
    if len(content) > limit:
        raise error.at(str(path), f'has more than {limit} bytes', valid='a smaller file')
    return content


def read_text(path: str | Path, limit: int, *, error: PlacedError = DescriptionError) -> str:
    """Return the content of a UTF-8 file of at most ``limit`` bytes, without a byte order mark.

    Raises
    ------
    DescriptionError or LogError
        The file cannot be read, is not a regular file, is too large, or is not UTF-8.
    """
    try:
        return read_regular(path, limit, error=error).decode('utf-8-sig')
    except UnicodeDecodeError as reason:
        raise error.at(str(path), f'cannot be read: not UTF-8 at byte {reason.start}',
                       valid='UTF-8 text') from None


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of the content of a file, which may be larger than the memory."""
    digest = hashlib.sha256()
    with open(path, 'rb') as file:
        while piece := file.read(HASHED_AT_ONCE):
            digest.update(piece)
    return digest.hexdigest()


@contextmanager
def whole_file(path: Path, *, suffix: str | None = None, remark: str = '') -> Iterator[Path]:
    """Provide a temporary file, which replaces a file if the block ends without an error.

    Parameters
    ----------
    path : Path
        The file to write.
    suffix : str, optional
        Suffix of the temporary file; default: that of the file.
    remark : str
        Text that is added to the message if the file cannot be written.

    Raises
    ------
    OutputError
        The file cannot be written.
    """
    temporary = None
    try:
        number, name = tempfile.mkstemp(
            prefix='.', suffix=path.suffix if suffix is None else suffix, dir=path.parent)
        os.close(number)
        temporary = Path(name)
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except OSError as error:
        raise OutputError(f'it cannot be written: {_why(error)}' + (f'; {remark}' if remark else
                                                                    ''), path=path) from None
    finally:
        if temporary is not None:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file, completely or not at all.

    Raises
    ------
    OutputError
        The file cannot be written.
    """
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding='utf-8')


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _check(status: os.stat_result, path: Path, limit: int, error: PlacedError) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = 'a folder' if stat.S_ISDIR(status.st_mode) else 'a FIFO, socket or device'
        raise error.at(str(path), f'cannot be read: it is {kind}', valid='a regular file')
    if status.st_size > limit:
        raise error.at(str(path), f'has {status.st_size} bytes', valid=f'at most {limit} bytes')


def _why(reason: Exception) -> str:
    return getattr(reason, 'strerror', None) or str(reason)
