"""The same log and robot through figaroh; run by a separate interpreter, prints times as JSON.

Usage: PYTHON figaroh_peer.py robot.urdf log.npz rate
"""

import json
import sys
import time
import warnings

import numpy as np
import scipy.signal


def main():
    warnings.simplefilter('ignore')
    from figaroh.tools.qrdecomposition import QRDecomposer
    from figaroh.tools.regressor import RegressorBuilder, RegressorConfig, get_index_eliminate
    from figaroh.tools.robot import Robot

    urdf, path, rate = sys.argv[1], sys.argv[2], float(sys.argv[3])
    robot = Robot(urdf, package_dirs='.')
    with np.load(path) as log:
        q, tau = log['q'], log['tau']
    n, times = robot.model.nv, {}
    start = time.process_time()
    b, a = scipy.signal.butter(4, 100 / (rate / 2) if rate > 250 else 0.3)
    q = scipy.signal.filtfilt(b, a, q, axis=0)
    qd = np.gradient(q, 1 / rate, axis=0)
    qdd = np.gradient(qd, 1 / rate, axis=0)
    before = time.process_time()
    config = RegressorConfig(has_friction=True, has_actuator_inertia=True, has_joint_offset=True,
                             additional_columns=4)
    w = RegressorBuilder(robot, config).build_basic_regressor(
        q, qd, qdd, {'act_idxv': list(range(n))})
    times['regressor'] = time.process_time() - before
    names = [f'p{k}' for k in range(w.shape[1])]
    rows = w.reshape(n, len(q), -1)
    step = 10
    decimated = np.concatenate([scipy.signal.decimate(scipy.signal.decimate(
        row, step, axis=0), step, axis=0) for row in rows])
    torque = np.concatenate([scipy.signal.decimate(scipy.signal.decimate(
        column, step), step) for column in tau.T])
    before = time.process_time()
    dead, _ = get_index_eliminate(decimated, dict.fromkeys(names, 0.0), 1e-6)
    kept = [k for k in range(len(names)) if k not in set(dead)]
    _, _, _, values = QRDecomposer().double_decomposition(
        torque, decimated[:, kept], [names[k] for k in kept])[:4]
    times['base parameters'] = time.process_time() - before
    # weighted least squares on the base parameters, as its own examples do
    wb = decimated[:, kept]
    variance = ((torque - wb @ np.linalg.lstsq(wb, torque, rcond=None)[0]) ** 2).reshape(n, -1)
    weight = np.repeat(1 / np.sqrt(variance.mean(axis=1)), len(torque) // n)
    np.linalg.lstsq(wb * weight[:, None], torque * weight, rcond=None)
    times['pipeline'] = time.process_time() - start
    print(json.dumps({'times': times, 'count': len(values)}))


if __name__ == '__main__':
    main()
