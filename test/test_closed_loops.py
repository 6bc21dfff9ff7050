"""Closed loops: the worked example, energy, and MuJoCo's constrained dynamics."""

import numpy as np
import pytest
import yaml
from synthetic import LWR4

import robodyn_ros as rd
from robodyn_ros.identification.live import LiveFit

URDF = LWR4.parent / 'five_bar.urdf.xacro'
NUMBERS = LWR4.parent.parent / 'config/robots/five_bar.yaml'
LOOPS = LWR4.parent.parent / 'config/robots/five_bar_loops.yaml'


def linkage(tmp_path, **changes):
    """(closed-loop dynamics, numbers) of the five-bar, some numbers changed."""
    numbers = yaml.safe_load(NUMBERS.read_text())
    loops = yaml.safe_load(LOOPS.read_text())
    for bar, values in changes.items():
        numbers[bar].update(values)
    path = tmp_path / 'numbers.yaml'
    path.write_text(yaml.safe_dump(numbers))
    arguments = {'xacro_arguments': {'parameters': str(path)}}
    loops['cuts'][0]['points'] = [[numbers['link3']['length'], 0, 0],
                                  [numbers['link4']['length'], 0, 0]]
    model = rd.load_model(URDF, **arguments)
    return rd.ClosedLoopDynamics(model, loops), numbers


def closed_form(p, q):
    """Kolyubin's example: M of the parallelogram."""
    i, m, lc, length = ([p[f'link{k}'][name] for k in (1, 2, 3, 4)] for name in (
        'inertia', 'mass', 'com', 'length'))
    lc[3] = -lc[3]  # the text counts it the other way
    m11 = m[0] * lc[0]**2 + m[2] * lc[2]**2 + m[3] * length[0]**2 + i[0] + i[2]
    m12 = (m[2] * length[1] * lc[2] - m[3] * length[0] * lc[3]) * np.cos(q[1] - q[0])
    m22 = m[1] * lc[1]**2 + m[2] * length[1]**2 + m[3] * lc[3]**2 + i[1] + i[3]
    return np.array([[m11, m12], [m12, m22]])


@pytest.mark.parametrize('changes', [
    {}, {'link3': {'mass': 2.4, 'com': 0.17}}, {'link4': {'mass': 0.7}}])
def test_worked_example_5(tmp_path, rng, changes):
    dynamics, p = linkage(tmp_path, **changes)
    coupled = p['link3']['mass'] * p['link2']['length'] * p['link3']['com'] + \
        p['link4']['mass'] * p['link1']['length'] * p['link4']['com']
    assert (abs(coupled) < 1e-12) == (not changes)
    for _ in range(10):
        q1 = rng.uniform(-1, 1)
        q = np.array([q1, q1 + rng.uniform(0.5, 2.5)])
        qd = rng.normal(size=2)
        want = closed_form(p, q)
        np.testing.assert_allclose(dynamics.mass_matrix(q), want, atol=1e-10)
        # Christoffel symbols of that M: only m12 depends on q
        slope = -coupled * np.sin(q[1] - q[0])
        np.testing.assert_allclose(dynamics.coriolis(q, qd),
                                   [slope * qd[1]**2, -slope * qd[0]**2], atol=1e-10)
        full = dynamics.positions(q)
        np.testing.assert_allclose(full[2:], [q[0] - q[1], q[1] - q[0]], atol=1e-9)


GENERAL = {'link1': {'length': 0.35}, 'link3': {'length': 0.5, 'com': 0.2, 'mass': 1.1},
           'link4': {'length': 0.45, 'com': -0.3}}


