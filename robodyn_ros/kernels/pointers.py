"""Writes pointer types in LLVM IR.

Since LLVM 15 every pointer has the type ``ptr``. In LLVM 14 and older, which Ubuntu 24.04 and
Debian 12 ship, a pointer has the type of its target and must be cast to point to another type.
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
        Whether a pointer is written ``ptr``, without the type of its target.
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
            Types that the pointer points to before and after the cast.
        emit : callable
            Writes an instruction and returns the name of its result.
        """
        if self.opaque or source == target:
            return value
        return emit(f'bitcast {self.to(source)} {value} to {self.to(target)}')

    @property
    def suffix(self) -> str:
        """The suffix for a pointer to bytes in the names of intrinsic functions."""
        return 'p0' if self.opaque else 'p0i8'

    @property
    def undefined(self) -> str:
        """A vector with unspecified elements; ``poison`` exists since LLVM 12."""
        return 'poison' if self.opaque else 'undef'
