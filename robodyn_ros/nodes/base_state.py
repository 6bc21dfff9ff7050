"""Pose and twist of a floating base from nav_msgs/Odometry, or from TF and sensor_msgs/Imu."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import numpy as np
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

from robodyn_ros.model import LinkFrame, Model
from robodyn_ros.nodes.joint_states import StateError
from robodyn_ros.nodes.parameters import declare
from robodyn_ros.nodes.stamps import nanoseconds
from robodyn_ros.nodes.transforms import TransformTree, checked_pose
from robodyn_ros.observation.inertial import InertialMotion
from robodyn_ros.packages import package
from robodyn_ros.spatial import Array, rotation_from_quaternion

SENSOR = QoSProfile(depth=100, reliability=ReliabilityPolicy.BEST_EFFORT)
STATIC = QoSProfile(depth=100, reliability=ReliabilityPolicy.RELIABLE,
                    durability=DurabilityPolicy.TRANSIENT_LOCAL)
UNKNOWN = -1.0  # first covariance of what an IMU does not measure (sensor_msgs/Imu)

Topic = tuple[Any, str, Callable[[Any], None], QoSProfile]


class BaseSource(Protocol):
    """What measures the state of a floating base."""

    def topics(self) -> list[Topic]:
        """Return type, name, callback and quality of service of each topic."""

    def follow(self, model: Model) -> None:
        """Begin again with a new model."""

    def at(self, stamp: Any) -> tuple[Array, Array]:
        """Return pose, shape (7,), and twist, shape (6,), for the stamp of a joint state.

        Raises
        ------
        StateError
            There is no measurement of this time.
        """


def declare_base(node: Any) -> None:
    """Declare the parameters of a floating base."""
    declare(node, 'odometry_topic', '', 'topic of nav_msgs/Odometry with the pose and the twist '
            'of a floating base; empty: see imu_topic', read_only=True)
    declare(node, 'imu_topic', '', 'topic of sensor_msgs/Imu on a floating base, whose pose is '
            'that of TF; with odometry_topic empty as well, the base is fixed', read_only=True)
    declare(node, 'world_frame', 'odom', 'with imu_topic, the frame of TF in which the pose of '
            'the base is given; empty: only the orientation that the IMU measures is known',
            read_only=True)
    declare(node, 'imu_bandwidth', 2.0, 'frequency below which TF determines the velocity of the '
            'base, and above which the accelerometers do, Hz', range_=(0.01, 100.0),
            read_only=True)
    declare(node, 'odometry_timeout', 0.1, 'longest time between an odometry or IMU message and a '
            'joint state, s', range_=(0.0, 10.0), read_only=True)


def base_problem(values: dict[str, Any]) -> str | None:
    """Return what is wrong with the parameters of a floating base, or None."""
    if values.get('odometry_topic') and values.get('imu_topic'):
        return ('odometry_topic and imu_topic are both given; valid: one of them, since odometry '
                'contains the twist')
    return None


def base_source(node: Any) -> BaseSource | None:
    """Return what measures the base of a node's robot; None: the base is fixed."""
    value = {name: node.get_parameter(name).value for name in (
        'odometry_topic', 'imu_topic', 'world_frame', 'imu_bandwidth', 'odometry_timeout')}
    timeout = round(value['odometry_timeout'] * 1e9)
    if value['odometry_topic']:
        return OdometryBase(value['odometry_topic'], timeout, node.warn)
    if value['imu_topic']:
        return InertialBase(value['imu_topic'], value['world_frame'], value['imu_bandwidth'],
                            timeout, node.warn)
    return None


class OdometryBase:
    """The last pose and twist that odometry measured.

    Parameters
    ----------
    topic : str
        Topic of nav_msgs/Odometry.
    timeout : int
        Longest time between an odometry message and a joint state, ns.
    warn : callable
        Called as ``warn(kind, text)`` for messages that cannot be used.
    """

    def __init__(self, topic: str, timeout: int, warn: Callable[[str, str], None]):
        self._topic, self._timeout, self._warn = topic, timeout, warn
        self._model: Model | None = None
        self._stamp: int | None = None
        self._pose, self._twist = np.zeros(7), np.zeros(6)

    def topics(self) -> list[Topic]:
        """Return the topic of odometry."""
        return [(package('nav_msgs.msg').Odometry, self._topic,
                 _reported(self._read, 'odometry', self._warn), SENSOR)]

    def follow(self, model: Model) -> None:
        """Expect the odometry of the model's root link, or of a link fixed to it."""
        self._model, self._stamp = model, None

    def _read(self, message: Any) -> None:
        """Keep the state in an Odometry message."""
        if self._model is None:
            return
        frame = frame_on_base(self._model, message.child_frame_id)
        place, turn = message.pose.pose.position, message.pose.pose.orientation
        linear, angular = message.twist.twist.linear, message.twist.twist.angular
        pose = np.array([place.x, place.y, place.z, turn.x, turn.y, turn.z, turn.w])
        twist = np.array([linear.x, linear.y, linear.z, angular.x, angular.y, angular.z])
        checked_pose(twist, pose[3:])
        pose[3:] = checked_pose(pose[:3], pose[3:])
        self._pose, self._twist = frame.motion_of_body(pose, twist)
        self._stamp = nanoseconds(message.header.stamp)

    def at(self, stamp: Any) -> tuple[Array, Array]:
        """Return pose and twist for the stamp of a joint state."""
        _check_age('odometry', self._stamp, stamp, self._timeout)
        return self._pose, self._twist


