"""Identification from measured logs: errors compared with reference tools, time with figaroh."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / 'test'))

from measured_logs import DATA, TX40_SLOW, kr300, tiago, tx40, ur10  # noqa: E402
from synthetic import coloured_noise, fourier_motion, lwr4_with_drives  # noqa: E402

import robodyn_ros as rd  # noqa: E402
from robodyn_ros.identification.linear_model import LinearModel  # noqa: E402


def identification():
    measured_logs()
    timing()


def measured_logs():
    print('\nIdentification on measured logs, relative torque error\n')
    print('| robot, data held out | reference | here | physically consistent |')
    print('|---|---|---|---|')
    model, log = tx40()
    peer = _figaroh(DATA / 'staubli-tx40/tx40_mdh_modified_nomesh.urdf', q=log.q,
                    tau=log.for_model(model).tau, rate=5000.0, cutoff=100.0, step=10,
                    slow=TX40_SLOW, coupled=True)
    whole = rd.identify(model, log, slow=TX40_SLOW, guard=0.0)
    _row('Staubli TX40, in sample (filtered)', peer['in sample'], whole.training_.total_filtered)
    first, last = log.split(2 / 3)
    result = rd.identify(model, first, slow=TX40_SLOW, guard=0.0)
    _row('Staubli TX40, last third (filtered)', peer['last third'],
         *(rd.validate(result, last, consistent=c).total_filtered for c in (False, True)))
    model, log = ur10()
    t = np.arange(log.t[0], log.t[-1], 0.008)
    even = [np.column_stack([np.interp(t, log.t, x) for x in values.T])
            for values in (log.q, log.tau)]
    peer = _figaroh(DATA / 'ur10/ur10_nomesh.urdf', q=even[0], tau=even[1], rate=125.0,
                    cutoff=10.0, step=1, slow=np.full(6, -1.0), coupled=False)
    first, last = log.split(2 / 3)
    result = rd.identify(model, first)
    _row('UR10, last third (raw)', f'published model 8.10 %, {peer["last third"]}',
         *(rd.validate(result, last, consistent=c).total for c in (False, True)))
    model, logs = kr300()
    result = rd.identify(model, [logs['A'], logs['B']])
    _row('KUKA KR300, motion C (raw)', 'plain WLS 20.3 %',
         *(rd.validate(result, logs['C'], consistent=c).total for c in (False, True)))
    model, log = tiago()
    first, last = log.split(2 / 3)
    result = rd.identify(model, first)
    _row('TIAGo arm, last third (raw), badly excited', '-',
         *(rd.validate(result, last, consistent=c).total for c in (False, True)))


def _figaroh(urdf, **log):
    """Return figaroh's errors in words, where there is an interpreter that has it."""
    peer = os.environ.get('FIGAROH_PYTHON')
    if not peer:
        return {'in sample': 'figaroh: not measured', 'last third': 'figaroh: not measured'}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / 'log.npz'
        np.savez(path, **log)
        ran = subprocess.run([peer, str(HERE / 'figaroh_accuracy_peer.py'), str(urdf), str(path)],
                             capture_output=True, text=True, check=True)
    return {name: f'figaroh {error:.2%}'
            for name, error in json.loads(ran.stdout.splitlines()[-1]).items()}


def _row(name, reference, *errors):
    print(f'| {name} | {reference} | ' + ' | '.join(f'{error:.2%}' for error in errors)
          + (' | |' if len(errors) == 1 else ' |'))


def timing():
    """Compare the CPU time for one log with figaroh: TX40, 45 000 samples, uncoupled wrist."""
    _, log = tx40()
    urdf = DATA / 'staubli-tx40/tx40_mdh_modified_nomesh.urdf'
    model = rd.load_model(urdf)
    options = {'friction': 'coulomb', 'slow': None}
    rd.identify(model, log, **options)  # compiles the kernels
    rng = np.random.default_rng(0)
    linear = LinearModel(rd.Dynamics(model))
    q = np.asarray(log.q)
    mine = {'regressor': _best(lambda: [linear.regressor(q[a:a + 4096], q[a:a + 4096],
                                                         q[a:a + 4096])
                                        for a in range(0, len(q), 4096)]),
            'base parameters': _best(lambda: rd.base_parameters(model)),
            'pipeline': _best(lambda: _estimate_only(model, log)),
            'with statistics, bias check, consistency': _best(
                lambda: rd.identify(model, log, **options))}
    print('\nStaubli TX40, 45 000 samples, 6 joints, CPU time; pipeline: filter, regressor, '
          'decimation, base parameters, weighted least squares\n')
    peer = os.environ.get('FIGAROH_PYTHON')
    other = {}
    if peer:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / 'log.npz'
            np.savez(path, q=q, tau=np.asarray(log.tau))
            ran = subprocess.run([peer, str(HERE / 'figaroh_peer.py'), str(urdf), str(path),
                                  '5000'], capture_output=True, text=True, check=True)
        other = json.loads(ran.stdout.splitlines()[-1])['times']
    else:
        print('figaroh: set FIGAROH_PYTHON to an interpreter that has it\n')
    print('| | here | figaroh | ratio |\n|---|---|---|---|')
    for key, seconds in mine.items():
        theirs = other.get(key)
        print(f'| {key} | {seconds:.3f} s | ' + (f'{theirs:.3f} s | {theirs / seconds:.1f}x |'
                                                if theirs else '- | - |'))
    true = lwr4_with_drives()
    t, q, qd, qdd = fourier_motion(true, rng, 60, 1000)
    tau = rd.Dynamics(true).inverse_dynamics(q, qd, qdd)
    tau = tau + coloured_noise(rng, len(t), 0.01 * np.abs(tau).max(axis=0), 0.9)
    log = rd.Log(t, q, tau, joint_names=true.joint_names)
    rd.identify(true, log.part(0, 0.3))
    print(f'\n60 s at 1 kHz of a 7R arm, friction model chosen from the data: CPU time '
          f'{_best(lambda: rd.identify(true, log), 2):.1f} s')


class _Enough(Exception):
    pass


def _estimate_only(model, log):
    """Identify up to the weighted estimate, which is all that figaroh computes."""
    def stop(phase):
        if phase == 'statistics':
            raise _Enough

    try:
        rd.identify(model, log, friction='coulomb', progress=stop)
    except _Enough:
        pass


def _best(work, repeats=3):
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


if __name__ == '__main__':
    identification()
