"""Which further terms of gears explain torque on measured logs? `python benchmarks/gear_terms.py`.

Each term is fitted to the residual of the fit, for the joints where it lowers this residual by at
least 2 %, and judged on the held-out data. A term that described the robot would lower both.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / 'test'))

from measured_logs import TX40_SLOW, kr300, tiago, tx40, ur10  # noqa: E402

import robodyn_ros as rd  # noqa: E402

JOINS = 0.02  # smallest reduction of the residual of the fit for which a term joins
HARMONICS = range(1, 421)  # of a joint's turn; motors turn up to 200 times


def delay(t, q, qd, tau):
    """A delay of the torque of this joint."""
    return np.gradient(tau, t)[:, None]


def spring(t, q, qd, tau):
    """A spring or a counterbalance at this joint, and its offset."""
    return np.column_stack([q, np.ones_like(q)])


def asymmetric(t, q, qd, tau):
    """Viscous friction that depends on the direction."""
    return np.column_stack([np.abs(qd), np.ones_like(q)])


def cubic(t, q, qd, tau):
    """Viscous friction that is not linear in the speed."""
    return qd[:, None]**3


def ripple(harmonic):
    """Return the columns of a torque ripple that repeats so many times a turn."""
    return lambda t, q, qd, tau: np.column_stack([np.sin(harmonic * q), np.cos(harmonic * q)])


TERMS = {'delay': [delay], 'spring': [spring], 'asymmetric viscous friction': [asymmetric],
         'cubic viscous friction': [cubic], 'torque ripple': [ripple(k) for k in HARMONICS]}


def pieces(validation, joint):
    """Return (t, q, qd, measured torque, residual) of one joint in every piece of a log."""
    return [(t, q[:, joint], qd[:, joint], measured[:, joint],
             (measured - predicted)[:, joint]) for t, q, qd, measured, predicted in zip(
                 validation.t, validation.q, validation.qd, validation.measured,
                 validation.predicted, strict=True)]


def squares(data, term=None, values=None):
    """Return the sum of squares of the residual, without what a term explains."""
    return sum(float(((e - term(t, q, qd, tau) @ values) ** 2).sum() if term else (e**2).sum())
               for t, q, qd, tau, e in data)


def judge(result, held_out):
    """Return by term: its joints, and the change of the held-out raw error."""
    fit, other = result.training_, rd.validate(result, held_out)
    joints = range(len(result.model.joint_names))
    known = [pieces(fit, j) for j in joints]
    unseen = [pieces(other, j) for j in joints]
    before = sum(squares(data) for data in unseen)
    found = {}
    for name, forms in TERMS.items():
        joined, after = [], before
        for j in joints:
            best = (1 - JOINS) ** 2 * squares(known[j])
            chosen = None
            for term in forms:
                columns = np.concatenate([term(*piece[:4]) for piece in known[j]])
                values = np.linalg.lstsq(columns, np.concatenate([p[4] for p in known[j]]),
                                         rcond=None)[0]
                left = squares(known[j], term, values)
                if left < best:
                    best, chosen = left, (term, values)
            if chosen:
                joined.append(j + 1)
                after += squares(unseen[j], *chosen) - squares(unseen[j])
        found[name] = joined, np.sqrt(after / before) - 1
    return found


def gear_terms():
    """Print the table."""
    print('\n| robot | ' + ' | '.join(TERMS) + ' |\n|---' + '|---' * len(TERMS) + '|')
    for name, load in {'Staubli TX40': tx40, 'UR10': ur10, 'KUKA KR300': kr300,
                       'TIAGo': tiago}.items():
        model, log = load()
        if load is kr300:
            first, last = [log['A'], log['B']], log['C']
        else:
            first, last = log.split(2 / 3)
        options = {'slow': TX40_SLOW, 'guard': 0.0} if load is tx40 else {}
        found = judge(rd.identify(model, first, **options), last)
        print(f'| {name} | ' + ' | '.join(
            f'joints {", ".join(map(str, joints))}: {change:+.1%}' if joints else 'none'
            for joints, change in found.values()) + ' |', flush=True)


if __name__ == '__main__':
    gear_terms()
