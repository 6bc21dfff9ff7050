"""Closed loops: the worked example, energy, and MuJoCo's constrained dynamics."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import yaml
from synthetic import LWR4

import robodyn_ros as rd
from robodyn_ros.dynamics.loops import read_loops

URDF = LWR4.parent / 'five_bar.urdf.xacro'
NUMBERS = LWR4.parent.parent / 'config/robots/five_bar.yaml'
LOOPS = LWR4.parent.parent / 'config/robots/five_bar_loops.yaml'


def linkage(tmp_path, **changes):
    """(closed-loop dynamics, numbers) of the five-bar, with some numbers changed."""
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
    lc[3] = -lc[3]  # the text uses the opposite sign
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


def test_reduced_equations_are_consistent(tmp_path, rng):
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


def test_dynamics_of_loops_agree_with_mujoco(tmp_path, rng):
    """M, accelerations and the force in the cut, compared with an engine with constraints."""
    mujoco = pytest.importorskip('mujoco')
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


def test_energy_is_conserved_in_free_motion(tmp_path):
    """10 s of Runge-Kutta steps from a pose from which the linkage swings gently."""
    dynamics, _ = linkage(tmp_path, link1={'mass': 2.4})
    x, h = np.array([-2.0, -0.6, 0.0, 0.0]), 0.005

    pose = dynamics.positions([-1.0, 0.4])  # the direct path from home is singular

    def slope(x):
        return np.concatenate([x[2:], dynamics.forward_dynamics(x[:2], x[2:], np.zeros(2),
                                                                near=pose)])

    energies, potentials = [], []
    for step in range(2000):  # 10 s
        pose = dynamics.positions(x[:2], near=pose)
        energies.append(sum(dynamics.energy(x[:2], x[2:], near=pose)))
        if step % 50 == 0:
            potentials.append(dynamics.energy(x[:2], np.zeros(2), near=pose).potential)
        k1 = slope(x)
        k2 = slope(x + h / 2 * k1)
        k3 = slope(x + h / 2 * k2)
        k4 = slope(x + h * k3)
        x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    potential = np.ptp(potentials)
    assert potential > 0.1 and np.ptp(energies) < 1e-6 * max(np.abs(energies).max(), potential)


def test_errors_name_impossible_loops():
    model = rd.load_model(URDF)
    loops = yaml.safe_load(LOOPS.read_text())
    closed = rd.ClosedLoopDynamics(model, loops)
    with pytest.raises(rd.RobodynError, match='joint1, joint2'):
        closed.mass_matrix([0.1])
    for change, match in (({'independent': ['joint1']}, 'constrain 2 of the 4'),
                          ({'independent': ['joint1', 'knee']}, 'knee'),
                          ({'cuts': [{'links': ['link3', 'hand']}]}, 'hand'),
                          ({'cuts': []}, 'defines no closed loop'),
                          ({'cuts': [{'links': ['link3', 'link4'], 'points': [[1, 2]]}]},
                           'points'),
                          ({'cuts': [{'links': ['link3', 'link4'],
                                      'points': [[5.0, 0, 0], [0.3, 0, 0]]}]}, 'gap .* m')):
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


def test_loops_of_a_mujoco_model_need_mujoco(tmp_path, monkeypatch):
    (tmp_path / 'arm.xml').write_text(MJCF)
    monkeypatch.setitem(sys.modules, 'mujoco', None)
    with pytest.raises(rd.DescriptionError, match='MuJoCo, which is not installed.*pip install'):
        read_loops(yaml.safe_load(LOOPS.read_text()) | {'mjcf': str(tmp_path / 'arm.xml')})


def test_loops_of_a_mujoco_model(tmp_path):
    """In the model's zero pose the anchors coincide, 0.7 m from the root along both chains."""
    pytest.importorskip('mujoco')
    (tmp_path / 'arm.xml').write_text(MJCF)
    path = tmp_path / 'loops.yaml'
    path.write_text('independent: [joint1, joint2]\nmjcf: arm.xml\n'
                    'start: {joint1: 0.3, joint2: 1.6, joint3: -1.3, joint4: 1.3}\n')
    model = rd.load_model(URDF)
    from_mujoco, ours = rd.ClosedLoopDynamics(model, path), rd.ClosedLoopDynamics(model, LOOPS)
    q = np.array([0.4, 1.5])
    np.testing.assert_allclose(from_mujoco.mass_matrix(q), ours.mass_matrix(q), atol=1e-12)
    distance = '<tendon><fixed name="t"><joint joint="joint1" coef="1"/></fixed></tendon>'
    for text, match in ((MJCF.replace('<equality>', distance + '<equality>').replace(
            '<connect', '<tendon tendon1="t"/><connect'), 'mjEQ_TENDON.*connect or weld'),
                        ('<mujoco', 'cannot be read')):
        (tmp_path / 'arm.xml').write_text(text)
        with pytest.raises(rd.RobodynError, match=match):
            rd.ClosedLoopDynamics(model, path)