class InertialBase:
    """Pose from TF, twist from an inertial measurement unit and TF.

    Parameters
    ----------
    topic : str
        Topic of sensor_msgs/Imu, whose frame must be fixed to the base.
    world : str
        Frame in which the pose is given; '': no pose is measured.
    bandwidth : float
        See `InertialMotion`, Hz.
    timeout, warn
        See `OdometryBase`.
    """

    def __init__(self, topic: str, world: str, bandwidth: float, timeout: int,
                 warn: Callable[[str, str], None]):
        self._topic, self._world, self._bandwidth = topic, world, bandwidth
        self._timeout, self._warn = timeout, warn
        self._frames = TransformTree()
        self._model: Model | None = None
        self._motion: InertialMotion | None = None
        self._unit = ''
        self._start = 0
        self._stamp: int | None = None

    def topics(self) -> list[Topic]:
        """Return the topics of the unit and of TF."""
        imu: Topic = (package('sensor_msgs.msg').Imu, self._topic,
                      _reported(self._read_imu, self._topic, self._warn), SENSOR)
        if not self._world:
            return [imu]
        message = package('tf2_msgs.msg').TFMessage
        return [imu, *((message, topic, _reported(
            partial(self._read_frames, static=static), topic, self._warn), quality)
            for topic, static, quality in (('/tf', False, SENSOR), ('/tf_static', True, STATIC)))]

    def follow(self, model: Model) -> None:
        """Begin again with a new model; what is known of TF is kept."""
        self._motion, self._stamp, self._model = None, None, model

    def _read_frames(self, message: Any, static: bool) -> None:
        try:
            self._frames.read(message, static)
        finally:
            self._correct()

    def _correct(self) -> None:
        """Correct the motion by the newest pose of the root link."""
        model, motion = self._model, self._motion
        if model is None or motion is None:
            return
        found = self._frames.pose(model.description.root, self._world)
        if found is not None:
            stamp, rotation, position = found
            motion.correct((stamp - self._start) * 1e-9, rotation, position)

    def _read_imu(self, message: Any) -> None:
        """Take a measurement of the unit."""
        model = self._model
        if model is None:
            return
        turn, force = message.angular_velocity, message.linear_acceleration
        rates = np.array([turn.x, turn.y, turn.z])
        forces = np.array([force.x, force.y, force.z])
        if not np.isfinite(rates.sum() + forces.sum()):
            raise StateError('not_finite', 'the measurements are not finite')
        for values, what in ((message.angular_velocity_covariance, 'angular velocity'),
                             (message.linear_acceleration_covariance, 'acceleration')):
            if values[0] == UNKNOWN:
                raise StateError('not_measured', f'the unit does not measure the {what}')
        stamp, unit = nanoseconds(message.header.stamp), message.header.frame_id
        if self._motion is None or unit != self._unit:
            frame = frame_on_base(model, unit)
            self._motion = InertialMotion(model.gravity, frame, self._bandwidth)
            self._unit, self._start = unit, stamp
        self._motion.measure((stamp - self._start) * 1e-9, rates, forces)
        if not self._world:
            self._motion.orient(_orientation(message))
        self._stamp = stamp

    def at(self, stamp: Any) -> tuple[Array, Array]:
        """Return pose and twist for the stamp of a joint state."""
        _check_age('measurement of the IMU', self._stamp, stamp, self._timeout)
        motion = self._motion
        if motion is None or not motion.ready:
            raise StateError('no_pose', f'TF has not given two poses of the root link in '
                             f'{self._world!r} yet')
        return motion.state()


def frame_on_base(model: Model, name: str) -> LinkFrame:
    """Return the frame of a link that is fixed to the base; '': that of the base itself.

    Raises
    ------
    StateError
        There is no such link, or it moves on the base.
    """
    frame = model.link_frames.get(name or model.description.root)
    if frame is None or frame.body >= 0:
        fixed = [link for link, one in model.link_frames.items() if one.body < 0]
        raise StateError('wrong_frame', f'its frame is {name[:80]!r}; valid: a link that is fixed '
                         f'to the base: {", ".join(fixed[:20])}')
    return frame


def _orientation(message: Any) -> Array:
    """Return the orientation that an IMU measures, as a rotation matrix."""
    if message.orientation_covariance[0] == UNKNOWN:
        raise StateError('not_measured', 'the unit does not measure its orientation; valid: a '
                         'world_frame, so that TF gives it')
    turn = message.orientation
    return rotation_from_quaternion(checked_pose(
        np.zeros(3), np.array([turn.x, turn.y, turn.z, turn.w])))


def _check_age(what: str, last: int | None, stamp: Any, timeout: int) -> None:
    if last is None:
        raise StateError('no_odometry', f'no {what} has arrived yet')
    apart = nanoseconds(stamp) - last
    if abs(apart) > timeout:
        raise StateError('no_odometry', f'the last {what} is {abs(apart) * 1e-9:.3f} s '
                         f'{"older" if apart > 0 else "newer"} than the joint state; valid: at '
                         f'most {timeout * 1e-9:g} s')


def _reported(read: Callable[[Any], None], what: str, warn: Callable[[str, str], None],
              ) -> Callable[[Any], None]:
    """Return a callback that counts and reports what is wrong with a message."""
    def callback(message: Any) -> None:
        try:
            read(message)
        except StateError as error:
            warn(error.kind, f'{what}: {error}')

    return callback
