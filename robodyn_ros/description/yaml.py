"""Parses YAML from untrusted sources: plain data only, with limits on size, depth and entries.

The subset is that of the core schema of YAML 1.2: mappings with text keys, lists, text, ``true``
and ``false``, integers, floats and ``null``. Tags (``!!python/...``) are rejected; dates, ``1:50``
and ``yes`` are text. Anchors, aliases and merge keys (``<<``) work; an alias counts as all the
entries that it stands for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import yaml

from robodyn_ros.errors import LONGEST_NAME, DescriptionError, PlacedError
from robodyn_ros.files import read_regular

MAX_BYTES = 1_000_000  # the motor data of a hundred joints take 30 kB, a long excitation 20 kB
MAX_DEPTH = 20  # levels; the deepest known file has 5
MAX_ENTRIES = 100_000  # scalars, lists and mappings; aliases count as what they stand for
MAX_TEXT = 10_000  # characters of one scalar
MAX_DIGITS = 100  # characters of one number

_INTEGER = re.compile(r'[-+]?[0-9]+|0x[0-9a-fA-F]+|0o[0-7]+')
_FLOAT = re.compile(r'[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?')
_WORDS: dict[str, Any] = {
    **dict.fromkeys(('', '~', 'null', 'Null', 'NULL')),
    **dict.fromkeys(('true', 'True', 'TRUE'), True),
    **dict.fromkeys(('false', 'False', 'FALSE'), False),
    **dict.fromkeys(('.inf', '.Inf', '.INF', '+.inf', '+.Inf', '+.INF'), float('inf')),
    **dict.fromkeys(('-.inf', '-.Inf', '-.INF'), float('-inf')),
    **dict.fromkeys(('.nan', '.NaN', '.NAN'), float('nan'))}
_PARSER: Any = getattr(yaml, 'CSafeLoader', yaml.SafeLoader)  # only its events are used


def read_yaml(path: str | Path, *, error: PlacedError = DescriptionError) -> Any:
    """Read a YAML file of at most `MAX_BYTES`; see `parse_yaml`.

    Parameters
    ----------
    path : str or Path
        The file.
    error : type
        DescriptionError or LogError.

    Raises
    ------
    DescriptionError or LogError
        The file cannot be read, is not a regular file, or is not valid YAML.
    """
    return parse_yaml(read_regular(path, MAX_BYTES, error=error), str(path), error=error)


def parse_yaml(text: str | bytes, label: str = 'YAML', *,
               error: PlacedError = DescriptionError) -> Any:
    """Parse YAML text into dicts, lists, str, bool, int, float and None.

    Parameters
    ----------
    text : str or bytes
        One document.
    label : str
        Its name in error messages, for example a file name.
    error : type
        DescriptionError or LogError.

    Raises
    ------
    DescriptionError or LogError
        The text is not valid YAML, contains a tag or a duplicate key, or exceeds a limit. The
        message names the line and does not repeat the content.
    """
    size = len(text) if isinstance(text, bytes) else len(text.encode(errors='replace'))
    if size > MAX_BYTES:
        raise error.at(label, f'not valid YAML: it has {size} bytes',
                       valid=f'at most {MAX_BYTES} bytes')
    try:
        return _Document(text, label, error).content()
    except (yaml.YAMLError, ValueError) as reason:
        mark = getattr(reason, 'problem_mark', None)
        problem = getattr(reason, 'problem', None) or 'a character that YAML does not allow'
        raise error.at(label, f'not valid YAML: {problem}',
                       line=None if mark is None else mark.line + 1) from None


class _Document:
    """Builds the value of one document from the parser's events."""

    def __init__(self, text: str | bytes, label: str, error: PlacedError):
        self._events: Iterator[Any] = yaml.parse(text, Loader=_PARSER)
        self._label, self._error = label, error
        self._entries = 0
        self._anchors: dict[str, tuple[Any, int]] = {}  # value, and entries that it stands for

    def content(self) -> Any:
        value, documents = None, 0
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    self._refuse(event, 'it has a second document', 'one document')
                value = self._value(next(self._events), 1)
        return value

    def _value(self, event: Any, depth: int) -> Any:
        if depth > MAX_DEPTH:
            self._refuse(event, f'it is nested deeper than {MAX_DEPTH} levels')
        before = self._entries
        self._count(event, 1)
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self._anchors:
                self._refuse(event, 'an alias has no anchor before it')
            value, entries = self._anchors[event.anchor]
            self._count(event, entries)
            return value
        if event.tag is not None:
            self._refuse(event, 'a tag (!...) is not accepted', 'plain values')
        value = self._scalar(event) if isinstance(event, yaml.ScalarEvent) else \
            self._list(depth) if isinstance(event, yaml.SequenceStartEvent) else \
            self._mapping(depth)
        if event.anchor is not None:
            self._anchors[event.anchor] = value, self._entries - before
        return value

    def _list(self, depth: int) -> list[Any]:
        values = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            values.append(self._value(event, depth + 1))
        return values

    def _mapping(self, depth: int) -> dict[str, Any]:
        own: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent) or event.tag is not None:
                self._refuse(event, 'a key is not text', 'text as keys')
            self._count(event, 1)
            key = event.value
            if len(key) > MAX_TEXT:
                self._refuse(event, f'a key has {len(key)} characters', f'at most {MAX_TEXT}')
            if key in own:
                self._refuse(event, f'the key {key[:LONGEST_NAME]!r} is given twice')
            value = self._value(next(self._events), depth + 1)
            if key == '<<' and event.implicit[0]:
                for other in reversed(value if isinstance(value, list) else [value]):
                    if not isinstance(other, dict):
                        self._refuse(event, 'the merge key << has no mapping')
                    merged |= other
            else:
                own[key] = value
        return {**merged, **own}

    def _scalar(self, event: Any) -> Any:
        text: str = event.value
        if len(text) > MAX_TEXT:
            self._refuse(event, f'a text has {len(text)} characters', f'at most {MAX_TEXT}')
        if not event.implicit[0]:  # quoted
            return text
        if text in _WORDS:
            return _WORDS[text]
        integer = _INTEGER.fullmatch(text) is not None
        if not integer and _FLOAT.fullmatch(text) is None:
            return text
        if len(text) > MAX_DIGITS:
            self._refuse(event, f'a number has {len(text)} digits', f'at most {MAX_DIGITS}')
        if not integer:
            return float(text)
        return int(text, {'0x': 16, '0o': 8}.get(text[:2], 10))

    def _count(self, event: Any, entries: int) -> None:
        self._entries += entries
        if self._entries > MAX_ENTRIES:
            self._refuse(event, f'it stands for more than {MAX_ENTRIES} entries',
                         'less data; every alias counts as all that it stands for')

    def _refuse(self, event: Any, problem: str, valid: str = '') -> NoReturn:
        raise self._error.at(self._label, f'not valid YAML: {problem}',
                             line=event.start_mark.line + 1, valid=valid)
