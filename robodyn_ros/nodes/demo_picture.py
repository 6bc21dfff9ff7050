"""The moving picture of the demo: frames of a terminal, one after the other, in one SVG file."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.padding import Padding

SECONDS = 3.0  # for which each frame is shown


def moving_picture(frames: Sequence[Any], width: int) -> str:
    """Return an SVG that shows frames one after the other, and begins again after the last.

    A program that does not animate SVG shows the last frame.

    Parameters
    ----------
    frames : sequence
        What rich can print.
    width : int
        Columns of the terminal.
    """
    height = max(_rows(frame, width) for frame in frames)
    drawn = [_drawn(frame, width, height, k) for k, frame in enumerate(frames)]
    _, _, w, h = re.search(r'viewBox="([^"]*)"', drawn[0])[1].split()  # type: ignore[index]
    part, whole = 100 / len(frames), SECONDS * len(frames)
    # the last frame is below the others and always visible
    style = ['.frame { opacity: 0; }', f'@keyframes frame {{ 0% {{ opacity: 1; }} {part:.4g}% '
             '{ opacity: 0; } 100% { opacity: 0; } }']
    style += [f'.frame-{k} {{ animation: frame {whole:g}s step-end {k * SECONDS:g}s infinite; }}'
              for k in range(len(frames) - 1)]
    layers = [f'<g>{drawn[-1]}</g>']
    layers += [f'<g class="frame frame-{k}">{one}</g>' for k, one in enumerate(drawn[:-1])]
    return (f'<svg viewBox="0 0 {w} {h}" xmlns="http://www.w3.org/2000/svg">\n'
            f'<style>{" ".join(style)}</style>\n' + '\n'.join(layers) + '\n</svg>\n')


def _rows(frame: Any, width: int) -> int:
    console = Console(width=width, file=io.StringIO())
    return len(console.render_lines(frame))


def _drawn(frame: Any, width: int, height: int, k: int) -> str:
    """Return a frame as SVG, with blank lines up to a height in rows."""
    console = Console(record=True, width=width, file=io.StringIO())
    console.print(Padding(frame, (0, 0, height - _rows(frame, width), 0)))
    return console.export_svg(title='robodyn demo', unique_id=f'frame{k}')
