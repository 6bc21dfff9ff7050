"""Base parameters: published counts, stability, and regrouping."""

import numpy as np
import pytest
from measured_logs import kinova, tx40
from robots import PANDA_URDF, planar_2r
from synthetic import LWR4

import robodyn_ros as rd
from robodyn_ros.identification.friction import FrictionShape
from robodyn_ros.identification.linear_model import LinearModel

# the KUKA LWR 4+ in Kolyubin 5.3 and 5.8
COUNTS = {'rigid': (43, 16, 11), 'model1': (64, 16, 11), 'lumped': (69, 18, 11),
          'model2': (92, 16, 11), 'model3': (28, 0, 0)}


@pytest.fixture(scope='module')
def lwr4():
    return rd.load_model(LWR4)


@pytest.mark.parametrize('kind', COUNTS)
def test_published_counts(lwr4, kind):
    base = rd.base_parameters(lwr4, kind)
    assert (base.count, len(base.regrouped), len(base.without_effect)) == COUNTS[kind]


def test_published_count_with_payload(lwr4):
    base = rd.base_parameters(lwr4, 'model2', payload='tip')
    # 18 of the 136 have no effect: 11, and 7 of drive and friction, which a payload lacks
    assert (base.count, len(base.regrouped), len(base.without_effect)) == (102, 16, 11)
    assert base.count + 16 + 18 == 17 * 8


def test_groupings_of_the_lwr4(lwr4):
    base = rd.base_parameters(lwr4, 'rigid')
    grouped = dict(zip(base.names, base.expressions, strict=True))
    assert grouped['Ixx:joint7'] == 'Ixx:joint7 - Iyy:joint7'
    assert grouped['my:joint6'] == 'my:joint6 - mz:joint7'
    assert grouped['my:joint4'] == ('my:joint4 + 0.39 m:joint5 + mz:joint5 + 0.39 m:joint6 '
                                    '+ 0.39 m:joint7')
    text = base.to_text()
    assert '43 base parameters' in text and 'm:joint1' in text.splitlines()[-1]


@pytest.mark.parametrize('model', [LWR4, PANDA_URDF, planar_2r()], ids=['lwr4', 'panda', '2r'])
def test_base_parameters_give_the_torque(model, rng):
    linear = LinearModel(rd.Dynamics(rd.load_model(model)), 'lumped')
    base = rd.base_parameters(linear)
    theta = rng.normal(size=len(linear.columns))
    n = linear.model.n
    w = linear.regressor(*rng.normal(size=(3, 20, n)))
    np.testing.assert_allclose(w[:, :, base.kept] @ (base.matrix @ theta), w @ theta,
                               atol=1e-9 * np.abs(w @ theta).max())


def test_rounded_angles_add_no_base_parameters():
    model, _ = kinova()
    assert rd.base_parameters(model, 'rigid').count == 43
    assert rd.base_parameters(model, 'model1').count == 64
    assert rd.base_parameters(model, 'lumped').count == 69


def test_a_gear_matrix_gives_the_published_count_of_a_coupled_wrist():
    model, _ = tx40()
    base = rd.base_parameters(model, 'lumped')
    assert base.count == 60  # the reference tool's count
    assert {'Fvm:joint_6', 'Fcm:joint_6'} <= set(base.names)
    assert 'Fvm:joint_5' not in base.names


def test_stable_under_another_order(lwr4, rng):
    """Factors with shuffled columns select the same parameters."""
    linear = LinearModel(rd.Dynamics(lwr4), 'rigid')
    want = rd.base_parameters(linear).names
    shuffled = LinearModel(rd.Dynamics(lwr4), 'rigid')
    order = rng.permutation(len(linear.columns))
    shuffled.columns = tuple(linear.columns[k] for k in order)
    shuffled.regressor = lambda *a, **k: linear.regressor(*a, **k)[:, :, order]
    assert set(rd.base_parameters(shuffled).names) == set(want)


def test_the_count_equals_the_rank_by_singular_values(rng):
    """Slow reference: the rank of the plain regressor, by singular values."""
    model = rd.load_model(PANDA_URDF)
    linear = LinearModel(rd.Dynamics(model), 'rigid')
    w = linear.regressor(*rng.normal(size=(3, 300, model.n))).reshape(-1, len(linear.columns))
    values = np.linalg.svd(w, compute_uv=False)
    assert rd.base_parameters(model, 'rigid').count == (values > 1e-9 * values[0]).sum()


def test_nominal_parameters_reproduce_the_nominal_torques(rng):
    """W times the nominal parameters is the inverse dynamics, for every kind with all terms."""
    from synthetic import lwr4_with_drives

    model = lwr4_with_drives()
    dynamics = rd.Dynamics(model)
    q, qd, qdd = rng.normal(size=(3, 10, 7))
    tau = dynamics.inverse_dynamics(q, qd, qdd)
    lumped = LinearModel(dynamics, 'lumped')
    np.testing.assert_allclose(lumped.regressor(q, qd, qdd) @ lumped.nominal(), tau, rtol=1e-10)
    both = LinearModel(dynamics, 'model2')
    torque = both.regressor(q, qd, qdd) @ both.nominal()
    np.testing.assert_allclose(torque[:, 7:], tau, rtol=1e-10)  # the motors bear the whole torque
    links = model.without_motors()
    np.testing.assert_allclose(torque[:, :7], rd.Dynamics(links).inverse_dynamics(q, qd, qdd),
                               rtol=1e-10)


def test_unknown_names():
    model = rd.load_model(planar_2r())
    with pytest.raises(rd.UnknownNameError, match='lumped'):
        rd.base_parameters(model, 'everything')
    with pytest.raises(rd.UnknownNameError, match='friction model'):
        FrictionShape('sticky')
    with pytest.raises(rd.UnknownNameError, match='payload|link'):
        rd.base_parameters(model, payload='nowhere')
    with pytest.raises(rd.UnknownNameError, match='j1, j2'):
        LinearModel(rd.Dynamics(model), joints=['elbow'])


def test_kinds_have_names_and_numbers(lwr4):
    """Kolyubin's numbers of the models stand for the same kinds as their names."""
    dynamics = rd.Dynamics(lwr4)
    for number, name in (('model1', 'links'), ('model2', 'links_and_drives'),
                         ('model3', 'drives')):
        assert LinearModel(dynamics, number).columns == LinearModel(dynamics, name).columns
        assert rd.Settings(kind=number).kind == name
