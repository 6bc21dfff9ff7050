"""Mappings whose keys and values are checked, with errors that name the file and the key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from robodyn_ros.description.xml import LARGEST
from robodyn_ros.description.yaml import MAX_DIGITS, MAX_ENTRIES, parse_yaml, read_yaml
from robodyn_ros.errors import DescriptionError, PlacedError, UnknownNameError, shown
from robodyn_ros.spatial import Array


class Section:
    """One mapping of a configuration file, and its place in the file.

    Keys without a value (``null``) count as absent. Every method that returns a value raises
    `error` if the value has the wrong type, is out of range, or is missing and has no default.

    Parameters
    ----------
    content : mapping
        The mapping; other types are rejected.
    where : str
        Its name in error messages: the file, then the keys that lead to it.
    keys : iterable of str, optional
        The keys that are valid; default: any.
    error : type
        DescriptionError or LogError.
    valid : str
        What error messages give as valid if the content is not a mapping.

    Raises
    ------
    DescriptionError or LogError
        The content is not a mapping. The message does not repeat it, since the wrong file may
        have been named by mistake.
    UnknownNameError
        There is a key that is not valid; the message names the nearest valid one.
    """

    def __init__(self, content: Any, where: str, keys: Iterable[str] | None = None, *,
                 error: PlacedError = DescriptionError, valid: str = ''):
        known = None if keys is None else tuple(keys)
        if not isinstance(content, Mapping):
            raise error.at(where, f'is {_type(content)}, not a mapping',
                           valid=valid or 'a mapping' + (
                               '' if known is None else f' with {", ".join(known)}'))
        self.where, self.error = where, error
        self._content: dict[str, Any] = {}
        for key, value in content.items():
            name = str(key) if isinstance(key, (str, int)) else shown(key, 80)
            if known is not None and name not in known:
                raise UnknownNameError(f'key in {where}', name, known)
            if value is not None:
                self._content[name] = value

    @classmethod
    def read(cls, source: str | Path | Mapping[str, Any], where: str,
             keys: Iterable[str] | None = None, *, error: PlacedError = DescriptionError,
             valid: str = '') -> Section:
        """Read a YAML file, or take a mapping as its content.

        Parameters
        ----------
        source : str, Path or mapping
            Path of the file, or its content. An empty file is an empty mapping.
        where : str
            The name of a mapping in error messages; a file is named by its path.
        keys, error, valid
            See the class.
        """
        if isinstance(source, Mapping):
            return cls(source, where, keys, error=error, valid=valid)
        content = read_yaml(source, error=error)
        return cls({} if content is None else content, str(source), keys, error=error,
                   valid=valid)

    @classmethod
    def parse(cls, text: str | bytes, where: str, keys: Iterable[str] | None = None, *,
              error: PlacedError = DescriptionError, valid: str = '') -> Section:
        """Parse YAML text; empty text is an empty mapping."""
        content = parse_yaml(text, where, error=error)
        return cls({} if content is None else content, where, keys, error=error, valid=valid)

    def __contains__(self, key: str) -> bool:
        return key in self._content

    def __iter__(self) -> Iterator[str]:
        return iter(self._content)

    def __getitem__(self, key: str) -> Any:
        """The value as it was read, unchecked."""
        if key not in self._content:
            raise self.error.at(self.where, f'has no {key!r}', valid=f'{key!r} with a value')
        return self._content[key]

    def fail(self, key: str, problem: str, valid: str = '') -> Exception:
        """Return an error about the value of a key."""
        return self.error.at(f'{self.where}: {key}', problem, valid=valid)

    def section(self, key: str, keys: Iterable[str] | None = None) -> Section:
        """Return a mapping within this one, an empty one if the key is absent."""
        return Section(self._content.get(key, {}), f'{self.where}: {key}', keys, error=self.error)

    def sections(self, key: str, keys: Iterable[str] | None = None) -> list[Section]:
        """Return a list of mappings, an empty one if the key is absent."""
        entries = self._content.get(key, [])
        if not isinstance(entries, (list, tuple)):
            raise self.fail(key, f'is {_type(entries)}', 'a list of mappings')
        return [Section(entry, f'{self.where}: {key}[{k}]', keys, error=self.error)
                for k, entry in enumerate(entries)]

    def number(self, key: str, default: float | None = None, *, least: float = -LARGEST,
               most: float = LARGEST, above: float = -np.inf) -> float:
        """Return a finite number, ``least <= number <= most`` and ``> above``."""
        if key not in self and default is not None:
            return default
        number = self._number(self[key], key)
        if not (least <= number <= most and number > above):
            bounds = [f'> {above:g}'] if above >= least else []
            bounds += [f'>= {least:g}'] if max(above, -LARGEST) < least else []
            bounds += [f'<= {most:g}'] if most < LARGEST else []
            raise self.fail(key, f'is {number}', f'a number {" and ".join(bounds)}')
        return number

    def integer(self, key: str, default: int | None = None, *, least: int, most: int) -> int:
        """Return an integer in this range."""
        number = self.number(key, default)
        if number != int(number) or not least <= number <= most:
            raise self.fail(key, f'is {number:g}', f'an integer from {least} to {most}')
        return int(number)

    def array(self, key: str, shape: tuple[int | None, ...]) -> Array:
        """Return an array of finite numbers of this shape; None stands for any length."""
        cells: Any = [self[key]]
        found: list[int] = []
        for wanted in shape:
            lists = all(isinstance(cell, (list, tuple, np.ndarray)) for cell in cells)
            sizes = {len(cell) for cell in cells} if lists and cells else {0}
            found.append(next(iter(sizes)))
            if not lists or len(sizes) != 1 or wanted not in (None, found[-1]) or \
                    len(cells) * found[-1] > MAX_ENTRIES:
                words = ', '.join('any' if size is None else str(size) for size in shape)
                raise self.fail(key, f'is {_type(self[key])}', f'numbers of shape ({words})')
            cells = [inner for cell in cells for inner in cell]
        return np.array([self._number(cell, key) for cell in cells], np.float64).reshape(found)

    def text(self, key: str, default: str | None = None) -> str:
        """Return text; an integer is accepted as text, since joints may be named 1, 2, 3."""
        value = self._content.get(key, default) if default is not None else self[key]
        return self._text(value, key)

    def names(self, key: str) -> tuple[str, ...]:
        """Return a list of names, an empty one if the key is absent."""
        values = self._content.get(key, ())
        if not isinstance(values, (list, tuple)):
            raise self.fail(key, f'is {_type(values)}', 'a list of names')
        return tuple(self._text(value, key) for value in values)

    def flag(self, key: str, default: bool = False) -> bool:
        """Return true or false."""
        value = self._content.get(key, default)
        if not isinstance(value, bool):
            raise self.fail(key, f'is {shown(value, 60)}', 'true or false')
        return value

    def _text(self, value: Any, key: str) -> str:
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            raise self.fail(key, f'is {_type(value)}', 'text')
        return value if isinstance(value, str) else shown(value)

    def _number(self, value: Any, key: str) -> float:
        if isinstance(value, str):  # `1e-5` as YAML 1.1 reads it, or a number in quotes
            try:
                value = float('x' if '_' in value else value[:MAX_DIGITS])
            except ValueError:
                comma = ' (a decimal comma?)' if ',' in value else ''
                raise self.fail(key, f'is {shown(value, 60)}{comma}',
                                'a number such as 0.5 or 1e-3') from None
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
            raise self.fail(key, f'is {shown(value, 60)}', 'a number')
        try:
            number = float(value)
        except OverflowError:
            number = np.inf
        if not abs(number) <= LARGEST:
            raise self.fail(key, f'is {number}',
                            f'a finite number of at most {LARGEST:g} in magnitude')
        return number


def _type(value: Any) -> str:
    """Return the type of a value in the terms of YAML, without text that the file contains."""
    if isinstance(value, str):
        return 'text'
    if isinstance(value, Mapping):
        return f'a mapping of {len(value)} keys'
    if isinstance(value, (list, tuple, np.ndarray)):
        return f'a list of {len(value)}'
    if isinstance(value, (bool, int, float)):
        return shown(value, 40)
    return type(value).__name__
