"""The measured robots in `test/data`: each as a model, logs for the fit, and held-out logs."""

from pathlib import Path

import numpy as np

import robodyn_ros as rd

DATA = Path(__file__).parent / 'data'

TX40_GEARS = {'gear_matrix': {
    'joints': [f'joint_{i}' for i in range(1, 7)],
    'matrix': [[32, 0, 0, 0, 0, 0], [0, 32, 0, 0, 0, 0], [0, 0, 45, 0, 0, 0],
               [0, 0, 0, -48, 0, 0], [0, 0, 0, 0, 45, 0], [0, 0, 0, 0, 32, 32]]}}
TX40_FORMAT = {'position': 'q_motor', 'torque': 'tau_motor', 'rate': 5000, 'side': 'motor',
               'position_offset': [0, -np.pi / 2, np.pi / 2, 0, 0, 0]}
# speeds of the reference tool below which samples of a joint are left out, rad/s
TX40_SLOW = (0.05009095, 0.05009095, 0.07504916, 0.0715585, 0.05585054, 0.12217305)
KR300_ROWS = [(0.350, np.pi / 2, -0.675, 0), (1.150, 0, -0.189, -np.pi / 2),
              (0.041, -np.pi / 2, 0.189, np.pi), (0, np.pi / 2, -1, 0), (0, -np.pi / 2, 0, 0),
              (0, np.pi, -0.240, 0)]


def tx40():
    """A Staubli TX40 with the coupled wrist; (model, log)."""
    folder = DATA / 'staubli-tx40'
    model = rd.load_model(folder / 'tx40_mdh_modified_nomesh.urdf', motors=TX40_GEARS)
    return model, rd.read_log(folder / 'tx40.npz', model, TX40_FORMAT)


def ur10():
    """A UR10, straight from its bag; (model, log)."""
    folder = DATA / 'ur10'
    model = rd.load_model(folder / 'ur10_nomesh.urdf')
    return model, rd.read_log(folder / 'ur10_exciting_trajectory.db3', model)


def kr300():
    """A KUKA KR300 by its DH table, with a counterbalance; (model, logs A, B, C)."""
    nominal = rd.Inertial(100.0, np.zeros(3), 5.0 * np.eye(3))
    model = rd.model_from_dh(KR300_ROWS, [nominal] * 6, gravity=(0, 0, 9.80665))
    logs = {}
    for name in 'ABC':
        with np.load(DATA / f'kuka-kr300/kr300_{name}.npz') as z:
            q = np.deg2rad(z['q_mot_deg'])
            extra = np.zeros_like(q)
            extra[:, 1] = _counterbalance(q[:, 1])
            logs[name] = rd.Log(z['t'], q, z['tau_motor_abs'] * z['gear_ratio'], extra=extra,
                                joint_names=model.joint_names, source=f'kr300_{name}')
    return model, logs


def _counterbalance(angle):
    """Torque of the hydraulic cylinder on axis 2, by the data's README; N m."""
    far, near = 0.8, 0.2
    area = np.pi * (0.055**2 - 0.03**2) / 4
    delta = angle + np.deg2rad(95)
    length = np.sqrt(far**2 + near**2 - 2 * far * near * np.cos(delta))
    stretch = length - (far - near)
    pressure = 1.01 * 296.8 * 328 * 0.159 / (0.00096 - stretch * area)
    return far * near * np.sin(delta) / length * pressure * area


def kinova(name='opti_traj_testing1'):
    """A Kinova Gen3 whose URDF has rounded angles; (model, log)."""
    folder = DATA / 'kinova-gen3'
    model = rd.load_model(folder / 'gen3_nomesh.urdf')
    return model, rd.read_log(folder / f'{name}.npz', model, {
        'time': 't_ms', 'unit_of_time': 1e-3, 'torque': 'tau_sensor'})


def tiago():
    """A TIAGo's torso and arm, badly excited; (model, log)."""
    folder = DATA / 'tiago'
    whole = rd.load_model(folder / 'tiago_48_schunk_nomesh.urdf')
    names = ['torso_lift_joint', *(f'arm_{i}_joint' for i in range(1, 8))]
    model = rd.load_model(folder / 'tiago_48_schunk_nomesh.urdf', locked_joints={
        name: 0.0 for name in whole.joint_names if name not in names})
    scale = np.array([1, 100, 100, 100, 100, 336, 336, 336]) * np.array(
        [1, 0.136, 0.136, -0.087, -0.087, -0.0613, -0.0613, -0.0613])
    with np.load(folder / 'tiago.npz') as z:
        rows = slice(921, 6791)
        torque = z['current'][rows] * scale
        # the drive's own balance, by its README
        torque[:, 0] += 9.81 * model.inertial_parameters[:, 6].sum()
        return model, rd.Log(z['t'][rows], z['q'][rows], torque, qd=z['dq'][rows],
                             joint_names=model.joint_names, source='tiago')
