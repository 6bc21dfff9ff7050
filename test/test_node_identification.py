"""The node `identification` in its loop: simulated robot, controller, client; all processes."""


import numpy as np
import pytest
import yaml

rclpy = pytest.importorskip('rclpy', reason='ROS 2 is not set up')
from closed_loop import ClosedLoop, fast_motion, rms  # noqa: E402
from identification_world import Client  # noqa: E402
from measured_logs import DATA  # noqa: E402

import robodyn_ros as rd  # noqa: E402
from robodyn_ros.excitation import Excitation  # noqa: E402
from robodyn_ros.identification.base_parameters import base_parameters  # noqa: E402
from robodyn_ros.identification.linear_model import LinearModel  # noqa: E402
from robodyn_ros.nodes.processes import NodeProcess  # noqa: E402
from robodyn_ros.simulation import Simulation  # noqa: E402

UR10 = (DATA / 'ur10/ur10_nomesh.urdf').read_text()
JOINTS = ('shoulder_pan_joint', 'shoulder_lift_joint', 'elbow_joint', 'wrist_1_joint',
          'wrist_2_joint', 'wrist_3_joint')
LINKS = ('shoulder_link', 'upper_arm_link', 'forearm_link', 'wrist_1_link', 'wrist_2_link',
         'wrist_3_link')
TRUTH = {
    'links': {link: {'mass': mass, 'com': com} for link, mass, com in zip(
        LINKS, (1.2, 1.2, 0.8, 1.2, 0.8, 1.2),
        ([0.0, 0.01, 0.0], [0.0, 0.01, 0.03], [0.01, 0.0, -0.03], [0.0, 0.01, 0.005],
         [0.005, 0.0, 0.01], [0.01, 0.005, 0.0]), strict=True)},
    'joints': {joint: {'armature': a, 'damping': d, 'friction': f} for joint, a, d, f in zip(
        JOINTS, (4.0, 4.0, 1.5, 0.5, 0.5, 0.4), (12.0, 12.0, 8.0, 2.0, 2.0, 1.5),
        (14.0, 14.0, 10.0, 3.0, 3.0, 2.5), strict=True)}}
NOISE = ('position_step:=1e-5', 'velocity_noise:=1e-3',
         'effort_noise:=[0.8, 1.6, 0.6, 0.12, 0.12, 0.1]')  # 2 to 4 % of the torque
GAINS = ('kp:=[2000.0, 2000.0, 1000.0, 200.0, 200.0, 150.0]',
         'kd:=[150.0, 150.0, 70.0, 15.0, 15.0, 12.0]')


def server(world, root, *parameters, model=1):
    arguments = [f'root:={root}', 'tracking_tolerance:=0.6', *parameters]
    process = NodeProcess('identification', '--ros-args',
                          *(word for entry in arguments for word in ('-p', entry)),
                          '-r', '~/trajectory:=/feedforward/reference')
    world.wait_for_model('identification', model)
    return process


def test_one_call_from_wrong_parameters_to_true_ones(world, tmp_path):
    """Excite, record, estimate, prove, swap: the numbers of the README come from here."""
    truth = tmp_path / 'truth.yaml'
    truth.write_text(yaml.safe_dump(TRUTH))
    with ClosedLoop(world, UR10, lock_step=False,
                    simulator=('rate:=500.0', 'brakes:=true', f'truth_file:={truth}', *NOISE),
                    controller=('mode:=feedforward_pd', 'hold:=5.0', 'state_timeout:=0.3',
                                'zero_after:=1.0', *GAINS),
                    ) as loop, NodeProcess('dynamics') as dynamics, \
            server(world, tmp_path / 'runs') as process:
        motion = fast_motion(loop.model)
        before = rms(loop.follow(motion))
        with Client(name='e2e', search_time=6.0, period=10.0, torque_margin=0.35, slow=0.05,
                    guard=0.1, apply=True) as client:
            result = client.read()
        assert result['success'], (result['reasons'], loop.controller.log()[-1500:])
        after = rms(loop.follow(motion))
        phases = [entry['phase'] for entry in client.feedback]
        assert [p for k, p in enumerate(phases) if k == 0 or p != phases[k - 1]][:2] == [
            'search', 'search of the proof']
        conditions = [f['condition'] for f in client.feedback if f['phase'] == 'excite']
        assert 0 < conditions[-1] < 1e3
        print('phases', sorted(set(phases), key=phases.index))
        print('nominal', np.round(result['validation_error_nominal'], 3))
        print('raw', np.round(result['validation_error'], 4), 'filtered',
              np.round(result['validation_error_filtered'], 4))
        print('tracking', before, after, before / after, 'condition', result['condition'])
        assert result['verdict'] == 'good' and result['applied']
        assert min(result['validation_error_nominal']) > 0.15
        assert max(result['validation_error_filtered']) < 0.02
        wrong = against_truth(tmp_path / 'runs/e2e')
        print('against the true torque', np.round(wrong, 4))
        assert max(wrong) < 0.02
        assert result['physically_consistent']
        assert after < before / 5
        inside = covered(result)
        print('inside', np.mean(inside), 'of', len(inside), 'significant of',
              len(result['base_parameter']))
        assert np.mean(inside) >= 0.9
        world.wait(lambda: world.diagnostics['dynamics'].get('model_origin') == 'e2e', 'a swap')
        assert rd.load_model(tmp_path / 'runs/e2e/identified.urdf').n == 6
        assert process.exit_code is None and dynamics.exit_code is None


def against_truth(folder):
    """Error of the written model's torque along the proof, where the truth is known."""
    model = rd.load_model(folder / 'identified.urdf', motors=folder / 'motors.yaml')
    true = Simulation(UR10, truth=TRUTH).true_model
    _, motion = Excitation.from_yaml(folder / 'validation_excitation.yaml').samples(200.0)
    got, want = (rd.Dynamics(m).inverse_dynamics(*motion[:3]) for m in (model, true))
    return np.linalg.norm(got - want, axis=0) / np.linalg.norm(want, axis=0)


def covered(result):
    """Which significant parameters have the truth in their interval."""
    true = Simulation(UR10, truth=TRUTH).true_model
    linear = LinearModel(rd.Dynamics(true), 'lumped')
    base = base_parameters(linear)
    values = dict(zip(base.names, base.matrix @ linear.nominal(), strict=True))
    return [abs(value - values[name]) <= 1.96 * deviation for name, value, deviation, good in zip(
        result['base_parameter'], result['value'], result['standard_deviation'],
        result['significant'], strict=True) if good]
