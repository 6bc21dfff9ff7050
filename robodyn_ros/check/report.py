"""What a check says: doubts, facts, a verdict; as text and as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Doubt:
    """One thing that makes the dynamics wrong or doubtful.

    Attributes
    ----------
    severity : str
        ``fault``: the dynamics are wrong; ``warning``: they may be.
    where : str
        Link or joint.
    text : str
        What, with numbers and what would be right.
    """

    severity: str
    where: str
    text: str


@dataclass
class CheckReport:
    """What `check_robot` found.

    Attributes
    ----------
    verdict : str
        ``good``, ``doubtful`` (warnings) or ``faulty``.
    links, joints : list of dict
        Facts, SI units.
    robot : dict
        Totals.
    doubts : list of Doubt
        Worst first.
    """

    name: str
    robot: dict[str, Any]
    links: list[dict[str, Any]]
    joints: list[dict[str, Any]]
    tree: str
    doubts: list[Doubt] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        """The worst of the doubts."""
        severities = {doubt.severity for doubt in self.doubts}
        return 'faulty' if 'fault' in severities else 'doubtful' if severities else 'good'

    @property
    def exit_code(self) -> int:
        """1 where the description is faulty, else 0."""
        return int(self.verdict == 'faulty')

    def to_json(self) -> str:
        """The report as JSON; what is infinite or unknown is null."""
        return json.dumps(_plain({**asdict(self), 'verdict': self.verdict}), indent=2)

    def to_text(self) -> str:
        """The report for a terminal."""
        lines = [f'{self.name}: {self.verdict}', '']
        doubts = [f'  {doubt.severity.upper():7} {doubt.where}: {doubt.text}'
                  for doubt in self.doubts]
        lines += [*doubts, ''] if doubts else []
        lines += [*(f'  {key:28} {shown(value)}' for key, value in self.robot.items()), '',
                  self.tree, '', _table(self.links), '', _table(self.joints)]
        notes = [f'  link {link["link"]}: {link["geometry"]}' for link in self.links
                 if 'geometry' in link]
        if notes:
            lines += ['', '  Collision geometry:', *notes]
        return '\n'.join(lines)


def _table(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return ''
    columns = [key for key in dict.fromkeys(key for row in rows for key in row)
               if key != 'geometry']
    cells = [columns] + [[shown(row.get(key)) for key in columns] for row in rows]
    widths = [max(len(line[k]) for line in cells) for k in range(len(columns))]
    return '\n'.join('  ' + '  '.join(text.ljust(width) for text, width in zip(
        line, widths, strict=True)).rstrip() for line in cells)


def shown(value: Any) -> str:
    """Return a value as the report writes it."""
    if value is None:
        return '-'
    if isinstance(value, float):
        return f'{value:.4g}'
    if isinstance(value, (list, tuple, np.ndarray)):
        return ' '.join(shown(entry) for entry in value) or 'none'
    return str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value
