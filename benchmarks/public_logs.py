"""Arms that the project has not been tuned on, from public logs: `python public_logs.py FOLDER`.

FOLDER holds clones of the repositories named in `ROBOTS`, each under its own name; the data are no
part of this repository. Held-out errors of the raw torque with default settings are compared with
those of plain weighted least squares at the cutoff that is best on the held-out data themselves.
"""

from __future__ import annotations

import contextlib
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import scipy.io

import robodyn_ros as rd
from robodyn_ros.errors import IdentificationError, LogError
from robodyn_ros.identification.base_parameters import base_parameters
from robodyn_ros.identification.estimation import counts_of, least_squares
from robodyn_ros.identification.filter_choice import DECIMATED_PER_BAND, fast_speeds
from robodyn_ros.identification.friction import FrictionShape
from robodyn_ros.identification.identify import measured_pieces, sample_options
from robodyn_ros.identification.linear_model import LinearModel
from robodyn_ros.identification.observations import Observations, factors_of, merge
from robodyn_ros.identification.settings import Settings
from robodyn_ros.identification.signals import Filtering, motion_spectrum, segments_of
from robodyn_ros.spatial import axis_rotation

CUTOFFS = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0)  # Hz
TENDON = 0.6697  # turns of motor 4 for one of joint 3, by its tendon
HALF = np.pi / 2
# link, parent, mimicked joint and factor, then modified Denavit-Hartenberg: a, alpha, d, theta
LINKS = (
    ('link1', 'base', None, 0, 0, -0.2154, 0),
    ('link2', 'link1', None, 0, -HALF, 0, HALF),
    ('link3', 'link2', None, 0.2794, 0, 0, HALF),
    # the second half of the parallelogram, which turns by the sum of joints 2 and 3
    ('turned', 'link1', ('joint2', 1), 0, -HALF, 0, np.pi),
    ('crank', 'turned', ('joint3', 1), 0, 0, 0, 0),
    ('rod', 'crank', ('joint3', -1), 0.1, 0, 0, -HALF),
    ('link4', 'link3', None, 0.3645, -HALF, 0.151, 0),
    ('link5', 'link4', None, 0, HALF, 0, 0),
    ('link6', 'link5', None, 0, -HALF, 0, HALF),
    ('link7', 'link6', None, 0, -HALF, 0, np.pi))
PANDA = ((0, 0, 0.333, 0), (0, -HALF, 0, 0), (0, HALF, 0.316, 0), (0.0825, HALF, 0, 0),
         (-0.0825, -HALF, 0.384, 0), (0, HALF, 0, 0), (0.088, HALF, 0, 0))
NAMES = [f'joint{k}' for k in range(1, 8)]
# speeds of motors 2, 3 and 4 by those of the joints
GEARS = np.array([[1, 0, 0], [1, 1, 0], [0, TENDON, 1]])


def mtm(folder):
    """Return a da Vinci master manipulator (dVRK MTM), a log for the fit and one held out.

    Wang and others 2019, doi 10.1109/LRA.2019.2927947.
    """
    links, joints = ['<link name="base"/>'], []
    for link, parent, mimic, a, alpha, d, theta in LINKS:
        name = f'joint{link[-1]}' if mimic is None else f'to_{link}'
        links.append(f'<link name="{link}"/>' if link == 'turned' else _link(link))
        joints.append(
            f'<joint name="{name}" type="continuous"><parent link="{parent}"/>'
            f'<child link="{link}"/><axis xyz="0 0 1"/>{_origin(a, alpha, d, theta)}'
            + ('' if mimic is None else
               f'<mimic joint="{mimic[0]}" multiplier="{mimic[1]}"/>') + '</joint>')
    model = rd.load_model(f'<robot name="mtm">{"".join(links + joints)}</robot>', motors={
        'gear_matrix': {'joints': NAMES[1:4], 'matrix': GEARS.tolist()}})
    logs = []
    for name in ('one', 'two'):
        rows = np.loadtxt(folder / f'data/mtm/measured_trajectory/{name}_results.csv',
                          delimiter=',')
        q, tau = rows[:, :7].copy(), rows[:, 14:].copy()
        q[:, 1:4] = q[:, 1:4] @ np.linalg.inv(GEARS).T
        tau[:, 1:4] = tau[:, 1:4] @ GEARS
        logs.append(rd.Log(np.arange(len(rows)) / 200.0, q, tau, joint_names=NAMES, source=name))
    return model, logs[:1], logs[1:]