def test_reduced_equations_hold_together(tmp_path, rng):
    dynamics, _ = linkage(tmp_path, **GENERAL)
    for _ in range(10):
        q = np.array([0.3, 1.6]) + 0.3 * rng.uniform(-1, 1, 2)
        qd, qdd, h = rng.normal(size=2), rng.normal(size=2), 1e-6
        # velocities and accelerations are the derivatives of the positions
        ahead, here, behind = (dynamics.positions(q + s * h * qd) for s in (1, 0, -1))
        np.testing.assert_allclose((ahead - behind) / (2 * h), dynamics.velocities(q, qd),
                                   atol=1e-7)
        speeds = [dynamics.velocities(q + s * h * qd, qd + s * h * qdd) for s in (1, -1)]
        np.testing.assert_allclose((speeds[0] - speeds[1]) / (2 * h),
                                   dynamics.accelerations(q, qd, qdd), atol=1e-6)
        torque = dynamics.inverse_dynamics(q, qd, qdd)
        np.testing.assert_allclose(torque, dynamics.mass_matrix(q) @ qdd + dynamics.coriolis(
            q, qd) + dynamics.gravity(q), atol=1e-10)
        np.testing.assert_allclose(dynamics.forward_dynamics(q, qd, torque), qdd, atol=1e-9)
        np.testing.assert_allclose(dynamics.regressor(q, qd, qdd)
                                   @ dynamics.model.standard_parameters, torque, atol=1e-10)
        assert 0 < dynamics.singularity(q) <= 1
        np.testing.assert_allclose(here, dynamics.positions(q), atol=1e-12)


def test_mujoco_moves_the_same(tmp_path, rng):
    """M, accelerations and the force in the cut, of an engine with constraints."""
    import mujoco

    dynamics, p = linkage(tmp_path, **GENERAL)
    spec = mujoco.MjSpec.from_string(dynamics.model.description.urdf)
    spec.compiler.fusestatic = False
    spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    cut = spec.add_equality()
    cut.type, cut.objtype = mujoco.mjtEq.mjEQ_CONNECT, mujoco.mjtObj.mjOBJ_BODY
    cut.name1, cut.name2 = 'link3', 'link4'
    cut.data[:3] = [p['link3']['length'], 0, 0]
    cut.solref, cut.solimp = [0.002, 1.0], [0.99999, 0.99999, 0.001, 0.5, 2.0]
    spec.option.gravity, spec.option.iterations = [0, 0, -9.80665], 200
    spec.option.tolerance = 1e-14
    engine = spec.compile()
    state = mujoco.MjData(engine)
    ids = [engine.joint(name).id for name in dynamics.model.joint_names]
    # the engine takes the anchor on the second body from its reference pose: set it
    engine.eq_data[0, 3:6] = [p['link4']['length'], 0, 0]
    for _ in range(5):
        q = np.array([0.3, 1.6]) + 0.3 * rng.uniform(-1, 1, 2)
        qd, torque = rng.normal(size=2), 3 * rng.normal(size=2)
        state.qpos[engine.jnt_qposadr[ids]] = dynamics.positions(q)
        state.qvel[engine.jnt_dofadr[ids]] = dynamics.velocities(q, qd)
        state.qfrc_applied[:] = 0
        state.qfrc_applied[engine.jnt_dofadr[ids[:2]]] = torque
        mujoco.mj_forward(engine, state)
        want = dynamics.forward_dynamics(q, qd, torque)
        np.testing.assert_allclose(state.qacc[engine.jnt_dofadr[ids]][:2], want,
                                   atol=2e-3 * np.abs(want).max())
        force = dynamics.constraint_forces(q, qd, want)[0, :3]
        # the engine's multipliers of a connect act on its first body, root axes
        np.testing.assert_allclose(state.efc_force[:3], -force, atol=5e-3 * np.abs(force).max())
        tree = np.zeros((4, 4))
        for k in range(4):
            mujoco.mj_mulM(engine, state, tree[k], np.eye(4)[k])
        g = dynamics.motion_matrix(q)
        order = engine.jnt_dofadr[ids]
        np.testing.assert_allclose(g.T @ tree[np.ix_(order, order)] @ g,
                                   dynamics.mass_matrix(q), atol=1e-9)


