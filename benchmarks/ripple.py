"""Torque ripple on measured logs: `python benchmarks/ripple.py`, with a folder: on public logs.

Lines are chosen on the data of the fit alone. The other parameters are estimated before, so that
the errors on held-out data without and with the lines differ by nothing else.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
from gear_terms import measured, public

import robodyn_ros as rd
from robodyn_ros.identification.writing import parameters_of


def row(result, held_out):
    """Return the held-out raw errors without and with the lines, and the lines in words."""
    plain = replace(result, linear=result.observations.with_ripple({}).linear)
    lines = [f'{joint}: {line["harmonic"]}, {np.hypot(line["sine"], line["cosine"]):.2g} N m'
             for joint, lines in parameters_of(result)['friction']['ripple'].items()
             for line in lines]
    errors = [f'{rd.validate(one, held_out).total:.2%}' for one in (plain, result)]
    return *errors, '; '.join(lines) or 'none'


def ripple(folder=None):
    """Print the table."""
    print('| robot | without | with | lines: periods a turn, amplitude |\n|---|---|---|---|')
    for name, model, fits, held_out, options in public(folder) if folder else measured():
        found = row(rd.identify(model, fits, **options), held_out)
        print(f'| {name} | ' + ' | '.join(found) + ' |', flush=True)


if __name__ == '__main__':
    ripple(*sys.argv[1:])
