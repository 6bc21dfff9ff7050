"""The base of `simulator` and `gazebo_bridge`: torques, services and parameters of a world."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import count
from typing import Any

import numpy as np
from geometry_msgs.msg import WrenchStamped
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64, Float64MultiArray
from std_srvs.srv import SetBool, Trigger

from robodyn_interfaces.srv import SetPayload
from robodyn_ros.errors import RobodynError, shown
from robodyn_ros.nodes.base import payload_of
from robodyn_ros.nodes.fast_path import DEPTH
from robodyn_ros.nodes.parameters import declare
from robodyn_ros.nodes.stamps import nanoseconds
from robodyn_ros.nodes.world_time import SENSORS, WorldTime
from robodyn_ros.simulation import SimulatedRobot, SimulationError
from robodyn_ros.simulation.watchdog import BRAKES_OPEN

NO_ROBOT = 'there is no robot yet'
DIVERGED = 'the motion has diverged; valid: ~/reset'


def topic_name(kind: str, name: str) -> str:
    """Return the part of a topic for a robot or a joint, whose name a topic may not allow.

    Characters other than letters, digits and underscores become underscores, and the kind is put
    before a name that begins with a digit: joint/joint_1 for a joint named 1.
    """
    allowed = re.sub(r'[^A-Za-z0-9_]', '_', name)
    return f'{kind}/{kind}_{allowed}' if allowed[:1].isdigit() else f'{kind}/{allowed}'


def force_topics(robot: str, joints: Sequence[str]) -> dict[str, str]:
    """Return the topics of the forces of a robot's joints, which all differ.

    Of joints whose names differ only in characters that topics do not allow, all but the first get
    a number; a name that a topic allows as it is comes first.
    """
    taken: dict[str, str] = {}
    for joint in sorted(joints, key=lambda name: topic_name('joint', name) != f'joint/{name}'):
        plain = f'{topic_name("model", robot)}/{topic_name("joint", joint)}'
        topic = next(name for k in count(1) if (
            name := f'{plain}{f"_{k}" if k > 1 else ""}/cmd_force') not in taken)
        taken[topic] = joint
    topics = {joint: topic for topic, joint in taken.items()}
    return {joint: topics[joint] for joint in joints}


class RobotWorld(WorldTime):
    """Torques in, measured joint states out; ~/set_payload loads the simulated robot.

    In real time a command applies for ``command_timeout`` of simulated time; then the torque is
    zero. In lock-step each vector of torques advances the world by one control cycle, so that the
    same commands give the same motion. ~/pause stops the world; a command that arrives meanwhile
    applies when it goes on. ~/step advances it by one cycle, during a pause as well. A stamped
    ~/torque answers the state with the same stamp; in lock-step, an answer that arrives after a
    reset or after another answer is ignored.

    ~/push lets a wrench act on the link that its frame names, at the link's origin in the root's
    axes, until another one comes; a zero wrench ends it.

    ~/links publishes the true poses of the links, without noise or delay.

    Subclasses create the robot in ``on_model`` and pass it to ``put_robot``.
    """

    _force_topics: tuple[str, ...] = ()  # set here, since a robot may be put before ``set_up``

    def check_parameters(self, changes: dict[str, Any]) -> str | None:
        """Check that a start position fits the robot."""
        robot = self.robot
        if 'start_position' in changes and robot is not None and len(
                changes['start_position']) not in (1, robot.n):
            return f'start_position has {len(changes["start_position"])} numbers; valid: 1, or ' \
                   f'{robot.n}: {", ".join(robot.joint_names)}'
        return None

    def set_up(self) -> None:
        """Create publishers, subscriptions and services."""
        super().set_up()
        serve = self.create_service, self.destroy_service
        self.keep(*serve, SetBool, '~/pause', self._on_pause)
        self.keep(*serve, Trigger, '~/reset', self._on_reset)
        self.keep(*serve, Trigger, '~/step', self._on_step)
        self.listen((Float64MultiArray, '~/commands', self._on_commands, DEPTH),
                    (JointState, '~/torque', self._on_torque, DEPTH),
                    (WrenchStamped, '~/push', self._on_push, DEPTH))

    def put_robot(self, robot: SimulatedRobot) -> None:
        """Start with a robot that is already in its world, and create the topics of its joints."""
        super().put_robot(robot)
        topics = force_topics(robot.true_model.name, robot.joint_names)
        if tuple(topics.values()) == self._force_topics:
            return
        self._force_topics = tuple(topics.values())
        for joint, topic in topics.items():
            plain = force_topics(robot.true_model.name, [joint])[joint]
            if topic != plain:
                first = next(name for name in topics if topics[name] == plain)
                self.report('warning', f'the joints {first!r} and {joint!r} would have the same '
                            f'topic {plain}; {joint!r} has {topic}')
        for place, topic in enumerate(self._force_topics):
            self.keep(self.create_subscription, self.destroy_subscription, Float64, topic,
                      lambda message, place=place: self._on_force(place, message), 10)

    def end(self) -> None:
        """Stop all threads and destroy the interfaces."""
        super().end()
        self._force_topics = ()

    # commands -------------------------------------------------------------------------------

    def _on_commands(self, message: Float64MultiArray) -> None:
        if self.robot is not None:
            self._take(np.array(message.data, np.float64), self.robot, 'commands')

    def _on_torque(self, message: JointState) -> None:
        robot = self.robot
        if robot is None:
            return
        given = dict(zip(message.name, message.effort, strict=False))
        if any(joint not in given for joint in robot.joint_names):
            missing = next(j for j in robot.joint_names if j not in given)
            self.warn('command_refused', f'torque of {missing!r} is missing')
            return
        self._take(np.array([given[joint] for joint in robot.joint_names]), robot, 'torque',
                   stamp=nanoseconds(message.header.stamp))

    def _on_force(self, place: int, message: Float64) -> None:
        robot = self.robot
        if robot is None or place >= robot.n:
            return
        torque = self.watchdog.command.copy()
        torque[place] = message.data
        self._take(torque, robot, robot.joint_names[place], cycle=False)

    def _take(self, torque: Any, robot: SimulatedRobot, what: str, cycle: bool = True,
              stamp: int = 0) -> None:
        """Apply a command, and in lock-step advance the world.

        Parameters
        ----------
        torque : ndarray, shape (n,)
            Torques, N m or N.
        robot : SimulatedRobot
            The robot for which they are meant.
        what : str
            What they are called in warnings.
        cycle : bool
            Whether they complete the command of a cycle; those of a single joint do not.
        stamp : int
            Stamp of the state that they answer, ns; 0: unknown.
        """
        if torque.shape != (robot.n,) or not np.isfinite(torque).all():
            self.warn('command_refused', f'{what} refused: {len(torque)} numbers, '
                      f'{shown(torque[:robot.n].tolist())}; valid: {robot.n} finite numbers')
            return
        answer = cycle and self.active and self.value('lock_step')
        with self.lock:
            if robot is not self.robot:
                return  # replaced meanwhile
            last = self.last_stamp
            late = answer and stamp and stamp != last
            if not late:
                self.watchdog.take(torque, robot.time)
                self.fresh = True
                self.delay.answer(stamp)
                self.counts['commands'] += 1
                self.waiting = self.waiting or answer
                self.answered = self.answered or (cycle and self.active)
                self._answers = bool(stamp)
        if late:
            self.warn('not_an_answer', f'torque with the stamp {stamp * 1e-9:.6f} s ignored: '
                      f'the last state has {last * 1e-9:.6f} s')
        elif answer:
            self._keep_pace()
            self.go_on()
        elif cycle:
            self.on_command()

    def on_command(self) -> None:
        """Called after a command in real time."""

    def _keep_pace(self) -> None:
        """Wait until the next cycle may come, in lock-step."""
        factor = self.value('real_time_factor')
        if factor:
            self.pacing.wait(1 / (factor * self.value('rate')))

    def _on_push(self, message: WrenchStamped) -> None:
        robot, force, moment = self.robot, message.wrench.force, message.wrench.torque
        push = getattr(robot, 'push', None)
        if push is None:
            self.warn('push_refused', 'only the robot of the node simulator can be pushed'
                      if robot is not None else NO_ROBOT)
            return
        try:
            with self.lock:
                push(message.header.frame_id, [force.x, force.y, force.z,
                                               moment.x, moment.y, moment.z])
            self.counts['pushes'] += 1
        except RobodynError as error:
            self.warn('push_refused', f'push refused: {error}')

    # services -------------------------------------------------------------------------------

    def on_pause(self, held: bool) -> None:
        """Called at the beginning and the end of a pause, with the lock held."""

    def on_reset(self) -> None:
        """Called after a reset, with the lock held."""

    async def _on_set_payload(self, request: SetPayload.Request,
                              response: SetPayload.Response) -> SetPayload.Response:
        robot = self.robot
        if robot is None:
            response.message = NO_ROBOT
            return response
        payload = payload_of(request)
        try:
            with self.lock:
                robot.attach(payload.link, payload.mass, payload.com, payload.inertia)
        except RobodynError as error:
            response.message = str(error)
            return response
        response.success = True
        response.message = f'{payload.mass} kg on {payload.link} of the simulated robot'
        response.model_version = self.keeper.running.version if self.keeper.running else 0
        return response

    def _on_pause(self, request: SetBool.Request,
                  response: SetBool.Response) -> SetBool.Response:
        if not request.data and self.diverged:
            response.message = DIVERGED
            return response
        with self.lock:
            self.held = request.data
            if self.robot is not None:
                self.on_pause(request.data)
        if self.active:
            self.go_on()
        response.success, response.message = True, 'paused' if request.data else 'running'
        return response

    def _on_reset(self, request: Trigger.Request,
                  response: Trigger.Response) -> Trigger.Response:
        robot = self.robot
        if robot is None:
            response.message = NO_ROBOT
            return response
        with self.lock:
            try:
                heard = self._restart(robot)
            except SimulationError as error:
                self.on_simulation_error(error)
                response.message = str(error)
                return response
            self.waiting = self.value('lock_step') and not heard
        self.go_on()
        response.success, response.message = True, 'at the start'
        return response

    def _restart(self, robot: SimulatedRobot) -> bool:
        """Return to the start; return whether a state was published there."""
        robot.reset(self.start_position(robot))
        self.watchdog.restart(robot.n)
        if self.diverged:
            self.held = self.diverged = False
        # controllers take no state twice: the stamp must differ from the last one
        heard = self.cycle(None) if self.last_stamp == 0 else self.publish(robot)
        self.on_reset()
        return heard

    def _on_step(self, request: Trigger.Request,
                 response: Trigger.Response) -> Trigger.Response:
        robot = self.robot
        if robot is None or not self.active:
            response.message = NO_ROBOT if robot is None else 'not active'
            return response
        if self.diverged:
            response.message = DIVERGED
            return response
        with self.lock:
            self.advance(self.watchdog.command)
            self.on_pause(self.held)
        response.success, response.message = True, f'{robot.time:.6f} s'
        return response


def declare_world_parameters(node: Any) -> None:
    """Declare the parameters of every simulated robot, on a node or on a recorder."""
    fixed: dict[str, Any] = {'read_only': True}
    declare(node, 'rate', 1000.0, 'rate of the control cycle: joint states out, torques in, Hz',
            range_=(1.0, 5000.0), **fixed)
    declare(node, 'timestep', 0.001, 'time step of the physics, s; at most one cycle',
            range_=(1e-5, 0.1), **fixed)
    declare(node, 'lock_step', False, 'whether the world advances only with commands and ~/step',
            **fixed)
    declare(node, 'publish_clock', True, 'publish /clock; where several robots are simulated in '
            'namespaces of their own, only one of them does', **fixed)
    declare(node, 'real_time_factor', 0.0, 'largest ratio of simulated time to the time of the '
            'wall clock in lock-step; 0: as fast as commands come', range_=(0.0, 1000.0))
    declare(node, 'truth_file', '', 'YAML with the differences of the true robot from its '
            'description; empty: none', **fixed)
    declare(node, 'start_position', [0.0], 'joint positions at start and ~/reset, rad or m; one '
            'number: all of them')
    declare(node, 'brakes', False, 'whether brakes hold the robot at the start until a command '
            f'comes, for at least {BRAKES_OPEN} s; not in lock-step')
    declare(node, 'command_timeout', 0.1, 'simulated time after which the torque is zero if no '
            'command comes, s; not in lock-step', range_=(0.001, 10.0))
    for name, description, most in SENSORS:
        declare(node, name, 0.0, description, range_=(0.0, most), **fixed)
    declare(node, 'effort_noise', [0.0], 'standard deviation of efforts, N m or N; one number, or '
            'one for each joint', **fixed)
    declare(node, 'seed', 0, 'seed of the random numbers', **fixed)
