"""Held-out torque errors of figaroh on a log; run by a separate interpreter, prints JSON.

Usage: PYTHON figaroh_accuracy_peer.py robot.urdf log.npz

The archive holds q, tau, rate, the cutoff of the position filter, the decimation (1: none), slow
(speeds below which a joint's samples are left out) and coupled (whether the last two joints are a
coupled wrist). figaroh computes regressor and base parameters, the rest follows its examples.
"""

import contextlib
import io
import json
import sys
import warnings

import numpy as np
import scipy.signal


def main():
    warnings.simplefilter('ignore')
    from figaroh.tools.robot import Robot

    with np.load(sys.argv[2]) as log:
        q, tau, rate, cutoff, step, slow, coupled = (log[name] for name in (
            'q', 'tau', 'rate', 'cutoff', 'step', 'slow', 'coupled'))
    b, a = scipy.signal.butter(4, cutoff / (rate / 2))
    q = scipy.signal.filtfilt(b, a, q, axis=0)
    qd = np.gradient(q, 1 / rate, axis=0)
    w = regressor(Robot(sys.argv[1], package_dirs='.'), q, qd, np.gradient(qd, 1 / rate, axis=0),
                  coupled)
    w, tau, qd = (decimated(x, int(step)) for x in (np.moveaxis(w, 0, 1), tau, qd))
    used = np.abs(qd) > slow
    third = 2 * len(tau) // 3
    parts = {'in sample': (slice(None), slice(None)),
             'last third': (slice(third), slice(third, None))}
    print(json.dumps({name: error(w, tau, used, *pair) for name, pair in parts.items()}))


def regressor(robot, q, qd, qdd, coupled):
    from figaroh.tools.regressor import RegressorBuilder, RegressorConfig

    n = robot.model.nv
    config = RegressorConfig(has_friction=True, has_actuator_inertia=True, has_joint_offset=True)
    w = RegressorBuilder(robot, config).build_basic_regressor(
        q, qd, qdd, {'act_idxv': list(range(n))}).reshape(n, len(q), -1)
    if not coupled:
        return w
    wrist = np.zeros((n, len(q), 3))  # as in its example of the TX40
    direction = np.sign(qd[:, -2] + qd[:, -1])
    wrist[-2] = np.column_stack([qdd[:, -1], qd[:, -1], direction])
    wrist[-1] = np.column_stack([qdd[:, -2], qd[:, -2], direction])
    return np.concatenate([w, wrist], axis=2)


def decimated(x, step):
    for _ in range(2 if step > 1 else 0):
        x = scipy.signal.decimate(x, step, axis=0, zero_phase=True)
    return x


def error(w, tau, used, fit, held):
    from figaroh.tools.qrdecomposition import QRDecomposer
    from figaroh.tools.regressor import get_index_eliminate

    joints = range(tau.shape[1])

    def rows(part):
        return ([w[part][used[part][:, j], j] for j in joints],
                [tau[part][used[part][:, j], j] for j in joints])

    own, torques = rows(fit)
    matrix, torque = np.concatenate(own), np.concatenate(torques)
    names = [f'p{k}' for k in range(matrix.shape[1])]
    dead = set(get_index_eliminate(matrix, dict.fromkeys(names, 0.0), 1e-6)[0])
    kept = [k for k in range(len(names)) if k not in dead]
    with contextlib.redirect_stdout(io.StringIO()):
        QRDecomposer().double_decomposition(torque, matrix[:, kept], [names[k] for k in kept])
    first = np.linalg.lstsq(matrix[:, kept], torque, rcond=1e-10)[0]
    weight = np.concatenate([np.full(len(t), 1 / np.std(t - x[:, kept] @ first))
                             for x, t in zip(own, torques, strict=True)])
    theta = np.linalg.lstsq(matrix[:, kept] * weight[:, None], torque * weight, rcond=1e-10)[0]
    other, torques = rows(held)
    wrong = np.concatenate([x[:, kept] @ theta - t for x, t in zip(other, torques, strict=True)])
    return float(np.linalg.norm(wrong) / np.linalg.norm(np.concatenate(torques)))


if __name__ == '__main__':
    main()
