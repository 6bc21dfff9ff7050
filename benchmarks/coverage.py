"""Do 95 % intervals contain the true parameters? `python coverage.py 20` for 20 logs a figure.

Logs of a simulated LWR 4+ with coloured torque noise of 2 %, at the automatic cutoff of the
position filter, half of it and twice. The logs are shared among Dask workers, see `parallel.py`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / 'test'))

from parallel import each  # noqa: E402
from synthetic import coloured_noise, fourier_motion, lwr4_with_drives  # noqa: E402

import robodyn_ros as rd  # noqa: E402

MEMORIES = (0.0, 0.9, 0.98)  # correlation of the noise from sample to sample, at 200 Hz
FACTORS = (0.5, 1.0, 2.0)  # of the automatic cutoff
SECONDS, RATE, NOISE = 20, 200, 0.02


def inside(memory, seed):
    """Return which intervals of one log contain the true value, for each factor."""
    true = lwr4_with_drives()
    rng = np.random.default_rng(seed)
    t, q, *rates = fourier_motion(true, rng, SECONDS, RATE)
    tau = rd.Dynamics(true).inverse_dynamics(q, *rates)
    noise = coloured_noise(rng, len(t), NOISE * np.abs(tau).max(axis=0), memory)
    log = rd.Log(t, q, tau + noise, joint_names=true.joint_names)
    found, chosen = {}, None
    for factor in (1.0, *(f for f in FACTORS if f != 1)):
        options = {} if chosen is None else {
            'filter': rd.FilterSettings(cutoff=factor * chosen.cutoff),
            'decimation': factor * chosen.decimation}
        result = rd.identify(true, log, friction='coulomb', **options)
        chosen = chosen or result.filtering
        want = result.base_.matrix @ result.linear.nominal()
        interval = result.uncertainty_.interval
        found[factor] = (interval[:, 0] <= want) & (want <= interval[:, 1])
    return found


def coverage(repetitions=10):
    """Print the fraction of the intervals that contain the true value."""
    print('\n| noise memory | ' + ' | '.join(f'{factor:g} times the cutoff' for factor in FACTORS)
          + ' |\n|---' + '|---' * len(FACTORS) + '|')
    tasks = [(memory, seed) for memory in MEMORIES for seed in range(repetitions)]
    every = each(inside, tasks)
    for memory in MEMORIES:
        found = [one for (of, _), one in zip(tasks, every, strict=True) if of == memory]
        print(f'| {memory:g} | ' + ' | '.join(
            f'{np.mean(np.concatenate([one[factor] for one in found])):.1%}'
            for factor in FACTORS) + ' |', flush=True)


if __name__ == '__main__':
    coverage(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
