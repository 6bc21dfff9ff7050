"""A process that sends forces and requests to Gazebo, and zero forces when its parent ends.

A request of the Python bindings does not release the interpreter while it waits for the answer,
and a subscription in the same process then prevents the answer from arriving. Requests are
therefore made in a separate process. Gazebo applies the last force that it has received in every
physics step, indefinitely. When the parent ends for any reason, its end of the pipe closes, and
this process sends zero forces.

Each line of the input is a command in JSON, and each answer is a line of JSON.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from robodyn_ros.simulation.gazebo import confirmation_topics, force_topic, gazebo_topic
from robodyn_ros.simulation.gazebo_bindings import GazeboError, load_bindings

PATIENCE = 5000  # ms, timeout for the answer of Gazebo to a request
SILENCE = 2.0  # s without a reaction, after which the process counts as suspended
LINGER = 0.2  # s that the process waits until its last forces have been sent


class GazeboWriter:
    """Starts the process, and communicates with it.

    Parameters
    ----------
    world, model : str
        Names of the world and of the robot in Gazebo.
    joints : sequence of str
        Joints that take forces, in the order of all forces.
    """

    def __init__(self, world: str, model: str, joints: Sequence[str]):
        load_bindings()
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, '-m', 'robodyn_ros.simulation.gazebo_writer', world, model, *joints],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, start_new_session=True)
        assert self._process.stdin is not None and self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout
        os.set_blocking(self._input.fileno(), False)

    def check(self) -> None:
        """Check that the process reacts; one that is suspended is killed.

        Raises
        ------
        GazeboError
            The process has ended or is suspended.
        """
        self.ask('ping', patience=SILENCE)

    def send(self, forces: Sequence[float], confirm: bool = False) -> None:
        """Send forces, one for each joint, N m or N; for `confirm` see `confirmation_topics`.

        Raises
        ------
        GazeboError
            The process has ended.
        """
        with self._lock:
            self._write({'do': 'forces', 'forces': list(forces), 'confirm': confirm})

    def ask(self, do: str, *, patience: float = PATIENCE * 1e-3 + SILENCE, **details: Any) -> Any:
        """Send a command to the process, and return its answer, which must come in time.

        Raises
        ------
        GazeboError
            The process has ended or is suspended, or reports an error.
        """
        with self._lock:
            self._write({'do': do, **details})
            line = self._read_line(patience)
        if not line:
            raise GazeboError('the process that writes to Gazebo has ended with '
                              f'{self._process.wait()}')
        answer = json.loads(line)
        if 'error' in answer:
            raise GazeboError(answer['error'])
        return answer['result']

    def close(self) -> None:
        """Send zeros and end the process."""
        with suppress(OSError):
            self._input.close()
        try:
            self._process.wait(LINGER + 1.0)
        except subprocess.TimeoutExpired:  # it waits for an answer, but Gazebo has ended
            self._process.kill()
            self._process.wait()
        self._output.close()

    def _write(self, command: dict[str, Any]) -> None:
        rest = (json.dumps(command) + '\n').encode()
        try:
            while rest:
                self._wait(self._input.fileno(), select.POLLOUT, SILENCE)
                rest = rest[os.write(self._input.fileno(), rest):]
        except (OSError, ValueError):
            raise GazeboError('the process that writes to Gazebo has ended') from None

    def _read_line(self, patience: float) -> bytes:
        line, end = b'', time.monotonic() + patience
        try:
            while not line.endswith(b'\n'):
                self._wait(self._output.fileno(), select.POLLIN, end - time.monotonic())
                part = os.read(self._output.fileno(), 1 << 16)
                if not part:
                    return b''
                line += part
        except (OSError, ValueError):  # closed by another thread
            return b''
        return line

    def _wait(self, file: int, event: int, patience: float) -> None:
        """Wait for the process; kill it if it does not react, since it may hold back forces."""
        ready = select.poll()
        ready.register(file, event)
        if not ready.poll(max(patience, 0.0) * 1e3):
            self._process.kill()
            raise GazeboError('the process that writes to Gazebo does not react')


class _Writer:
    """The commands of the process."""

    def __init__(self, world: str, model: str, joints: Sequence[str]):
        self._gazebo = load_bindings()
        self._node = self._gazebo.Node()
        self._world, self._model = gazebo_topic(f'/world/{world}'), model
        double = self._gazebo.messages['Double']
        self._publishers = [self._node.advertise(force_topic(model, joint), double)
                            for joint in joints]
        sent, _ = confirmation_topics(model)
        self._sent = self._node.advertise(sent, self._gazebo.messages['Empty'])

    def forces(self, forces: Sequence[float], confirm: bool = False) -> None:
        """Send forces, and request their confirmation on a topic."""
        for publisher, force in zip(self._publishers, forces, strict=True):
            publisher.publish(self._gazebo.messages['Double'](data=force))
        if confirm:
            self._sent.publish(self._gazebo.messages['Empty']())

    def zeros(self) -> None:
        self.forces([0.0] * len(self._publishers))

    def ping(self) -> bool:
        """Answer, which shows that the process reacts."""
        return True

    def serves(self) -> bool:
        """Return whether the world exists."""
        services = self._node.service_list()
        return all(f'{self._world}/{name}' in services
                   for name in ('control', 'create', 'set_physics'))

    def connected(self) -> bool:
        """Return whether the robot in the world is subscribed to all forces."""
        return all(publisher.has_connections() for publisher in (*self._publishers, self._sent))

    def exists(self) -> bool:
        """Return whether the robot is in the world."""
        scene = self._request('scene/info', 'Empty', 'Scene')
        return any(model.name == self._model for model in scene.model)

    def physics(self, timestep: float, real_time_factor: float) -> bool:
        """Set the time step of the physics (s) and the real-time factor."""
        return self._request('set_physics', 'Physics', max_step_size=timestep,
                             real_time_factor=real_time_factor).data

    def create(self, text: str) -> bool:
        """Request that the robot is spawned.

        The service create/blocking would wait for completion, but it crashes the server if the
        world is reset meanwhile.
        """
        return self._request('create', 'EntityFactory', sdf=text, name=self._model).data

    def remove(self) -> bool:
        """Request that the robot is removed from the world."""
        return self._request('remove', 'Entity', name=self._model,
                             type=self._gazebo.messages['Entity'].MODEL).data

    def control(self, pause: bool, steps: int = 0, rewind: bool = False) -> bool:
        """Pause or run the world, advance it by steps, or rewind it to time 0."""
        options = {'reset': self._gazebo.messages['WorldReset'](all=True)} if rewind else {}
        return self._request('control', 'WorldControl', pause=pause, multi_step=steps,
                             **options).data

    def _request(self, service: str, kind: str, answer: str = 'Boolean', **fields: Any) -> Any:
        messages = self._gazebo.messages
        done, result = self._node.request(f'{self._world}/{service}', messages[kind](**fields),
                                          messages[kind], messages[answer], PATIENCE)
        if not done:
            raise GazeboError(f'Gazebo did not answer {self._world}/{service} within '
                              f'{PATIENCE * 1e-3:g} s')
        return result


def main(arguments: Sequence[str]) -> None:
    """Execute commands until the input ends, then send zero forces."""
    world, model, *joints = arguments
    writer = _Writer(world, model, joints)
    try:
        for line in sys.stdin:
            command = json.loads(line)
            do = command.pop('do')
            if do == 'forces':
                writer.forces(**command)
                continue
            try:
                answer = {'result': getattr(writer, do)(**command)}
            except GazeboError as error:
                answer = {'error': str(error)}
            print(json.dumps(answer), flush=True)
    except BrokenPipeError:  # the parent has ended
        sys.stdout = None  # type: ignore[assignment]
    finally:
        writer.zeros()
        time.sleep(LINGER)


if __name__ == '__main__':
    main(sys.argv[1:])
