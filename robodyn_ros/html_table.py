"""Tables in HTML, as notebooks show them (``_repr_html_``)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def html_table(title: str, headings: Sequence[str], rows: Iterable[Sequence[object]],
               remarks: Iterable[str] = ()) -> str:
    """Return a titled table; every text in it is escaped.

    Parameters
    ----------
    title : str
        Shown above the table.
    headings : sequence of str
        One for each column, with its unit.
    rows : iterable of sequence
        Texts, or numbers, which are written with four digits.
    remarks : iterable of str
        Shown as a list below the title.
    """
    def cell(value: object) -> str:
        return escape(f'{value:.4g}' if isinstance(value, float) else str(value))

    head = ''.join(f'<th>{escape(heading)}</th>' for heading in headings)
    body = ''.join(f'<tr>{"".join(f"<td>{cell(value)}</td>" for value in row)}</tr>'
                   for row in rows)
    notes = ''.join(f'<li>{escape(remark)}</li>' for remark in remarks)
    return (f'<b>{escape(title)}</b>' + (f'<ul>{notes}</ul>' if notes else '')
            + f'<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>')
