"""How pointers are written in LLVM IR.

Since LLVM 15 a pointer is ``ptr``, whatever it points to; LLVM 14 and older, which Ubuntu 24.04
and Debian 12 ship, want the type that it points to, and a cast where another one is meant.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Pointers:
    """One of the two ways to write pointers.

    Attributes
    ----------
    opaque : bool
        Whether a pointer is written ``ptr``, without the type that it points to.
    """

    opaque: bool

    def to(self, kind: str) -> str:
        """Return the type of a pointer to values of a type."""
        return 'ptr' if self.opaque else f'{kind}*'

    def cast(self, value: str, source: str, target: str, emit: Callable[[str], str]) -> str:
        """Return a pointer to ``source`` as a pointer to ``target``.

        Parameters
        ----------
        value : str
            The pointer.
        source, target : str
            Types of what it points to.
        emit : callable
            Writes an instruction, and returns the name of its result.
        """
        if self.opaque or source == target:
            return value
        return emit(f'bitcast {self.to(source)} {value} to {self.to(target)}')

    @property
    def suffix(self) -> str:
        """How the names of intrinsic functions tell a pointer to bytes."""
        return 'p0' if self.opaque else 'p0i8'

    @property
    def undefined(self) -> str:
        """A vector whose elements do not matter; ``poison`` came with LLVM 12."""
        return 'poison' if self.opaque else 'undef'
