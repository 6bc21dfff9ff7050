"""Writes the tutorials with Python as notebooks: the same text, its code in cells, its output.

They are written when the site is built, so that page and notebook cannot differ. To have them
without the site: python docs/notebooks.py FOLDER
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

BLOCK = re.compile(r'^```(\w+)\n(.*?)^```\n?', re.DOTALL | re.MULTILINE)
TUTORIALS = Path(__file__).parent / 'tutorials'
NOTE = ('*Start Jupyter in the folder of the repository, so that the files named below are '
        'found: `jupyter lab`. The page of the site has the same text.*')


def write_notebooks(folder: Path) -> list[Path]:
    """Write one notebook for each tutorial with Python; return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for page in sorted(TUTORIALS.glob('*.md')):
        text = page.read_text(encoding='utf-8')
        if '```python' in text:
            path = folder / f'{page.stem}.ipynb'
            path.write_text(json.dumps(notebook_of(text), indent=1) + '\n', encoding='utf-8')
            written.append(path)
    return written


def notebook_of(text: str) -> dict[str, Any]:
    """Return a page as a notebook, format 4.5; other blocks than Python stay in the text."""
    cells: list[dict[str, Any]] = []
    prose, place = '', 0

    def flush() -> None:
        nonlocal prose
        if prose.strip():
            cells.append({'cell_type': 'markdown', 'id': f'cell{len(cells)}', 'metadata': {},
                          'source': prose.strip()})
        prose = ''

    for found in BLOCK.finditer(text):
        prose += text[place:found.start()]
        place = found.end()
        language, content = found.groups()
        after_code = cells and cells[-1]['cell_type'] == 'code' and not prose.strip()
        if language == 'python':
            flush()
            cells.append({'cell_type': 'code', 'id': f'cell{len(cells)}', 'metadata': {},
                          'execution_count': None, 'source': content.rstrip(), 'outputs': []})
        elif language == 'text' and after_code and not cells[-1]['outputs']:
            cells[-1]['outputs'] = [{'output_type': 'stream', 'name': 'stdout', 'text': content}]
        else:
            prose += found[0]
    prose += text[place:]
    flush()
    title, _, rest = cells[0]['source'].partition('\n')
    cells[0]['source'] = f'{title}\n\n{NOTE}\n{rest}'
    kernel = {'display_name': 'Python 3', 'language': 'python', 'name': 'python3'}
    return {'cells': cells, 'metadata': {'kernelspec': kernel}, 'nbformat': 4,
            'nbformat_minor': 5}


if __name__ == '__main__':
    for path in write_notebooks(Path(sys.argv[1] if len(sys.argv) > 1 else 'notebooks')):
        print(path)
