"""A whole goal without ROS: excite, record, identify and validate a simulated arm."""

import numpy as np
import pytest
import yaml
from synthetic import own_robot

import robodyn_ros as rd
from robodyn_ros.excitation import Excitation
from robodyn_ros.experiment import results
from robodyn_ros.experiment.commanded import MOTION, START, save_commanded, with_commanded
from robodyn_ros.experiment.goal import EXCITE, USE_LOGS, Goal
from robodyn_ros.experiment.job import Job
from robodyn_ros.experiment.procedure import Options, Procedure
from robodyn_ros.experiment.runs import Runs
from robodyn_ros.experiment.state_monitor import StateMonitor
from robodyn_ros.identification import FilterSettings, Thresholds

MODEL = rd.load_model(own_robot('planar_2r'))
TRUE = rd.load_model(own_robot('planar_2r'), motors={'joints': {
    'joint1': {'armature': 0.2, 'link_friction': {'viscous': 0.5, 'coulomb': 0.3}},
    'joint2': {'armature': 0.03, 'link_friction': {'viscous': 0.1, 'coulomb': 0.2}}}})
STEP = 4_000_000  # ns between two states
MASS = 2.0  # kg, of the payload


class Arm:
    """Follows the last piece that it was sent, and is the port of the procedure."""

    def __init__(self, model):
        typesys = pytest.importorskip('rosbags.typesys')
        self._store = typesys.get_typestore(typesys.Stores.ROS2_JAZZY)
        self._dynamics = rd.Dynamics(model, friction_width=0.02)
        self._rng, self._now, self._q = np.random.default_rng(0), 10**10, np.array([0.3, -0.4])
        self._piece = None
        self.monitor = StateMonitor(MODEL.joints, 60.0, 60.0, 0.2)
        self.advance()

    def send(self, piece, start):
        self._piece = piece, start

    def has_controller(self):
        return True

    def send_status(self, job, status):
        pass

    report = send_status

    def advance(self):
        """Let 0.1 s pass; return False, since nobody cancels the goal."""
        for _ in range(25):
            self._now += STEP
            qd = qdd = np.zeros(2)
            if self._piece is not None and self._now >= self._piece[1]:
                self._q, qd, qdd = self._piece[0].sample((self._now - self._piece[1]) * 1e-9)
            noise = self._rng.normal(size=(2, 2))
            tau = self._dynamics.inverse_dynamics(self._q, qd, qdd) + noise[0] * 0.1
            seen = self._q + noise[1] * 1e-4
            self.monitor.record(self._now, self._message(seen, qd, tau))
            self.monitor.add_state(self._now, seen, qd, tau)
        return False

    def _message(self, q, qd, tau):
        types, seconds = self._store.types, divmod(self._now, 10**9)
        stamp = types['builtin_interfaces/msg/Time'](sec=seconds[0], nanosec=seconds[1])
        message = types['sensor_msgs/msg/JointState'](
            types['std_msgs/msg/Header'](stamp, ''), list(MODEL.joint_names), q, qd, tau)
        return bytes(self._store.serialize_cdr(message, 'sensor_msgs/msg/JointState'))


@pytest.fixture(scope='module')
def motion():
    return rd.optimise_excitation(MODEL, rd.Limits(torque_margin=0.3), period=2.3017, harmonics=3,
                                  budget=60.0, starts=1)


@pytest.fixture(scope='module')
def runs(tmp_path_factory, motion):
    """The root folder, with runs without and with a payload."""
    found = Runs(tmp_path_factory.mktemp('runs'))
    (found.root / 'motion.yaml').write_text(motion.to_yaml())
    outcomes = {}
    patch = pytest.MonkeyPatch()
    # reports and pictures take longer than all the rest
    for name in ('pictures_of', 'save_pictures', 'save_report'):
        patch.setattr(results, name, lambda *_, **__: None)

    def run(model, **goal):
        arm = Arm(model)
        job = Job(Goal(friction='coulomb', **goal), arm.advance)
        outcomes[goal['name']] = Procedure(
            job, rd.Dynamics(MODEL), arm.monitor, found, arm,
            Options(50.0, 1.0, 0.8, False)).run(), job.goal, job.folder

    excite = {'excitation': 'motion.yaml', 'validation_fraction': 0.3}
    run(TRUE, name='free', periods=3, reduce=True, order=3, **excite)
    run(TRUE.with_payload('link2', MASS, (0.3, 0.0, 0.0)), name='loaded', logs=('free',),
        payload_link='link2', **excite)
    run(TRUE, name='again', source=USE_LOGS, logs=('free',), loaded_logs=('loaded',),
        payload_link='link2', payload_mass=MASS)
    patch.undo()
    return outcomes


