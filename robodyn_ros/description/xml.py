"""Parses XML from untrusted sources: no entities, no network, bounded size and depth."""

from __future__ import annotations

import math
import re

from lxml import etree

from robodyn_ros.errors import DescriptionError

MAX_BYTES = 20_000_000  # ten times the size of a URDF of several hundred links
MAX_DEPTH = 100  # a URDF nests about 6 elements
LARGEST = 1e9  # largest magnitude of a number, so that products of several do not overflow
NO_LIMIT = 1e16  # limits of at least this size mean that there is no limit, as in SDF
_HARMLESS = (etree.ErrorTypes.ERR_HYPHEN_IN_COMMENT, etree.ErrorTypes.ERR_RESERVED_XML_NAME)
# `<?xml version="0.0"?>` occurs in public robots; the parser accepts 1.0 and newer
_VERSION = re.compile(rb'\A((?:\xef\xbb\xbf)?\s*<\?xml\s+version\s*=\s*["\'])[^"\']{0,20}(["\'])')


def parse_xml(text: str | bytes, *, comments: bool = False) -> etree._Element:
    """Parse XML text and return its root element.

    Parameters
    ----------
    text : str or bytes
        The document. The encoding that a ``str`` declares is ignored.
    comments : bool
        Keep comments.

    Raises
    ------
    DescriptionError
        The document is empty, too large or nested too deeply, has a document type declaration,
        or is not well-formed.
    """
    if isinstance(text, str):
        try:
            text = _without_declaration(text.lstrip('\ufeff').strip()).encode()
        except UnicodeEncodeError as error:
            raise DescriptionError(f'the text has an invalid character: {error}',
                                   valid='Unicode text') from None
    text = _VERSION.sub(rb'\g<1>1.0\g<2>', text, count=1)
    if not text.strip():
        raise DescriptionError('the document is empty', valid='a URDF document')
    if len(text) > MAX_BYTES:
        raise DescriptionError(f'the document has {len(text)} bytes',
                               valid=f'at most {MAX_BYTES} bytes')
    if b'<!DOCTYPE' in text or '<!DOCTYPE'.encode('utf-16-le') in text or \
            '<!DOCTYPE'.encode('utf-16-be') in text:
        raise DescriptionError('a document type declaration (DOCTYPE, entities) is not accepted',
                               valid='plain XML elements')
    try:
        root = _parse(text, comments)
    except (etree.XMLSyntaxError, ValueError) as error:
        line = getattr(error, 'lineno', None)
        message = getattr(error, 'msg', None) or str(error)
        raise DescriptionError(f'not well-formed XML: {message}', line=line,
                               valid='a URDF document') from None
    _check_depth(root)
    return root


def _parse(text: bytes, comments: bool) -> etree._Element:
    """Parse; accept prefixes without a declared namespace, such as ``<drake:gear_ratio>``.

    Hyphens in comments and an XML declaration behind a comment, which occur in models of Gazebo,
    are accepted as well.
    """
    for recover in (False, True):
        parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False,
                                 huge_tree=False, remove_comments=not comments, remove_pis=True,
                                 recover=recover)
        try:
            return etree.fromstring(text, parser)
        except etree.XMLSyntaxError:
            errors = parser.error_log
            if not all(entry.domain == etree.ErrorDomains.NAMESPACE or entry.type in _HARMLESS
                       for entry in errors):
                raise
    raise AssertionError('a recovering parser does not raise on harmless errors')


def _without_declaration(text: str) -> str:
    """Drop ``<?xml ... ?>``, whose encoding does not apply to decoded text; keep the lines."""
    if text.startswith('<?xml') and '?>' in text:
        head, _, rest = text.partition('?>')
        return '\n' * head.count('\n') + rest
    return text


def _check_depth(root: etree._Element) -> None:
    depth = 0
    for event, element in etree.iterwalk(root, events=('start', 'end')):
        depth += 1 if event == 'start' else -1
        if depth > MAX_DEPTH:
            raise DescriptionError(f'elements are nested deeper than {MAX_DEPTH}',
                                   element=f'<{element.tag}>', line=element.sourceline)


def local_name(element: etree._Element) -> str:
    """Return the tag without its namespace; '' for a comment."""
    tag = element.tag
    return tag.rpartition('}')[2].rpartition(':')[2] if isinstance(tag, str) else ''


def parse_number(text: str, *, element: str, line: int | None, quantity: str,
                 largest: float = LARGEST) -> float:
    """Parse a finite number of at most a given magnitude.

    Raises
    ------
    DescriptionError
        The text is not a number, or the number is not finite or too large.
    """
    valid = 'a finite number such as 0.5 or 1e-3'
    try:
        value = float(text)
    except ValueError:
        comma = ' (a decimal comma?)' if ',' in text else ''
        raise DescriptionError(f'{quantity} is {text[:60]!r}{comma}', element=element, line=line,
                               valid=valid) from None
    if not math.isfinite(value) or '_' in text:
        raise DescriptionError(f'{quantity} is {text[:60]!r}', element=element, line=line,
                               valid=valid)
    if abs(value) > largest:
        raise DescriptionError(f'{quantity} is {text[:60]!r}', element=element, line=line,
                               valid=f'at most {largest:g} in magnitude, SI units')
    return value
