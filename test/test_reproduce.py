"""The published experiment: its tables, the robot built from them, a short run of all steps."""

import numpy as np
import pytest
from robots import planar_2r

import robodyn_ros as rd
from robodyn_ros.excitation import point_to_point
from robodyn_ros.excitation.criteria import Criterion
from robodyn_ros.excitation.fourier import Basis
from robodyn_ros.identification.consistency import is_consistent
from robodyn_ros.identification.friction import FrictionShape
from robodyn_ros.identification.linear_model import LinearModel
from robodyn_ros.reproduce.lwr4 import reproduce_lwr4
from robodyn_ros.reproduce.lwr4_robot import (
    CARRIER,
    name_of,
    published_parameters,
    tables,
    true_robot,
)
from robodyn_ros.reproduce.lwr4_tables import report, rows
from robodyn_ros.spatial import inertial_of


@pytest.fixture(scope='module')
def truth():
    return true_robot()


@pytest.fixture(scope='module')
def short():
    """All steps with one motion that needs no search, 12 s at 200 Hz."""
    return reproduce_lwr4(motions=('trapezoid',), duration=12.0, rate=200.0)


def test_table_5_3_is_complete():
    published = published_parameters()
    assert len(published) == tables()['counts']['significant'] == 49
    assert published['Ia:joint1'] == (3.14, 0.0168)
    assert name_of('XX2R') == 'Ixx:joint2' and name_of('MY8') == 'my:payload'
    assert name_of('off4') == 'offl:joint4' and name_of('offm7') == 'offm:joint7'
    counts = tables()['counts']
    assert counts['standard'] - counts['without_effect'] - counts['regrouped'] == counts['base']


def test_the_simulated_robot_has_the_published_parameters(truth):
    linear = LinearModel(rd.Dynamics(truth.bare), 'model2', payload=CARRIER)
    base = rd.base_parameters(linear)
    assert base.count == 102
    values = dict(zip(base.names, base.matrix @ truth.parameters(linear), strict=True))
    for name, (published, _) in published_parameters().items():
        assert values[name] == pytest.approx(published, abs=0.005), name
    assert is_consistent(truth.bare)
    inertia = inertial_of(truth.load).inertia  # about the centre of mass
    assert np.linalg.eigvalsh(inertia)[0] > 0
    # the centre of the load in the frame of joint 7
    np.testing.assert_allclose(truth.load[7:] / truth.load[6], [0, -0.066, 0.144], atol=5e-4)


def test_the_repository_s_robot_carries_the_published_load():
    from synthetic import LWR4

    loaded = rd.load_model(LWR4, xacro_arguments={'payload': 'true'})
    payload = next(one for one in loaded.description.links if one.name == 'payload').inertial
    centre = payload.com + [0, 0, tables()['kinematics']['flange']]
    np.testing.assert_allclose(centre, [0, -0.066, 0.144], atol=5e-4)


def test_motor_torques_exceed_joint_torques_by_the_drives(truth, rng):
    q, qd, qdd = rng.normal(size=(3, 5, 7))
    joint, motor = truth.torques(q, qd, qdd, loaded=True)
    model = truth.bare
    viscous, coulomb, offset = model.motor_friction.T
    np.testing.assert_allclose(motor - joint, model.armature * qdd + viscous * qd
                               + coulomb * np.sign(qd) + offset, atol=1e-9)


