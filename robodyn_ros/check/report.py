"""The report of a check: issues, facts and a verdict, as text and as JSON."""

from __future__ import annotations

import json
import textwrap
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from robodyn_ros.check.quantities import JOINT, LINK, ROBOT, SCHEMA_VERSION, Quantity
from robodyn_ros.html_table import html_table

WIDTH = 80  # columns of a standard terminal


@dataclass(frozen=True)
class Issue:
    """A problem that makes the dynamics wrong or doubtful.

    Attributes
    ----------
    severity : str
        ``fault``: the dynamics are wrong; ``warning``: they may be wrong.
    where : str
        Link or joint.
    text : str
        Description of the problem, with numbers, and what would be valid.
    """

    severity: str
    where: str
    text: str


@dataclass
class CheckReport:
    """The result of `check_robot`.

    Attributes
    ----------
    name : str
        Name of the robot.
    verdict : str
        ``good``, ``doubtful`` (warnings) or ``faulty``.
    tree : str
        The links and the joints between them, as indented text.
    links, joints : list of dict
        Facts, SI units.
    robot : dict
        Facts of the whole robot; each key names its unit.
    issues : list of Issue
        The most severe come first.
    """

    name: str
    robot: dict[str, Any]
    links: list[dict[str, Any]]
    joints: list[dict[str, Any]]
    tree: str
    issues: list[Issue] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        """The verdict that follows from the most severe issue."""
        severities = {issue.severity for issue in self.issues}
        return 'faulty' if 'fault' in severities else 'doubtful' if severities else 'good'

    @property
    def exit_code(self) -> int:
        """1 if the description is faulty, else 0."""
        return int(self.verdict == 'faulty')

    def to_json(self) -> str:
        """Return the report as JSON, see `json_schema`; infinite and unknown numbers are null."""
        values = {'schema_version': SCHEMA_VERSION, 'name': self.name, 'verdict': self.verdict}
        return json.dumps(_plain({**values, **asdict(self)}), indent=2)

    def _repr_html_(self) -> str:
        """Return verdict, issues and links, for notebooks."""
        keys = ('link', 'mass_kg', 'centre_of_mass_m', 'principal_moments_kg_m2')
        return html_table(f'{self.name}: {self.verdict}', [_labelled(LINK[key]) for key in keys],
                          [[shown(link.get(key)) for key in keys] for link in self.links],
                          [f'{issue.severity} {issue.where}: {issue.text}'
                           for issue in self.issues])

    def to_text(self) -> str:
        """Return the report as text for a terminal."""
        lines = [f'{self.name}: {self.verdict}', '']
        issues = [textwrap.fill(f'{issue.severity.upper():7} {issue.where}: {issue.text}', WIDTH,
                                initial_indent='  ', subsequent_indent=' ' * 10)
                  for issue in self.issues]
        lines += [*issues, ''] if issues else []
        lines += [*(f'  {_labelled(ROBOT[key]):36} {shown(value)}'
                    for key, value in self.robot.items()), '', self.tree, '',
                  _table(self.links, LINK), '', _table(self.joints, JOINT)]
        notes = [textwrap.fill(f'link {link["link"]}: {link["geometry"]}', WIDTH,
                               initial_indent='  ', subsequent_indent=' ' * 4)
                 for link in self.links if 'geometry' in link]
        if notes:
            lines += ['', '  Collision geometry:', *notes]
        return '\n'.join(lines)


def _labelled(quantity: Quantity) -> str:
    return quantity.label + (f', {quantity.unit}' if quantity.unit else '')


def _table(rows: list[dict[str, Any]], quantities: dict[str, Quantity]) -> str:
    """Return a table with units; columns that do not fit go into another block below."""
    if not rows:
        return ''
    there = {key for row in rows for key in row}
    columns = [key for key, quantity in quantities.items() if quantity.label and key in there]
    cells = [[quantities[key].label for key in columns], [quantities[key].unit for key in columns]]
    cells += [[shown(row.get(key)) for key in columns] for row in rows]
    widths = [max(len(line[k]) for line in cells) for k in range(len(columns))]
    blocks, block = [], [0]
    for k in range(1, len(columns)):
        if sum(widths[i] + 2 for i in (*block, k)) > WIDTH and len(block) > 1:
            blocks.append(block)
            block = [0]
        block.append(k)
    return '\n\n'.join('\n'.join(
        ('  ' + '  '.join(line[k].ljust(widths[k]) for k in block)).rstrip() for line in cells)
        for block in [*blocks, block])


def shown(value: Any) -> str:
    """Return a value as text for the report."""
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
