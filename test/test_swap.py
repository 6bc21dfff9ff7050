"""Jobs of the server, and the swap of an identified model into running nodes; no ROS."""

import threading
import time
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace

import pytest

import robodyn_ros as rd
from robodyn_ros.experiment.goal import Goal
from robodyn_ros.experiment.job import Job, JobQueue, Stopped
from robodyn_ros.experiment.results import URDF, Outcome
from robodyn_ros.experiment.swap import Answer, ModelTexts, SwapError, swap_model


def test_a_new_job_pre_empts_those_before_it():
    jobs = JobQueue()
    first, second, third = (Job(Goal(name=name)) for name in 'abc')
    assert [jobs.add(job) for job in (first, second, third)] == [True, False, False]
    for job in (first, second):
        with pytest.raises(Stopped, match='pre-empted'):
            job.check()
    third.check()
    assert jobs.next() is second and jobs.next() is third and jobs.next() is None


def test_a_goal_that_contradicts_itself_is_refused():
    for goal, why in ((Goal(source=9), 'EXCITE 0'), (Goal(source=2), 'no log'),
                      (Goal(source=1), 'duration is 0'), (Goal(speed=1.5), 'speed is 1.5')):
        with pytest.raises(rd.errors.RobodynError, match=why):
            goal.check()


@pytest.mark.parametrize('verdict, force, file, why', [
    ('good', False, URDF, ''), ('doubtful', False, URDF, 'verdict of the validation is doubtful'),
    ('bad', True, URDF, ''), ('good', True, 'motors.yaml', 'no URDF')])
def test_a_model_is_applied_only_if_its_validation_is_good_or_by_force(verdict, force, file, why):
    outcome = Outcome(None, SimpleNamespace(verdict=verdict), None, (Path(file),))
    reason = outcome.why_not_apply(force)
    assert why in reason and bool(reason) == bool(why)


class User:
    """A node with a history of models; it answers on request of the test."""

    def __init__(self, name, answers=True, refuses=False):
        self.name, self.models, self.refuses = name, ['old'], refuses
        self.answers, self._late = answers, None

    def is_ready(self):
        return True

    def set_model(self, model, timeout):
        future = Future()
        self._late = lambda: self._take(model, future)
        if self.answers:
            self._late()
        return future

    def _take(self, model, future):
        if not self.refuses:
            self.models.append(model.origin)
        future.set_result(Answer(not self.refuses, 'no', len(self.models)))

    def wake(self):
        self._late()

    def roll_back(self):
        self.models.pop()
        future = Future()
        future.set_result(Answer(True, ''))
        return future


TEXTS = ModelTexts('', '', 'new')


def test_all_nodes_take_the_model():
    users = [User('a'), User('b')]
    assert swap_model(users, TEXTS, timeout=1.0) == [2, 2]
    assert [user.models[-1] for user in users] == ['new', 'new']


@pytest.mark.parametrize('bad, why', [({'refuses': True}, 'b refused the model: no'),
                                      ({'answers': False}, 'b did not answer within 0.2 s')])
def test_if_one_node_fails_the_others_return_to_their_model(bad, why):
    users = [User('a'), User('b', **bad), User('c')]
    with pytest.raises(SwapError, match=why):
        swap_model(users, TEXTS, timeout=0.2)
    assert [user.models for user in users] == [['old']] * 3
    if not users[1].answers:  # it wakes up and takes the model after all
        users[1].wake()
        assert users[1].models == ['old']


def test_a_swap_can_be_cancelled_while_a_node_does_not_answer():
    users, job = [User('a'), User('b', answers=False)], Job(Goal())
    threading.Timer(0.2, lambda: job.stop('cancelled')).start()
    begun = time.monotonic()
    with pytest.raises(Stopped, match='cancelled'):
        swap_model(users, TEXTS, timeout=30.0, check=job.check)
    assert time.monotonic() - begun < 2.0
    assert [user.models for user in users] == [['old']] * 2