def _link(name):
    return (f'<link name="{name}"><inertial><mass value="0.3"/><inertia ixx="1e-3" iyy="1e-3" '
            'izz="1e-3" ixy="0" ixz="0" iyz="0"/></inertial></link>')


def _origin(a, alpha, d, theta):
    """Return the constant transform of a row of a modified Denavit-Hartenberg table."""
    turn = axis_rotation(np.array([1.0, 0, 0]), alpha) @ axis_rotation(
        np.array([0, 0, 1.0]), theta)
    roll, pitch, yaw = (np.arctan2(turn[2, 1], turn[2, 2]), np.arcsin(-turn[2, 0].clip(-1, 1)),
                        np.arctan2(turn[1, 0], turn[0, 0]))
    return (f'<origin xyz="{a} {-np.sin(alpha) * d:.17g} {np.cos(alpha) * d:.17g}" '
            f'rpy="{roll:.17g} {pitch:.17g} {yaw:.17g}"/>')


def ur10e(folder):
    """Return a UR10e with its logged currents; Mamedov and Mikhel 2020, frobt.2020.571574."""
    model = rd.load_model(folder / 'URe/urdf/ur10e.urdf')
    gains = np.array([14.87, 13.26, 11.13, 10.62, 11.03, 11.47])  # N m/A, of the repository
    logs = []
    for name in ('identification_data/ur-20_02_12-50sec_12harm',
                 'validation_data/ur-20_01_17-ptp_10_points'):
        rows = np.loadtxt(folder / f'dataset_ur10e/{name}.csv', delimiter=',')
        logs.append(rd.Log(rows[:, 0], rows[:, 1:7], rows[:, 13:19] * gains,
                           joint_names=model.joint_names, source=name))
    return model, logs[:1], logs[1:]


def panda(folder):
    """Return a Franka Panda; Gaz and others 2019, doi 10.1109/LRA.2019.2931248."""
    columns = [np.loadtxt(folder / 'matlab/data/Exciting_Traj/Trajectory_1/rbt_log/'
                          f'exciting_traj_{name}.txt') for name in ('time', 'positions',
                                                                    'torques')]
    model = _from_table(PANDA, 2.0)
    log = rd.Log(columns[0], *(x.reshape(-1, 7) for x in columns[1:]),
                 joint_names=model.joint_names, source='panda')
    return model, *([part] for part in log.split(2 / 3))


def xmate(folder):
    """Return a Rokae xMate3 Pro, whose torques are measured in its joints."""
    table = [(0, 0, 0.3415, 0), (0, -HALF, 0, 0), (0, HALF, 0.394, 0), (0, -HALF, 0, 0),
             (0, HALF, 0.366, 0), (0, -HALF, 0, 0), (0, HALF, 0.2503, 0)]
    q, tau = (np.loadtxt(folder / f'filtering/data/excit/excit_{name}_record.txt')
              for name in ('ang', 'torque'))
    model = _from_table(table, 2.0)
    log = rd.Log(np.arange(len(q)) / 1000.0, q, tau, joint_names=model.joint_names, source='xmate')
    return model, *([part] for part in log.split(2 / 3))


