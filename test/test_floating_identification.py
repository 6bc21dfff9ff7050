"""A legged robot simulated by MuJoCo, identified from its motion and the forces at its feet."""

import numpy as np
import pytest

mujoco = pytest.importorskip('mujoco')

import robodyn_ros as rd  # noqa: E402


def dog(trunk=5.0, com='0.02 0.01 0.03', shank=0.3, damping=0.0, frictionloss=0.0):
    leg = ''.join(f"""
<body name="thigh{k}" pos="{x} 0.1 0"><joint name="hip{k}" axis="1 0 0" armature="0.01"
    damping="{damping}" frictionloss="{frictionloss}"/>
  <inertial pos="0 0.03 -0.1" mass="0.8" diaginertia="0.004 0.004 0.001"/>
  <body name="shank{k}" pos="0 0.05 -0.2"><joint name="knee{k}" axis="0 1 0" armature="0.01"
      damping="{damping}" frictionloss="{frictionloss}"/>
    <inertial pos="0 0 -0.1" mass="{shank}" diaginertia="0.002 0.002 0.0005"/>
    <body name="foot{k}" pos="0 0 -0.2"/></body></body>""" for k, x in (('L', 0.2), ('R', -0.2)))
    return f"""<mujoco><option timestep="0.002"><flag contact="disable"/></option><worldbody>
<body name="trunk" pos="0 0 0.4"><freejoint/><inertial pos="{com}" mass="{trunk}"
  fullinertia="0.05 0.1 0.12 0.01 0.005 -0.01"/>{leg}</body></worldbody></mujoco>"""


def record():
    """Joint torques, and forces of the ground at both feet, which hold the robot up and shake it.

    Frames and quaternions are converted as the page on conventions says.
    """
    true = dog(trunk=6.1, com='0.05 -0.01 0.05', shank=0.42, damping=0.2)
    engine = mujoco.MjModel.from_xml_string(true)
    data, rng = mujoco.MjData(engine), np.random.default_rng(3)
    count = 1500
    phase, size = rng.uniform(0, 6, (10, 5)), np.array([1.0, 1.5, 2.2, 3.1, 4.3])
    wave = np.sin(2 * np.pi * size * np.arange(count)[:, None, None] * 0.002 + phase).sum(axis=2)
    samples = {name: [] for name in ('q', 'qd', 'qdd', 'torques', 'footL', 'footR')}
    for step in range(count):
        turn = np.zeros(9)
        mujoco.mju_quat2Mat(turn, data.qpos[3:7])
        turn = turn.reshape(3, 3)
        torque = 2.0 * wave[step, :4] - 8.0 * data.qpos[7:] - 0.3 * data.qvel[6:]
        data.qfrc_applied[:] = 0.0
        data.qfrc_applied[6:] = torque
        weight = 9.81 * engine.body_mass.sum() / 2
        level = np.cross(turn[:, 2], [0, 0, 1]) * 60 - turn @ data.qvel[3:6] * 4
        for k, foot in enumerate(('footL', 'footR')):
            force = weight * np.array([0, 0, 1.0]) + 6 * wave[step, 4 + 3 * k:7 + 3 * k] \
                - 4 * data.qvel[:3] - 20 * (data.qpos[:3] - [0, 0, 0.4])
            wrench = np.concatenate([force, level / 2])
            mujoco.mj_kinematics(engine, data)
            mujoco.mj_comPos(engine, data)
            mujoco.mj_applyFT(engine, data, wrench[:3], wrench[3:], data.body(foot).xpos,
                              data.body(foot).id, data.qfrc_applied)
            samples[foot].append(wrench)
        mujoco.mj_forward(engine, data)
        qpos, qvel, qacc = data.qpos.copy(), data.qvel.copy(), data.qacc.copy()
        velocity, angular = turn.T @ qvel[:3], qvel[3:6]
        samples['q'].append([*qpos[:3], *qpos[4:7], qpos[3], *qpos[7:]])
        samples['qd'].append([*velocity, *qvel[3:]])
        samples['qdd'].append([*(turn.T @ qacc[:3] - np.cross(angular, velocity)), *qacc[3:]])
        samples['torques'].append(torque)
        mujoco.mj_step(engine, data)
    return {name: np.array(values) for name, values in samples.items()}, true


@pytest.fixture(scope='module')
def motion():
    samples, true = record()
    return {name: values[::5] for name, values in samples.items()}, true


def parameter(model, name):
    return model.standard_parameters[model.parameter_names.index(name)]


def test_the_base_alone_determines_masses(motion):
    """No joint torque is needed if the forces at the feet are measured."""
    samples, true = motion
    model = rd.load_model(dog())
    found = rd.identify_floating_base(
        model, samples['q'], samples['qd'], samples['qdd'],
        wrenches={foot: samples[foot] for foot in ('footL', 'footR')})
    assert found.error < 0.001 < 0.03 < found.nominal_error, found
    total = [sum(parameter(one, name) for name in one.parameter_names if name.startswith('m:'))
             for one in (found.model, rd.load_model(true))]
    assert abs(total[0] - total[1]) < 0.01
    assert found.base.count == rd.base_parameters(model, 'rigid').count


def test_torques_add_friction_and_contacts_may_be_unknown(motion):
    samples, _ = motion
    noise = np.random.default_rng(1).normal(size=samples['torques'].shape)
    torques = samples['torques'] + 0.01 * noise
    with pytest.raises(rd.ValueRangeError, match='contacts.*torques'):  # no equation is left
        rd.identify_floating_base(rd.load_model(dog()), samples['q'], samples['qd'],
                                  samples['qdd'], surfaces=('footL',))
    known = {'footR': samples['footR']}
    found = rd.identify_floating_base(
        rd.load_model(dog()), samples['q'], samples['qd'], samples['qdd'], torques=torques,
        wrenches=known, surfaces=('footL',))
    assert found.error < 0.02 and found.error < found.nominal_error / 5, found
    for joint in ('hipL', 'kneeR'):
        assert parameter(found.model, f'Fvl:{joint}') == pytest.approx(0.2, abs=0.03)
    assert 'unexplained' in repr(found)


def test_wrong_data_are_refused(motion):
    samples, _ = motion
    model = rd.load_model(dog())
    arrays = samples['q'], samples['qd'], samples['qdd']
    with pytest.raises(rd.ValueRangeError, match='floating'):
        rd.identify_floating_base(rd.load_model(dog(), base='fixed'), *arrays)
    with pytest.raises(rd.ShapeError, match='qd'):
        rd.identify_floating_base(model, arrays[0], arrays[1][:, 1:], arrays[2])
    with pytest.raises(rd.UnknownNameError, match='footL'):
        rd.identify_floating_base(model, *arrays, contacts=['foot'])
    broken = arrays[2].copy()
    broken[3, 2] = np.nan
    with pytest.raises(rd.ShapeError, match='finite'):
        rd.identify_floating_base(model, arrays[0], arrays[1], broken)
