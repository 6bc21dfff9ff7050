"""Delay from a contact to the changed command: simulator, observer and controller in real time.

An arm holds a pose by feed-forward with PD at 1 kHz; it is pushed again and again. The delays are
those between the stamp of the joint state in which the observer finds the contact and the stamp of
the first command that the reaction changes, as `feedforward` reports them, and between the
arrivals of both messages in this process.

    python benchmarks/reaction.py [PUSHES, default 20]
"""

import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / 'test'))
from closed_loop import ClosedLoop
from geometry_msgs.msg import WrenchStamped
from ros_world import World, trajectory
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

import robodyn_ros as rd
from robodyn_interfaces.msg import Contact
from robodyn_ros.nodes.fast_path import DEPTH, FastSubscriptions
from robodyn_ros.nodes.processes import NodeProcess
from robodyn_ros.nodes.stamps import nanoseconds

POSE = np.array([0.2, 0.5, -0.6])
TEXT = rd.load_model('urdf/articulated_3r.urdf.xacro').description.urdf


class Arrivals:
    """Stamps and arrival times of contacts and torques."""

    def __init__(self, world):
        self.contacts, self.torques = [], []
        self._fast = FastSubscriptions(world.node, lambda topic, error: print(topic, error))
        self._fast.add(Contact, 'observer/contact', self._on_contact, DEPTH)
        self._fast.add(JointState, 'feedforward/torque', self._on_torque, DEPTH)
        self._fast.start()

    def _on_contact(self, message):
        if message.state == Contact.ACCIDENTAL:
            self.contacts.append((nanoseconds(message.header.stamp) * 1e-9, time.monotonic()))

    def _on_torque(self, message):
        self.torques.append((nanoseconds(message.header.stamp) * 1e-9, time.monotonic()))

    def close(self):
        """Stop listening."""
        self._fast.stop()


def push(world, force):
    message = WrenchStamped()
    message.header.frame_id = 'tip'
    message.wrench.force.z = force
    world.publish(WrenchStamped, 'simulator/push', message)


def acknowledge(world):
    """Acknowledge the last contact once it is over; moving to the pose may look like one."""
    def done():
        answer = world.call(Trigger, 'feedforward/acknowledge_contact', Trigger.Request())
        return answer.success or 'no contact' in answer.message
    world.wait(done, 'the acknowledgement', 20.0)


def trial(world, arrivals):
    """Return the delay between stamps and between arrivals, s."""
    acknowledge(world)
    message = trajectory(('waist', 'shoulder', 'elbow'), [
        (0.0, POSE, 0 * POSE, 0 * POSE), (1.0, POSE, 0 * POSE, 0 * POSE)])
    world.publish(JointTrajectory, 'feedforward/reference', message)
    world.spin(1.0)
    before = world.count('feedforward', 'contact')
    arrivals.contacts.clear()
    arrivals.torques.clear()
    push(world, -30.0)
    world.wait(lambda: arrivals.contacts, 'a contact', 10.0)
    push(world, 0.0)
    world.wait(lambda: world.count('feedforward', 'contact') > before, 'the reaction', 10.0)
    world.spin(1.5)  # until the diagnostics tell the delay
    delay = float(world.diagnostics['feedforward']['reaction_delay'])
    stamp, heard = arrivals.contacts[0]
    changed = [at for one, at in arrivals.torques if one >= stamp + delay - 1e-7][0]
    return delay, changed - heard


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    world = World()
    observer = NodeProcess('observer', '--ros-args', '-p', 'contact_thresholds:=[4.0]', '-p',
                           'root:=""')
    loop = ClosedLoop(world, TEXT, lock_step=False, simulator=('rate:=1000.0', 'brakes:=true'),
                      controller=('mode:=feedforward_pd', 'on_contact:=yield', 'hold:=600.0'))
    try:
        world.wait_for_model('observer')
        loop.begin(POSE)
        arrivals = Arrivals(world)
        world.spin(2.0)
        found = np.array([trial(world, arrivals) for _ in range(count)]) * 1e3
        for name, row in zip(('stamps', 'arrivals'), found.T, strict=True):
            print(f'contact to changed command, {name}: median {np.median(row):.2f} ms, '
                  f'90 % {np.quantile(row, 0.9):.2f} ms, most {row.max():.2f} ms ({count} pushes)')
        arrivals.close()
    except AssertionError as error:
        raise SystemExit(f'{error}: {world.diagnostics}') from None
    finally:
        loop.__exit__()
        observer.stop()
        world.close()


if __name__ == '__main__':
    main()
