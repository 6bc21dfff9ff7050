"""Measures tracking: sends a fast motion to `feedforward`, and prints the position errors.

python3 tracking_error.py arm.urdf.xacro

Requires running nodes: `ros2 launch robodyn_ros experiment.launch.py urdf:=arm.urdf.xacro`.
"""

import sys

import numpy as np
import rclpy
from rclpy.executors import SingleThreadedExecutor
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

import robodyn_ros as rd
from robodyn_ros.excitation import sample_motion
from robodyn_ros.nodes.stamps import nanoseconds, set_nanoseconds
from robodyn_ros.nodes.trajectories import trajectory_of

APPROACH, WAIT, PATIENCE = 3.0, 2.0, 300.0  # s

model = rd.load_model(sys.argv[1])
motion = sample_motion(model)
times, (q, qd, qdd, _) = motion.samples(100.0)

rclpy.init()
node = rclpy.create_node('tracking_error')
states = []
node.create_subscription(JointState, 'joint_states', states.append, 5000)
executor = SingleThreadedExecutor()
executor.add_node(node)
publisher = node.create_publisher(JointTrajectory, 'feedforward/reference', 1)


def positions(state):
    """Return the positions of a joint state in the order of the model."""
    known = dict(zip(state.name, state.position, strict=True))
    return np.array([known[name] for name in model.joint_names])


def spin_until(done, what):
    """Process messages until a condition holds."""
    begin = node.get_clock().now()
    while not done():
        executor.spin_once(timeout_sec=0.1)
        if (node.get_clock().now() - begin).nanoseconds > PATIENCE * 1e9:
            raise SystemExit(f'waited {PATIENCE:.0f} s for {what}')


spin_until(lambda: states and publisher.get_subscription_count(), 'the nodes')
# one quintic from the current position to the start of the motion, then the motion
still = np.zeros_like(q[:1])
path = np.vstack([positions(states[-1]), q])
message = trajectory_of(model.joint_names, np.concatenate([[0.0], APPROACH + times]), path,
                        np.vstack([still, qd]), np.vstack([still, qdd]))
start = nanoseconds(states[-1].header.stamp) + round(WAIT * 1e9)
set_nanoseconds(message.header.stamp, start)
publisher.publish(message)

begin = start + round(APPROACH * 1e9)
end = begin + round(times[-1] * 1e9)
spin_until(lambda: nanoseconds(states[-1].header.stamp) > end, 'the end of the motion')
errors = [positions(state) - motion.at((nanoseconds(state.header.stamp) - begin) * 1e-9).q
          for state in states if begin <= nanoseconds(state.header.stamp) <= end]
rms = np.sqrt(np.mean(np.square(errors), axis=0))
for joint, value in zip(model.joint_names, rms, strict=True):
    print(f'{joint}: {1e3 * value:.3f} mrad')
print(f'all: {1e3 * np.sqrt(np.mean(np.square(rms))):.3f} mrad')
rclpy.shutdown()
