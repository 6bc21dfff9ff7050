"""Random sequences of faults on the controller without ROS, in every mode and for every structure.

The clock is simulated, so that many hours pass in seconds. After every step the invariants hold:
torques are finite and within the effort limits; without fresh states they are zero after the
stated time; nothing raises.
"""

from collections import Counter
from functools import lru_cache
from pathlib import Path

import numpy as np
from robots import planar_2r

import robodyn_ros as rd
from robodyn_ros.control import ControlLaw, Controller, Reference, ReferenceRefused
from robodyn_ros.control.tuning import MODES
from robodyn_ros.errors import RobodynError

ROOT = Path(__file__).parents[2]
VALUES = {
    'kp': [60.0], 'kd': [8.0], 'computed_torque_kp': [100.0], 'computed_torque_kd': [20.0],
    'damping': [1.0], 'friction_compensation': 0.0, 'state_timeout': 0.1, 'zero_after': 0.5,
    'gain_frequency': 10.0, 'ramp': 0.2, 'hold': 0.5, 'setpoint_timeout': 0.1,
    'start_tolerance': 0.5, 'path_tolerance': [1.0], 'goal_tolerance': [0.0],
    'goal_time': 0.5, 'torque_rate_limit': [0.0]}
STRUCTURES = ('tree', 'elastic', 'loops')
# each step is drawn from these: good states most often
STEPS = (*['state'] * 5, 'silence', 'wrong_state', 'old_state', 'jump', 'other_clock', 'reference',
         'wrong_reference', 'law', 'model', 'taken_over', 'nothing')


@lru_cache
def dynamics_of(structure, heavy):
    """The dynamics of a robot, alone or with a payload."""
    if structure == 'tree':
        model = rd.load_model(planar_2r(), gravity=(0, -9.81, 0))
        last, loops = 'lower', None
    elif structure == 'elastic':
        model = rd.load_model(ROOT / 'urdf/flexible_2r.urdf.xacro',
                              motors=ROOT / 'config/robots/flexible_2r_motors.yaml')
        last, loops = None, None
    else:
        model = rd.load_model(ROOT / 'urdf/palletiser.urdf.xacro')
        last, loops = None, ROOT / 'config/robots/palletiser_loops.yaml'
    if heavy:
        last = last or model.description.links[-1].name
        model = model.with_payload(last, 0.5)
    return rd.dynamics_of(model, loops)


