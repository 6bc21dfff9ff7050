"""Do 95 % intervals contain the true parameters? `python coverage.py 20` for 20 logs a figure.

Logs of a simulated LWR 4+ with coloured torque noise of 2 %, at the automatic cutoff of the
position filter, half of it and twice.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / 'test'))

from synthetic import coloured_noise, fourier_motion, lwr4_with_drives  # noqa: E402

import robodyn_ros as rd  # noqa: E402

MEMORIES = (0.0, 0.9, 0.98)  # of the autoregressive noise from sample to sample, at 200 Hz
FACTORS = (0.5, 1.0, 2.0)  # of the automatic cutoff
SECONDS, RATE, NOISE = 20, 200, 0.02


def coverage(repetitions=10):
    """Print the fraction of the intervals that contain the true value."""
    true = lwr4_with_drives()
    motions = [fourier_motion(true, np.random.default_rng(k), SECONDS, RATE)
               for k in range(repetitions)]
    torques = [rd.Dynamics(true).inverse_dynamics(*motion[1:]) for motion in motions]
    print('\n| noise memory | ' + ' | '.join(f'{factor:g} times the cutoff' for factor in FACTORS)
          + ' |\n|---' + '|---' * len(FACTORS) + '|')
    for memory in MEMORIES:
        rng, found = np.random.default_rng(1), {factor: [] for factor in FACTORS}
        for (t, q, *_), tau in zip(motions, torques, strict=True):
            noise = coloured_noise(rng, len(t), NOISE * np.abs(tau).max(axis=0), memory)
            log = rd.Log(t, q, tau + noise, joint_names=true.joint_names)
            chosen = None
            for factor in (1.0, *(f for f in FACTORS if f != 1)):
                options = {} if chosen is None else {
                    'filter': rd.FilterSettings(cutoff=factor * chosen.cutoff),
                    'decimation': factor * chosen.decimation}
                result = rd.identify(true, log, friction='coulomb', **options)
                chosen = chosen or result.filtering
                want = result.base_.matrix @ result.linear.nominal()
                interval = result.uncertainty_.interval
                found[factor].append((interval[:, 0] <= want) & (want <= interval[:, 1]))
        print(f'| {memory:g} | ' + ' | '.join(f'{np.mean(np.concatenate(found[f])):.1%}'
                                              for f in FACTORS) + ' |', flush=True)


if __name__ == '__main__':
    coverage(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