def test_energy_is_kept_in_free_motion(tmp_path):
    """10 s of Runge-Kutta steps from a pose from which the linkage swings gently."""
    dynamics, _ = linkage(tmp_path, link1={'mass': 2.4})
    x, h = np.array([-2.0, -0.6, 0.0, 0.0]), 0.005

    def slope(x):
        return np.concatenate([x[2:], dynamics.forward_dynamics(x[:2], x[2:], np.zeros(2))])

    dynamics.positions([-1.0, 0.4])
    energies, poses = [], []
    for _ in range(2000):  # 10 s
        energies.append(sum(dynamics.energy(x[:2], x[2:])))
        poses.append(x[:2])
        k1 = slope(x)
        k2 = slope(x + h / 2 * k1)
        k3 = slope(x + h / 2 * k2)
        k4 = slope(x + h * k3)
        x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    potential = np.ptp([sum(dynamics.energy(q, np.zeros(2))) for q in poses[::50]])
    assert potential > 0.1 and np.ptp(energies) < 1e-6 * max(np.abs(energies).max(), potential)


def test_what_cannot_be_is_named():
    model = rd.load_model(URDF)
    loops = yaml.safe_load(LOOPS.read_text())
    closed = rd.ClosedLoopDynamics(model, loops)
    with pytest.raises(rd.RobodynError, match='joint1, joint2'):
        closed.mass_matrix([0.1])
    for change, match in (({'independent': ['joint1']}, 'bind 2 of 4'),
                          ({'independent': ['joint1', 'knee']}, 'knee'),
                          ({'cuts': [{'links': ['link3', 'hand']}]}, 'hand'),
                          ({'cuts': []}, 'says no loops'),
                          ({'cuts': [{'links': ['link3', 'link4'], 'points': [[1, 2]]}]},
                           'points'),
                          ({'cuts': [{'links': ['link3', 'link4'],
                                      'points': [[5.0, 0, 0], [0.3, 0, 0]]}]}, 'leaves .* m')):
        with pytest.raises(rd.RobodynError, match=match):
            rd.ClosedLoopDynamics(model, loops | change)


MJCF = """
<mujoco><worldbody>
  <body name="link1"><joint name="joint1" axis="0 -1 0"/><geom size="0.1"/>
    <body name="link4" pos="0.4 0 0"><joint name="joint4" axis="0 -1 0"/><geom size="0.1"/></body>
  </body>
  <body name="link2"><joint name="joint2" axis="0 -1 0"/><geom size="0.1"/>
    <body name="link3" pos="0.3 0 0"><joint name="joint3" axis="0 -1 0"/><geom size="0.1"/></body>
  </body></worldbody>
  <equality><connect body1="link3" body2="link4" anchor="0.4 0 0"/></equality>
</mujoco>"""


def test_loops_of_a_mujoco_model(tmp_path, rng):
    """The two anchors coincide in the model's own zero pose: 0.7 m out on both ways."""
    (tmp_path / 'arm.xml').write_text(MJCF)
    path = tmp_path / 'loops.yaml'
    path.write_text('independent: [joint1, joint2]\nmjcf: arm.xml\n'
                    'start: {joint1: 0.3, joint2: 1.6, joint3: -1.3, joint4: 1.3}\n')
    model = rd.load_model(URDF)
    from_mujoco, ours = rd.ClosedLoopDynamics(model, path), rd.ClosedLoopDynamics(model, LOOPS)
    q = np.array([0.4, 1.5])
    np.testing.assert_allclose(from_mujoco.mass_matrix(q), ours.mass_matrix(q), atol=1e-12)
    for text, match in ((MJCF.replace('connect', 'weld').replace('anchor="0.4 0 0"', ''),
                         'mjEQ_WELD'), ('<mujoco', 'says no loops')):
        (tmp_path / 'arm.xml').write_text(text)
        with pytest.raises(rd.RobodynError, match=match):
            rd.ClosedLoopDynamics(model, path)