def dual_arm(folder):
    """Return an arm of a robot with two, whose first four joints have torque sensors.

    Joints 1 and 3 turn in the opposite direction to the table of the repository: with the table as
    it is, their torques contradict those of joints 2 and 4.
    """
    table = [(0, -HALF, 0.18, HALF), (0, -HALF, 0, 0), (0, HALF, 0.27, 0),
             (0.03857, -HALF, 0, 0), (0, HALF, 0.2, 0), (0, -HALF, 0, -HALF),
             (0.065, HALF, 0, 0)]
    model, logs = _from_table(table, 1.0), []
    for name in ('52.2', '15.7', '13.5'):
        rows = np.loadtxt(folder / 'code/para_est/coupled_ident'
                          f'/dualArmV2_data_write_excitation_{name}.txt')
        turns = np.deg2rad(rows[:, 1:8]) * [-1, 1, -1, 1, 1, 1, 1]
        logs.append(rd.Log(rows[:, 0], turns, rows[:, 43:50], joint_names=model.joint_names,
                           source=name))
    return model, logs[:1], logs[1:]


def other_panda(folder):
    """Return another Franka Panda; Petrone and others 2025, doi 10.24433/CO.2265930.v1."""
    model = _from_table(PANDA, 2.0)
    log = rd.read_log(folder / 'franka_inria_inverse_dynamics_solver/bagfiles'
                      '/panda_exciting_trajectory.db3', model)
    log = replace(log, joint_names=[name.removeprefix('fer_') for name in log.joint_names])
    return model, *([part] for part in log.split(2 / 3))


def sawyer(folder):
    """Return a Rethink Sawyer; positions and efforts were published every 10 ms."""
    table = [(0, 0, 0, 0), (0.081, -HALF, 0.1925, -HALF), (0, -HALF, 0.4, 0),
             (0, HALF, -0.1685, 0), (0, -HALF, 0.4, 0), (0, HALF, 0.1363, 0), (0, -HALF, 0, 0)]
    t, q, tau = (scipy.io.loadmat(folder / f'other_files/data_filter/{name}.mat')[name]
                 for name in ('t', 'q', 'tau'))
    new = np.append(True, (np.diff(q, axis=0) != 0).any(axis=1))  # the others repeat the last one
    model = _from_table(table, 2.0)
    log = rd.Log(t[new, 0], q[new], tau[new], joint_names=model.joint_names, source='sawyer')
    return model, *([part] for part in log.split(2 / 3))


def xmate7(folder):
    """Return a Rokae xMate7 Pro in three motions of 100 s, which repeat every 20 s."""
    table = [(0, 0, 0.404, 0), (0, -HALF, 0, 0), (0, HALF, 0.4375, 0), (0, -HALF, 0, 0),
             (0, HALF, 0.4125, 0), (0, -HALF, 0, 0), (0, HALF, 0.2755, 0)]
    model, logs = _from_table(table, 2.0), []
    for k in (1, 2, 3):
        rows = np.loadtxt(next(folder.glob(f'data/recdata/50Hz 5*/xMate7p_traj{k}_results.csv')),
                          delimiter=',')
        logs.append(rd.Log(np.arange(len(rows)) / 50.0, rows[:, :7], rows[:, 21:],
                           joint_names=model.joint_names, source=f'motion {k}'))
    return model, logs[:1], logs[1:]


def lbr_med(folder):
    """Return a KUKA LBR Med 7; 10 ms from sample to sample follow from the scripts beside it.

    The torques have the opposite sign: `robodyn effort` finds gravity, inertia and friction with
    negative factors.
    """
    whole = rd.load_model(folder / 'urdf/med/med7dock.urdf')
    names = [f'A{k}' for k in range(1, 8)]
    model = rd.load_model(folder / 'urdf/med/med7dock.urdf', locked_joints={
        name: 0.0 for name in whole.joint_names if name not in names})
    rows = np.loadtxt(folder / 'src/test/measurements.csv', delimiter=',', skiprows=1)
    moved = np.abs(rows[:, :7] - rows[0, :7]).max(axis=1) > 0.05  # rad
    start = int(moved.argmax())
    log = rd.Log(np.arange(len(rows) - start) / 100.0, rows[start:, :7], -rows[start:, 7:14],
                 joint_names=names, source='lbr_med')
    return model, *([part] for part in log.split(2 / 3))


