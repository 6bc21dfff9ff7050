"""Errors that name the culprit and what would be valid."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


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
        self.kind, self.name, self.valid = kind, str(name), tuple(valid)
        near = get_close_matches(self.name, self.valid, n=1)
        hint = f'; did you mean {near[0]!r}?' if near else ''
        shown = ', '.join(self.valid[:40]) + (', ...' if len(self.valid) > 40 else '')
        super().__init__(f'unknown {kind} {self.name[:80]!r}; valid: {shown}{hint}')


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
        super().__init__(f'{quantity} is {value}; valid: {valid}')


class LogError(RobodynError):
    """A measured log that cannot be used.

    Attributes
    ----------
    source : str
        The file, or what was given instead.
    valid : str
        What would be.
    """

    def __init__(self, problem: str, *, source: str = 'log', valid: str = ''):
        self.source, self.valid = source, valid
        super().__init__(f'{source}: {problem}' + (f'; valid: {valid}' if valid else ''))


class IdentificationError(RobodynError):
    """An identification that cannot give an answer."""