def test_hinges_agree_with_points_and_a_weld_over_constrains(rng):
    """Common axes do not change a planar linkage; a weld removes its last degree of freedom."""
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
    with pytest.raises(rd.RobodynError, match='gap between|constrain 3 of the 4'):
        rd.ClosedLoopDynamics(model, welded, start=[0.3, 1.6, -1.3, 1.3])


def test_batches_of_loops_equal_single_states(rng):
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


def test_threads_share_one_object(tmp_path):
    """Each thread follows its own motion; a pose kept from the last call would mix them up."""
    dynamics, _ = linkage(tmp_path, **GENERAL)
    t = np.linspace(0, 2 * np.pi, 400)
    motions = [np.array([0.3, 1.6]) + 0.5 * np.column_stack([np.sin(k * t), np.cos(k * t + k)])
               for k in (1, 2, 3, 5)]
    motions = [q[dynamics.reachable(q)] for q in motions]
    assert all(len(q) > 300 for q in motions)

    def follow(q, barrier=None):
        pose, torques = None, []
        if barrier is not None:
            barrier.wait()
        for x in q:
            pose = dynamics.positions(x, near=pose)
            np.testing.assert_array_equal(pose[:2], x)
            torques.append([dynamics.gravity(x), dynamics.gravity(x, near=pose)])
        return np.array(torques)

    alone = [follow(q) for q in motions]
    barrier = threading.Barrier(len(motions))
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(len(motions)) as pool:
            together = list(pool.map(lambda q: follow(q, barrier), motions))
    finally:
        sys.setswitchinterval(interval)
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_allclose(one[:, 0], one[:, 1], atol=1e-11)


def test_a_pose_does_not_depend_on_the_calls_before(tmp_path):
    dynamics, _ = linkage(tmp_path, **GENERAL)
    q, far = np.array([0.4, 1.5]), np.array([0.3, 1.0])
    first = dynamics.positions(q)
    dynamics.positions(far)
    np.testing.assert_array_equal(dynamics.positions(q), first)
    np.testing.assert_array_equal(dynamics.positions(q[None])[0], first)
    with pytest.raises(ValueError, match='read-only'):
        dynamics.home[0] = 1.0
    with pytest.raises(rd.ShapeError, match='near has shape'):
        dynamics.gravity(q, near=q)


@pytest.mark.parametrize(('q', 'match'), [
    ([np.nan, 1.6], 'joint1 nan.*finite'), ([0.3, np.inf], 'joint2 inf.*finite'),
    ([0.3, 1e9], 'less than 1000 rad')])
def test_impossible_positions_are_refused(q, match):
    closed = rd.ClosedLoopDynamics(rd.load_model(URDF), LOOPS)
    for call in (closed.positions, closed.gravity, lambda q: closed.mass_matrix([[0.3, 1.6], q])):
        with pytest.raises(rd.ValueRangeError, match=match):
            call(q)
    np.testing.assert_array_equal(closed.reachable([[0.3, 1.6], q]), [True, False])


def test_trees_and_loops_share_one_interface(rng):
    """The same calls serve robots with closed loops and without."""
    tree, loops = (rd.dynamics_of(rd.load_model(URDF), given) for given in (None, LOOPS))
    assert rd.dynamics_of(tree) is tree and rd.dynamics_of(loops) is loops
    for dynamics, n in ((tree, 4), (loops, 2)):
        assert dynamics.n == dynamics.joints.n == len(dynamics.joint_names) == n
        q = np.array([0.4, 1.5, -1.1, 1.1])[:n]
        qd, qdd = rng.normal(size=(2, n))
        full = dynamics.positions(q)
        assert full.shape == (dynamics.model.n,) and dynamics.reachable(q[None]).all()
        motion = dynamics.motion(q, qd, near=full)
        np.testing.assert_allclose(motion.matrix @ qd, motion.qd, atol=1e-12)
        np.testing.assert_allclose(dynamics.velocities(q, qd, near=full), motion.qd, atol=1e-12)
        terms = dynamics.terms(q, qd, near=full)
        torque = dynamics.inverse_dynamics(q, qd, qdd, near=full)
        np.testing.assert_allclose(
            terms.mass_matrix @ qdd + terms.coriolis + terms.gravity
            + dynamics.friction(qd, q, near=full), torque, atol=1e-10)
        np.testing.assert_allclose(motion.reduce(dynamics.tree.inverse_dynamics(
            motion.q, motion.qd, motion.qdd(qdd))), torque, atol=1e-10)
        np.testing.assert_allclose(dynamics.forward_dynamics(q, qd, torque, near=full), qdd,
                                   atol=1e-8)
        np.testing.assert_allclose(dynamics.regressor(q, qd, qdd, near=full)
                                   @ dynamics.model.standard_parameters, torque, atol=1e-10)
        assert dynamics.constraint_forces(q, qd, qdd).shape == (len(dynamics.cuts), 6)
        batch = dynamics.constraint_forces(*np.tile([q, qd, qdd], (3, 1, 1)).swapaxes(0, 1))
        assert batch.shape == (3, len(dynamics.cuts), 6)
        assert 0 < dynamics.singularity(q, near=full) <= 1
        assert dynamics.base_wrench(q, qd, qdd, near=full).shape == (6,)
    assert not tree.cuts and tree.tree is tree and len(loops.cuts) == 1