def _from_table(table, mass):
    nominal = rd.Inertial(mass, np.zeros(3), 0.02 * np.eye(3))
    return rd.model_from_dh(table, [nominal] * len(table), convention='modified')


ROBOTS = {'dvrk_dynamics_identification': mtm, 'dynamic_calibration': ur10e,
          'FrankaEmikaPandaDynModel': panda,
          'Dynamic_Parameter_Identification_for_Rokae_xMate': xmate,
          'dyn_ident_dualArmV2': dual_arm, 'inverse-dynamics-solver': other_panda,
          'robot-dynamics-identify-v1.3': sawyer, 'xMate7p_dyn_ident': xmate7,
          'dynamic_parameter_identification': lbr_med}
TORQUES_OF = {'dyn_ident_dualArmV2': NAMES[:4]}  # joints with torque sensors, where not all


def plain(model, fits, others, cutoff, torques_of=None):
    """Return raw and filtered error of plain weighted least squares on other logs."""
    dynamics = rd.Dynamics(model)
    settings = Settings(torques_of=torques_of)
    pieces, held_out = (measured_pieces(dynamics, logs, settings, []) for logs in (fits, others))
    filtering = Filtering(motion_spectrum(pieces).band, cutoff, 4, cutoff, cutoff)
    segments = segments_of(pieces, filtering, [])
    linear = LinearModel(dynamics, friction=FrictionShape(
        'coulomb', 0.0, fast_speeds([s.qd for s in segments])))
    kept = base_parameters(linear).kept
    observations = Observations(linear, segments, decimation=cutoff,
                                **sample_options(dynamics, settings))
    blocks = list(observations.blocks())
    factors, theta = merge([factors_of(b) for b in blocks]), np.zeros(len(linear.columns))
    kept = [k for k in kept if np.abs(factors[:, :, k]).max() > 0]
    theta[kept] = least_squares(factors, kept, counts_of(blocks)).values
    unseen = observations.changed(segments_of(held_out, filtering, []))
    wrong, size = 0.0, 0.0
    for k, segment in enumerate(unseen.segments):
        used = np.ix_(segment.measured, unseen.torques_of)
        wrong += ((unseen.torque(k) - unseen.prediction(k, theta))[used]**2).sum()
        size += (unseen.measured(k)[used]**2).sum()
    judged = unseen.changed(decimation=DECIMATED_PER_BAND * filtering.band)
    rest = [(b.tau - b.w @ theta)[b.used] for b in judged.blocks()]
    whole = [b.measured[b.used] for b in judged.blocks()]
    return float(np.sqrt(wrong / size)), float(
        np.linalg.norm(np.concatenate(rest)) / np.linalg.norm(np.concatenate(whole)))


def public_logs(folder, names):
    """Print a row for each robot."""
    print('| robot | plain WLS, raw (filtered) | here | physically consistent | verdict |')
    print('|---|---|---|---|---|', flush=True)
    for name in names or ROBOTS:
        model, fits, others = ROBOTS[name](Path(folder) / name)
        torques_of = TORQUES_OF.get(name)
        errors = {}
        for cutoff in CUTOFFS:
            with contextlib.suppress(IdentificationError, LogError):  # too low for a short log
                errors[cutoff] = plain(model, fits, others, cutoff, torques_of)
        best, calm = (min(errors, key=lambda c, k=k: errors[c][k]) for k in (0, 1))
        result = rd.identify(model, fits, torques_of=torques_of)
        found, consistent = (rd.validate(result, others, consistent=c) for c in (False, True))
        print(f'| {name} | {errors[best][0]:.2%} at {best:g} Hz ({errors[calm][1]:.2%} at '
              f'{calm:g} Hz) | {found.total:.2%} ({found.total_filtered:.2%}) | '
              f'{consistent.total:.2%} ({consistent.total_filtered:.2%}) | {found.verdict} |',
              flush=True)


if __name__ == '__main__':
    public_logs(sys.argv[1], sys.argv[2:])