def test_all_steps_recover_the_published_parameters(short, truth):
    run = short.runs['trapezoid']
    assert run.result.base_.count == 102
    table = {row.name: row for row in rows(run)}
    assert table['m:payload'].here == pytest.approx(3.34, rel=0.02)
    assert table['my:joint2'].here == pytest.approx(3.46, rel=0.05)
    assert table['Fcm:joint1'].here == pytest.approx(15.04, rel=0.1)
    true = run.result.base_.matrix @ truth.parameters(run.result.linear)
    lower, upper = run.result.uncertainty_.interval.T
    assert np.mean((lower <= true) & (true <= upper)) > 0.95
    truths = dict(zip(run.result.base_.names, true, strict=True))
    away = [abs(row.here - truths[row.name]) / (abs(row.here) * row.deviation)
            for row in table.values() if not np.isnan(row.deviation)]
    # parameters that are not significant were dropped, which shifts others of the table
    assert np.mean(np.array(away) < 3) > 0.9
    text = report(short)
    for words in ('Table 5.1', 'Table 5.2', 'Table 5.3', 'base                       102'):
        assert words in text
    assert max(map(len, text.splitlines())) <= 80


def test_trapezoids_keep_the_limits_and_rest_at_their_points():
    model = rd.load_model(planar_2r())
    limits = rd.Limits(velocity=[1.0, 1.5], torque=[40.0, 15.0], torque_margin=0.0)
    motion = point_to_point(model, limits, duration=20.0, acceleration=[2.0, 3.0], speed=0.8)
    assert motion.duration >= 20.0
    t = np.linspace(-0.5, motion.duration + 0.5, 20001)
    q, qd, qdd, _ = motion.at(t)
    assert (np.abs(qd) <= [0.8 + 1e-9, 1.2 + 1e-9]).all()
    assert (np.abs(qdd) <= [2.0 + 1e-9, 3.0 + 1e-9]).all()
    assert np.abs(qd).max(axis=0)[0] > 0.5
    tau = rd.Dynamics(model).inverse_dynamics(q, qd, qdd)
    assert (np.abs(tau) <= [40.0, 15.0]).all()
    np.testing.assert_allclose(np.gradient(q, t, axis=0), qd, atol=5e-3)
    ends = np.cumsum(2 * motion.ramps + motion.cruises)
    np.testing.assert_allclose(motion.at(ends).q, motion.points[1:], atol=1e-9)
    np.testing.assert_allclose(motion.at(ends).qd, 0, atol=1e-9)
    assert (motion.cruises > 0).any()  # trapezoids, not only triangles
    with pytest.raises(rd.ValueRangeError, match='speed'):
        point_to_point(model, speed=2.0)


@pytest.mark.parametrize('kind', ['model2', 'model3'])
def test_excitation_for_motor_torques_and_a_payload(kind, rng):
    model = rd.load_model(planar_2r(), gravity=(0, -9.8, 0))
    payload = 'lower' if kind == 'model2' else None
    linear = LinearModel(rd.Dynamics(model), kind, payload=payload, friction=FrictionShape(
        'coulomb', 0.3, np.ones(2)))
    basis = Basis(5.0, 3, 40)
    criterion = Criterion(linear, rd.base_parameters(linear), basis, 'condition', 'columns',
                          np.ones(linear.rows))
    x = rng.normal(size=(1 + basis.free, 2))
    value, gradient = criterion(basis.motion(x))
    step = 1e-6
    for place in ((0, 1), (2, 0), (3, 1)):
        moved = x.copy()
        moved[place] += step
        slope = (criterion(basis.motion(moved)).value - value) / step
        assert gradient[place] == pytest.approx(slope, rel=2e-3, abs=1e-5)
    assert len(criterion.matrix(basis.motion(x))) == 40 * linear.rows * (2 if payload else 1)
    found = rd.optimise_excitation(model, kind=kind, payload=payload, payload_mass=0.5,
                                   period=5.0, harmonics=3, budget=3.0, starts=1)
    assert found.facts['kind'] == kind
    assert found.facts['base_parameters'] == rd.base_parameters(linear).count
    _, motion = found.samples(200.0)
    loaded = model.with_payload('lower', 0.5)
    for robot in (model, loaded) if payload else (model,):
        tau = rd.Dynamics(robot, friction_width=0.02).inverse_dynamics(*motion[:3])
        assert (np.abs(tau) <= model.effort_limit).all()