class Sequence:
    """One random sequence; `step` applies a fault and checks the invariants."""

    def __init__(self, structure, seed):
        self.rng = np.random.default_rng(seed)
        self.structure, self.heavy = structure, False
        self.joints = dynamics_of(structure, False).joints
        self.n = self.joints.n
        self.now, self.stamp, self.offset = 100.0, 0, 0
        self.events = Counter()
        self.last = None  # time and torque of the last command
        self.fresh = -np.inf  # when the last state came that may be answered
        modes = [m for m in MODES if m != 'elastic_feedforward_pd' or structure == 'elastic']
        self.modes = modes
        self.values = VALUES | {'mode': str(self.rng.choice(modes))}
        self.controller = Controller(self._make_law(), self._warn, lambda before, after: None)
        lower = np.maximum(self.joints.lower, -1.5)
        upper = np.minimum(self.joints.upper, 1.5)
        self.q = (lower + upper) / 2 + (0.05 if structure == 'loops' else 0.2) * (
            upper - lower) * self.rng.uniform(-1, 1, self.n)
        self.qd = np.zeros(self.n)

    def _make_law(self):
        return ControlLaw.of(self.values, dynamics_of(self.structure, self.heavy))

    def _warn(self, kind, text):
        self.events[kind] += 1

    def step(self):
        """Apply one fault or event; return how many torques were commanded."""
        what = str(self.rng.choice(STEPS))
        self.events[what] += 1
        count = 0
        for answer in getattr(self, f'_{what}')():
            if answer is not None:
                self._check(answer)
                count += 1
        return count

    def _check(self, answer):
        torque, limit = answer.torque, self.joints.effort_limit
        context = self.structure, self.values['mode'], dict(self.events)
        assert np.isfinite(torque).all(), context
        assert (np.abs(torque) <= limit * (1 + 1e-12)).all(), (torque, context)
        self.last = self.now, torque
        late = self.now - self.fresh
        end = self.values['zero_after'] + self.values['ramp'] + 0.05
        if self.values['mode'] != 'feedforward' and not self.values['torque_rate_limit'][0] and \
                late > end and not self.controller.ending:
            assert not torque.any(), (late, torque, context)

    def _advance(self, seconds):
        self.now += seconds
        self.stamp += int(seconds * 1e9)

    def _tick(self):
        return self.controller.tick(self.now, int(self.now * 1e9) + self.offset)

    def _answer(self, q, qd, stamp):
        with np.errstate(all='ignore'):
            answer = self.controller.on_state(np.array(q), np.array(qd), stamp, self.now)
        if answer is not None:
            self.fresh = self.now
        return answer

    def _state(self):
        for _ in range(int(self.rng.integers(1, 20))):
            self._advance(0.002)
            self.qd = 0.98 * self.qd + 0.02 * self.rng.normal(0, 0.2, self.n)
            self.q = self.q + 0.002 * self.qd
            yield self._answer(self.q, self.qd, self.stamp)
            yield self._tick()

    def _silence(self):
        for _ in range(int(self.rng.integers(1, 200))):
            self._advance(0.005)
            yield self._tick()

    def _wrong_state(self):
        for _ in range(int(self.rng.integers(1, 5))):
            self._advance(0.002)
            size = 10.0 ** self.rng.uniform(-1, 300)
            q, qd = self.q.copy(), self.qd.copy()
            (q if self.rng.random() < 0.5 else qd)[self.rng.integers(self.n)] += size
            yield self._answer(q, qd, self.stamp)
            yield self._tick()

    def _old_state(self):
        self._advance(float(self.rng.uniform(0.0, 1.0)))
        self._fade_anew()
        for _ in range(20):
            yield self._answer(self.q, self.qd, self.stamp - int(self.rng.uniform(0, 9e8)))
            self.now += 2e-5

    def _jump(self):
        self.stamp = int(self.rng.uniform(0, 1e12))
        self.controller.on_jump()
        yield self._answer(self.q, self.qd, self.stamp)

    def _other_clock(self):
        self.offset = int(self.rng.normal(0, 1e9))
        yield self._tick()

    def _nothing(self):
        yield self._tick()

    def _reference(self):
        count = int(self.rng.integers(1, 5))
        times = np.cumsum(self.rng.uniform(0.05, 0.6, count))
        q = self.q + np.cumsum(self.rng.normal(0, 0.1, (count, self.n)), axis=0)
        yield from self._play(times, q, 0 * q, 0 * q)

    def _wrong_reference(self):
        count = int(self.rng.integers(1, 4))
        times = np.cumsum(self.rng.uniform(-0.01, 0.5, count))
        parts = self.rng.normal(size=(3, count, self.n)) * 10 ** self.rng.uniform(-2, 308)
        if self.rng.random() < 0.3:
            parts[self.rng.integers(3), 0, 0] = self.rng.choice([np.nan, np.inf, -np.inf])
        yield from self._play(times, *parts)

    def _play(self, times, *parts):
        clock = int(self.now * 1e9) + self.offset
        start = int(self.rng.choice([0, self.stamp, self.stamp + 5 * 10**8, clock,
                                     self.rng.integers(0, 2**40)]))
        try:
            with np.errstate(all='ignore'):
                playing, tau = self.controller.check(Reference(times, *parts), start, self.now,
                                                     clock)
        except ReferenceRefused:
            self.events['refused'] += 1
            return
        except RobodynError:  # the reference contains no motion
            self.events['malformed'] += 1
            return
        assert np.isfinite(tau).all() and (np.abs(tau) <= self.joints.effort_limit).all()
        self.controller.play(playing, self.now, clock)
        self.events['played'] += 1
        yield from self._state()

    def _law(self):
        self.values = VALUES | {
            'mode': str(self.rng.choice(self.modes)), 'ramp': float(self.rng.choice([0.0, 0.2])),
            'torque_rate_limit': [float(self.rng.choice([0.0, 0.0, 50.0]))],
            'path_tolerance': [float(self.rng.choice([0.0, 0.3, 1.0]))]}
        self.controller.use(self._make_law(), self.now)
        yield self._tick()

    def _model(self):
        self.heavy = not self.heavy
        self.controller.use(self._make_law(), self.now)
        yield self._tick()

    def _fade_anew(self):
        """Count the time until zero from now: the process paused, or another one commanded."""
        self.fresh = max(self.fresh, self.now - self.values['zero_after'])

    def _taken_over(self):
        self._fade_anew()
        self.controller.taken_over(self.rng.uniform(-1, 1, self.n) * self.joints.effort_limit)
        yield self._tick()


def run(structure, seed, steps):
    """Run one sequence; return how many torques were commanded, and what happened."""
    sequence = Sequence(structure, seed)
    torques = sum(sequence.step() for _ in range(steps))
    return torques, sequence.events
