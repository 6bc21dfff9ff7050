"""Errors that name the culprit and what would be valid."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable
from copy import copy
from difflib import get_close_matches
from numbers import Number
from typing import Any

LONGEST_NAME = 80  # characters of a name that an error repeats
LONGEST_INTEGER = 400  # bits; a longer integer is costly to write out in decimal digits


class _Bounded(reprlib.Repr):
    """A `repr` whose length and cost are bounded, whatever the value contains."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 3
        self.maxlist = self.maxtuple = self.maxdict = self.maxset = 12
        self.maxstring = self.maxother = 60

    def repr_int(self, x: int, level: int) -> str:
        """Show an integer; of a very long one, only its size in bits."""
        bits = x.bit_length()
        return repr(x) if bits <= LONGEST_INTEGER else f'an integer of {bits} bits'

    def repr_instance(self, x: Any, level: int) -> str:
        """Show NumPy scalars as plain numbers."""
        return str(x) if isinstance(x, Number) else super().repr_instance(x, level)


_BOUNDED = _Bounded()


def shown(value: object, longest: int = 200) -> str:
    """Return a value as short text for an error message, at bounded cost.

    A few bytes of YAML aliases can stand for a list of millions of entries, so a value that was
    read from a file is never formatted as a whole.

    Parameters
    ----------
    value : object
        Anything.
    longest : int
        Maximum length of the result, in characters.
    """
    text = _BOUNDED.repr(value)
    return text if len(text) <= longest else text[:longest - 3] + '...'


class RobodynError(Exception):
    """Base of every error that robodyn_ros raises on purpose."""


class DescriptionError(RobodynError):
    """A robot description that cannot be used.

    Attributes
    ----------
    element : str
        The XML element at fault, for example ``joint 'elbow'``.
    line : int or None
        Its line in the XML, where known.
    """

    def __init__(self, problem: str, *, element: str = 'robot description',
                 line: int | None = None, valid: str = ''):
        self.element, self.line, self.valid = element, line, valid
        place = f'{element} (line {line})' if line else element
        super().__init__(f'{place}: {problem}' + (f'; valid: {valid}' if valid else ''))

    @classmethod
    def at(cls, place: str, problem: str, *, line: int | None = None,
           valid: str = '') -> DescriptionError:
        """Return an error that names a place: a file, or a part of one."""
        return cls(problem, element=place, line=line, valid=valid)

    def within(self, file: str) -> DescriptionError:
        """Return this error with the name of the file in which it was found."""
        named = copy(self)
        named.args = (f'{file}: {self}',)
        return named


class UnknownNameError(RobodynError):
    """A joint, link or option that does not exist.

    Attributes
    ----------
    kind, name : str
        What was asked for.
    valid : tuple of str
        The names that exist.
    """

    def __init__(self, kind: str, name: object, valid: Iterable[str]):
        self.kind, self.valid = kind, tuple(valid)
        self.name = name[:LONGEST_NAME] if isinstance(name, str) else shown(name, LONGEST_NAME)
        near = get_close_matches(self.name, self.valid, n=1)
        hint = f'; did you mean {near[0]!r}?' if near else ''
        listed = ', '.join(self.valid[:40]) + (', ...' if len(self.valid) > 40 else '')
        super().__init__(f'unknown {kind} {self.name!r}; valid: {listed}{hint}')


class UnknownArgumentError(UnknownNameError, TypeError):
    """A keyword that a function or class does not take; the attributes are those of its base."""


class WrongTypeError(RobodynError, TypeError):
    """An argument of a type that cannot be used.

    Attributes
    ----------
    argument : str
        Name of the argument.
    given : str
        The type that was given.
    valid : str
        What would be valid.
    """

    def __init__(self, argument: str, value: object, valid: str):
        self.argument, self.given, self.valid = argument, type(value).__name__, valid
        super().__init__(f'{argument} is {shown(value, 40)} (type {self.given}); valid: {valid}')


def check_type(argument: str, value: object, types: type | tuple[type, ...], valid: str) -> None:
    """Raise an error if an argument is not of one of some types.

    Parameters
    ----------
    argument : str
        Name of the argument.
    value : object
        What was given.
    types : type or tuple of type
        The types that can be used.
    valid : str
        What would be valid, in words.

    Raises
    ------
    WrongTypeError
        It is of another type.
    """
    if not isinstance(value, types):
        raise WrongTypeError(argument, value, valid)


class ShapeError(RobodynError):
    """An array of the wrong shape or type.

    Attributes
    ----------
    argument : str
        Name of the argument.
    given : str
        What was given.
    valid : str
        The shapes that are valid.
    """

    def __init__(self, argument: str, given: str, valid: str):
        self.argument, self.given, self.valid = argument, given, valid
        super().__init__(f'{argument} has {given}; valid: {valid}')


class ValueRangeError(RobodynError):
    """A number outside its valid range.

    Attributes
    ----------
    quantity : str
        What the number is.
    value : object
        The number given.
    valid : str
        The range that is valid.
    """

    def __init__(self, quantity: str, value: object, valid: str):
        self.quantity, self.value, self.valid = quantity, value, valid
        text = value[:200] if isinstance(value, str) else shown(value)
        super().__init__(f'{quantity} is {text}; valid: {valid}')


class LogError(RobodynError):
    """A measured log that cannot be used.

    Attributes
    ----------
    source : str
        The file, or the kind of source if it was not a file.
    valid : str
        What would be valid.
    """

    def __init__(self, problem: str, *, source: str = 'log', valid: str = ''):
        self.source, self.valid = source, valid
        super().__init__(f'{source}: {problem}' + (f'; valid: {valid}' if valid else ''))

    @classmethod
    def at(cls, place: str, problem: str, *, line: int | None = None,
           valid: str = '') -> LogError:
        """Return an error that names a place: a file, or a part of one."""
        return cls(problem, source=f'{place} (line {line})' if line else place, valid=valid)


PlacedError = type[DescriptionError] | type[LogError]  # errors that name a place in a file


class MissingPackageError(RobodynError, ImportError):
    """A Python package that this part of robodyn_ros needs is not installed.

    Attributes
    ----------
    package : str
        The package.
    extra : str
        The extra of robodyn_ros that installs it.
    """

    def __init__(self, package: str, extra: str):
        self.package, self.extra = package, extra
        super().__init__(f'the Python package {package!r} is missing; install it with '
                         f"`pip install '{package}'`, or install the whole extra: "
                         f"`pip install 'robodyn_ros[{extra}]'`")


class IdentificationError(RobodynError):
    """An identification that cannot be carried out with the given data."""


class OutputError(RobodynError):
    """A file or folder that cannot be written.

    Attributes
    ----------
    path : str
        The file or folder.
    valid : str
        What would be valid instead.
    """

    def __init__(self, problem: str, *, path: object, valid: str = ''):
        self.path, self.valid = str(path), valid
        super().__init__(f'{path}: {problem}' + (f'; valid: {valid}' if valid else ''))


class ExperimentError(RobodynError):
    """An experiment was stopped, for example because the robot deviated from its reference."""


class StatesMissingError(ExperimentError):
    """An experiment was stopped because no new joint states arrived."""


class FleetError(RobodynError):
    """A fleet cannot be identified any further, for example because the scheduler is gone."""
