"""Which further terms of gears explain torque on measured logs? `python benchmarks/gear_terms.py`.

With a folder, see `public_logs.py`, on the public logs there.

Each term is fitted to the residual of the fit, for the joints where it lowers this residual by at
least 2 %, and judged on the held-out data. A term that described the robot would lower both.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / 'test'))

from measured_logs import TX40_SLOW, kr300, tiago, tx40, ur10  # noqa: E402
from public_logs import ROBOTS, TORQUES_OF  # noqa: E402

import robodyn_ros as rd  # noqa: E402

JOINS = 0.02  # smallest reduction of the residual of the fit for which a term joins
HARMONICS = range(1, 421)  # of a joint's turn; motors turn up to 200 times
DISTANCES = np.geomspace(1e-4, 0.3, 12)  # rad, over which hysteresis builds up


class Piece(NamedTuple):
    """What is known of one joint in an uninterrupted piece of a log; each an ndarray, shape (K,).

    Attributes
    ----------
    t, q, qd : time, position and velocity of the joint
    tau : measured torque
    wound : change of the torque by an elasticity of the gear, for 1 rad/(N m)
    residual : measured torque minus predicted torque
    """

    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    tau: np.ndarray
    wound: np.ndarray
    residual: np.ndarray


def delay(piece):
    """A delay of the torque of this joint."""
    return np.gradient(piece.tau, piece.t)[:, None]


def spring(piece):
    """A spring or a counterbalance at this joint, and its offset."""
    return np.column_stack([piece.q, np.ones_like(piece.q)])


def asymmetric(piece):
    """Viscous friction that depends on the direction."""
    return np.column_stack([np.abs(piece.qd), np.ones_like(piece.q)])


def cubic(piece):
    """Viscous friction that is not linear in the speed."""
    return piece.qd[:, None]**3


def ripple(harmonic):
    """Return the columns of a torque ripple that repeats so many times a turn."""
    return lambda piece: np.column_stack([np.sin(harmonic * piece.q), np.cos(harmonic * piece.q)])


def ripple_by_speed(harmonic):
    """Return the columns of a torque ripple whose amplitude changes with the speed."""
    def columns(piece):
        constant = ripple(harmonic)(piece)
        return np.column_stack([constant, np.abs(piece.qd)[:, None] * constant])
    return columns


def dahl(distance):
    """Return the columns of Dahl's friction, which builds up over a distance after a reversal."""
    return lambda piece: np.column_stack([bristles(piece.q, distance), np.sign(piece.qd)])


def lugre(distance):
    """Return the columns of LuGre friction: Dahl's, with damping of the bristles."""
    def columns(piece):
        z = bristles(piece.q, distance)
        return np.column_stack([z, np.gradient(z, piece.t), np.sign(piece.qd), piece.qd])
    return columns


def bristles(q, distance):
    """Return the state of Dahl's model, from -1 to 1: ``dz = (1 - z sign(dq)) dq / distance``."""
    moves, z = np.diff(q), np.zeros(len(q))
    steps = zip(np.sign(moves), np.exp(-np.abs(moves) / distance), strict=True)
    for k, (way, keep) in enumerate(steps):
        z[k + 1] = way + (z[k] - way) * keep
    return z


def elasticity(piece):
    """An elasticity of the gear: it winds up in proportion to the torque."""
    return piece.wound[:, None]


TERMS = {'delay': [delay], 'spring': [spring], 'asymmetric viscous friction': [asymmetric],
         'cubic viscous friction': [cubic], 'torque ripple': [ripple(k) for k in HARMONICS],
         'ripple by speed': [ripple_by_speed(k) for k in HARMONICS],
         'hysteresis (Dahl)': [dahl(x) for x in DISTANCES],
         'hysteresis (LuGre)': [lugre(x) for x in DISTANCES], 'gear elasticity': [elasticity]}


def pieces(model, validation, joint):
    """Return what is known of one joint in every piece of a log."""
    return [Piece(t, q[:, joint], qd[:, joint], measured[:, joint],
                  wound(model, t, q, qd, predicted, joint), (measured - predicted)[:, joint])
            for t, q, qd, measured, predicted in zip(
                validation.t, validation.q, validation.qd, validation.measured,
                validation.predicted, strict=True)]


def wound(model, t, q, qd, tau, joint, small=1e-7):
    """Return the change of a joint's torque by the elasticity of its gear, for 1 rad/(N m).

    The encoder is taken to be at the motor: the link lags behind it in proportion to the torque.
    Friction acts at the motor and stays the same.
    """
    dynamics = rd.Dynamics(model)
    lag = np.zeros_like(q)
    lag[:, joint] = small * tau[:, joint]
    lag_rate = np.gradient(lag, t, axis=0)
    qdd = np.gradient(qd, t, axis=0)
    torques = [dynamics.inverse_dynamics(q - k * lag, qd - k * lag_rate,
                                         qdd - k * np.gradient(lag_rate, t, axis=0))
               - dynamics.friction(qd - k * lag_rate, q - k * lag) for k in (0, 1)]
    return (torques[1] - torques[0])[:, joint] / small


def squares(data, term=None, values=None):
    """Return the sum of squares of the residual, without what a term explains."""
    return sum(float(((piece.residual - term(piece) @ values if term else piece.residual) ** 2)
                     .sum()) for piece in data)


def judge(result, held_out):
    """Return by term: its joints, and the change of the held-out raw error."""
    fit, other = result.training_, rd.validate(result, held_out)
    joints = range(len(result.model.joint_names))
    known, unseen = ([pieces(result.model, part, j) for j in joints] for part in (fit, other))
    before = sum(squares(data) for data in unseen)
    found = {}
    for name, forms in TERMS.items():
        joined, after = [], before
        for j in joints:
            best = (1 - JOINS) ** 2 * squares(known[j])
            chosen = None
            for term in forms:
                columns = np.concatenate([term(piece) for piece in known[j]])
                values = np.linalg.lstsq(
                    columns, np.concatenate([p.residual for p in known[j]]), rcond=None)[0]
                left = squares(known[j], term, values)
                if left < best:
                    best, chosen = left, (term, values)
            if chosen:
                joined.append(j + 1)
                after += squares(unseen[j], *chosen) - squares(unseen[j])
        found[name] = joined, np.sqrt(after / before) - 1
    return found


def measured():
    """Yield (name, model, logs for the fit, held-out logs, settings) of the measured robots."""
    for name, load in {'Staubli TX40': tx40, 'UR10': ur10, 'KUKA KR300': kr300,
                       'TIAGo': tiago}.items():
        model, log = load()
        fits, held_out = ([log['A'], log['B']], log['C']) if load is kr300 else log.split(2 / 3)
        yield name, model, fits, held_out, (
            {'slow': TX40_SLOW, 'guard': 0.0} if load is tx40 else {})


def public(folder):
    """Yield the same for the public logs that have the torques of all joints."""
    for name, load in ROBOTS.items():
        if name not in TORQUES_OF:
            yield name, *load(Path(folder) / name), {}


def gear_terms(folder=None):
    """Print the table."""
    print('\n| robot | ' + ' | '.join(TERMS) + ' |\n|---' + '|---' * len(TERMS) + '|')
    for name, model, fits, held_out, options in public(folder) if folder else measured():
        found = judge(rd.identify(model, fits, **options), held_out)
        print(f'| {name} | ' + ' | '.join(
            f'joints {", ".join(map(str, joints))}: {change:+.1%}' if joints else 'none'
            for joints, change in found.values()) + ' |', flush=True)


if __name__ == '__main__':
    gear_terms(*sys.argv[1:])
