"""A controller with a clock of its own, for tests without ROS."""

import numpy as np
from robots import planar_2r

import robodyn_ros as rd
from robodyn_ros.control import ControlLaw, Controller, Reference

DYNAMICS = rd.Dynamics(rd.load_model(planar_2r(), gravity=(0, -9.81, 0)))
SECOND = 1_000_000_000
VALUES = {
    'mode': 'feedforward_pd', 'kp': [50.0], 'kd': [10.0], 'computed_torque_kp': [100.0],
    'computed_torque_kd': [20.0], 'damping': [1.0], 'torque_rate_limit': [0.0],
    'friction_compensation': 0.0, 'state_timeout': 0.1, 'zero_after': 0.5, 'ramp': 0.2,
    'hold': 1.0, 'setpoint_timeout': 0.1, 'start_tolerance': 0.5, 'path_tolerance': [1.0],
    'goal_tolerance': [0.0], 'goal_time': 0.5}
Q = np.array([0.3, -0.4])
ZERO = np.zeros(2)


def law(dynamics=DYNAMICS, **values):
    return ControlLaw.of(VALUES | values, dynamics)


class Bench:
    """A controller with a clock, whose states come every 10 ms on request."""

    def __init__(self, **values):
        self.now, self.warned, self.torques = 0.0, [], []
        self.controller = Controller(law(**values), lambda kind, text: self.warned.append(kind),
                                     lambda before, after: None)

    def _heard(self, answer):
        if answer is not None:
            self.torques.append((self.now, answer.torque))
        return answer

    def state(self, q=Q, qd=ZERO, stamp=None):
        self.now += 0.01
        return self._heard(self.controller.on_state(
            np.array(q), np.array(qd), int(self.now * 1e9) if stamp is None else stamp, self.now))

    def tick(self, step=0.01, clock=None):
        self.now += step
        return self._heard(self.controller.tick(
            self.now, int(self.now * 1e9) if clock is None else clock))

    def play(self, reference, start=0):
        playing, tau = self.controller.check(reference, start, self.now, int(self.now * 1e9))
        self.controller.play(playing, self.now, int(self.now * 1e9))
        return tau

    def largest_step(self):
        return np.abs(np.diff([torque for _, torque in self.torques], axis=0)).max()


def still(q=Q, seconds=2.0):
    rows = np.tile(q, (2, 1))
    return Reference([0.0, seconds], rows, 0 * rows, 0 * rows)


def moving(goal, seconds, start=Q):
    rows = np.array([start, goal])
    return Reference([0.0, seconds], rows, 0 * rows, 0 * rows)