@pytest.mark.slow
def test_several_periods_are_averaged_with_the_known_reference(runs, motion):
    outcome, _, folder = runs['free']
    assert any('2 periods averaged' in note for note in outcome.result.notes)
    assert outcome.result.filtering.cutoff == np.inf
    segment, = outcome.result.observations.segments
    assert segment.t[-1] < motion.period < 1.01 * (segment.t[-1] + 0.004)
    # the instrument is the reference, from which the states differ by noise of 1e-4 rad
    began = yaml.safe_load((folder / 'log' / MOTION).read_text())['facts'][START]
    assert 10.0 < began < 60.0
    known = motion.at(segment.t).q
    assert np.abs(segment.smooth[0] - known).max() < 0.02  # the log begins within one sample
    assert np.abs(segment.smooth[1] - segment.qd).max() < 1e-2
    # the last period validates; it is too short to be averaged, so it is filtered
    assert outcome.validation.total < 0.05


def test_the_significant_parameters_are_estimated_alone(runs):
    outcome, _, folder = runs['free']
    assert outcome.reduced.base_.count == len(outcome.result.significant_)
    written = yaml.safe_load((folder / 'significant.yaml').read_text())['base_parameters']
    assert set(written) == set(outcome.result.significant_)


@pytest.mark.parametrize('name', ['loaded', 'again'])
def test_a_payload_is_identified_beside_earlier_runs(runs, name):
    result = runs[name][0].result
    assert [segment.loaded for segment in result.observations.segments] == [False, True]
    if name == 'again':  # with its mass
        assert result.theta_[result.linear.names.index('m:payload')] == MASS
    found = dict(zip(result.base_.names, result.estimate_.values, strict=True))
    assert found['mx:payload'] == pytest.approx(MASS * 0.3, rel=0.1), found
    # what was recorded with the payload is validated with the payload
    assert runs[name][0].validation.total < 0.06


def test_the_command_of_the_report_names_everything(runs):
    _, goal, folder = runs['loaded']
    words = goal.command(folder, Thresholds()).split()
    assert words[2] == 'free' and words[words.index('--loaded') + 1] == str(folder / 'log')
    assert words[words.index('--payload') + 1] == 'link2' and '--reduce' not in words
    moved = Goal(payload_link='link2', logs=('free',), corridor=(1.0, 0.5, 5.0, 40.0), cutoff=3.0,
                 order=2, slow=0.1, reduce=True, joints=('joint1',))
    words = moved.command(folder, Thresholds()).split()
    for option in ('--validate-loaded', '--corridor', '--cutoff', '--order', '--slow', '--reduce',
                   '--joints'):
        assert option in words
    assert moved.settings().filter == FilterSettings(3.0, 2, (1.0, 0.5, 5.0, 40.0))
    assert moved.search(MODEL)[1].payload == 'link2'


@pytest.mark.parametrize('goal, why', [
    ({'loaded_logs': ('a',), 'logs': ('b',), 'source': USE_LOGS}, 'without payload_link'),
    ({'payload_link': 'link2'}, 'without logs'), ({'corridor': (1.0, 2.0)}, 'has 2 numbers'),
    ({'periods': 10**6}, 'periods is 1000000')])
def test_goals_that_contradict_themselves_are_refused(goal, why):
    with pytest.raises(rd.IdentificationError, match=why):
        Goal(**{'source': EXCITE, **goal}).check()


def test_a_log_gets_the_motion_beside_it_only_at_its_own_time(tmp_path, motion):
    twice = Excitation(**{**vars(motion), 'periods': 2})
    save_commanded(tmp_path, twice, 100.0)
    t = 100.003 + np.arange(0, twice.duration, 0.004)
    names = ('other', *reversed(MODEL.joint_names))
    q = np.ones((len(t), 3))
    log = rd.Log(t, q, q, joint_names=names)
    found = with_commanded(log, tmp_path)
    assert found.period == motion.period
    known = twice.at(t - 100.0).q
    np.testing.assert_allclose(found.reference, np.column_stack([q[:, 0], known[:, ::-1]]))
    assert with_commanded(rd.Log(t + 50, q, q, joint_names=names), tmp_path).period is None
    assert with_commanded(log, tmp_path / 'nothing') is log