def test_hinges_and_welds_are_points_as_well(rng):
    """Shared axes change nothing about a plane linkage; a weld takes away its last freedom."""
    model = rd.load_model(URDF)
    loops = yaml.safe_load(LOOPS.read_text())
    axes = {'axes': [[0, 1, 0], [0, 2, 0]]}
    hinged = loops | {'cuts': [loops['cuts'][0] | axes]}
    plain, other = (rd.ClosedLoopDynamics(model, one) for one in (loops, hinged))
    q, qd, qdd = np.array([0.4, 1.5]), rng.normal(size=2), rng.normal(size=2)
    np.testing.assert_allclose(other.inverse_dynamics(q, qd, qdd),
                               plain.inverse_dynamics(q, qd, qdd), atol=1e-9)
    force, wide = (d.constraint_forces(q, qd, qdd)[0] for d in (plain, other))
    np.testing.assert_allclose(wide[:3], force[:3], atol=1e-9)
    welded = {'independent': ['joint1', 'joint2'], 'cuts': [{'links': ['link3', 'link4'],
                                                             'frames': True}]}
    with pytest.raises(rd.RobodynError, match='leaves|bind 3 of 4'):
        rd.ClosedLoopDynamics(model, welded, start=[0.3, 1.6, -1.3, 1.3])


def test_batches_are_single_states(rng):
    closed = rd.ClosedLoopDynamics(rd.load_model(URDF), LOOPS)
    q = np.array([0.3, 1.6]) + 0.4 * rng.uniform(-1, 1, (200, 2))
    qd, qdd = rng.normal(size=(2, 200, 2))
    for name in ('inverse_dynamics', 'forward_dynamics', 'regressor', 'constraint_forces'):
        batch = getattr(closed, name)(q, qd, qdd)
        rows = [getattr(closed, name)(*row) for row in zip(q, qd, qdd, strict=True)]
        np.testing.assert_allclose(batch, rows, atol=1e-9)
    terms = closed.terms(q, qd)
    skew = np.array([closed.coriolis_matrix(a, b) @ b for a, b in zip(q, qd, strict=True)])
    np.testing.assert_allclose(terms.coriolis, skew, atol=1e-9)
    reach = closed.reachable(np.array([[0.3, 1.6], [0.3, 0.3 + 1e-9], [0.4, 1.5]]))
    assert reach[0] and reach[2]
    # dM/dt - 2 C is skew
    h = 1e-6
    for a, b in zip(q[:5], qd[:5], strict=True):
        slope = (closed.mass_matrix(a + h * b) - closed.mass_matrix(a - h * b)) / (2 * h)
        matrix = slope - 2 * closed.coriolis_matrix(a, b)
        np.testing.assert_allclose(matrix, -matrix.T, atol=1e-6)


def test_a_recording_tells_while_it_is_recorded(tmp_path):
    """Live, of a robot whose loops do not close where all joints are at zero."""
    dynamics, _ = linkage(tmp_path, link3={'length': 0.5})
    with pytest.raises(rd.ValueRangeError, match=r'leaves 0\.\d+ m between link3 and link4'):
        dynamics.positions(np.zeros(2))
    live = LiveFit(dynamics, 'model1')
    assert np.isinf(live.state()[0])
    t = np.arange(0.0, 6.0, 0.005)
    middle, phase = np.array([0.3, 1.6]), np.array([0.0, 1.3])
    w = np.array([2.1, 2.9])
    q = middle + 0.3 * np.sin(w * t[:, None] + phase)
    qd = 0.3 * w * np.cos(w * t[:, None] + phase)
    qdd = -w**2 * (q - middle)
    live.add(t, q, qd, dynamics.inverse_dynamics(q, qd, qdd))
    condition, unexplained = live.state()
    assert live.samples == len(t) and 1 < condition < 1e4
    assert (unexplained < 0.02).all()
