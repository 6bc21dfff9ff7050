"""`Recorder`: writes messages to a rosbag2 bag that stays usable if its process is killed."""

from __future__ import annotations

import queue
import shutil
import sqlite3
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from robodyn_ros.packages import package

JOINT_STATES, MOTOR_STATES = '/joint_states', '/motor_states'
JOINT_STATE_TYPE = 'sensor_msgs/msg/JointState'
COMMIT_EVERY = 0.5  # s between commits, the most that is lost if the process is killed
MOST_WAITING = 20_000  # messages that may be queued for the disk, 20 s at 1 kHz
CLOSING = 30.0  # s, timeout for writing queued messages at the end


class Recorder:
    """Writes serialised messages to a bag (sqlite3) on a separate thread.

    Parameters
    ----------
    folder : Path
        Folder of the bag; it must not exist yet.
    topics : mapping of str to str
        Message type of each topic, for example ``sensor_msgs/msg/JointState``.

    Attributes
    ----------
    error : str or None
        The reason why recording has stopped, for example a full or slow disk. Messages that were
        written before remain readable.
    count : int
        Number of messages so far.
    """

    def __init__(self, folder: Path, topics: Mapping[str, str]):
        self.folder, self.count = folder, 0
        self.error: str | None = None
        self._topics = dict(topics)
        self._rosbag2 = package('rosbags.rosbag2')
        self._queue: queue.Queue[tuple[str, int, bytes] | None] = queue.Queue(MOST_WAITING)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def write(self, topic: str, when: int, message: bytes) -> None:
        """Queue a serialised message that arrived at a time (ns), without waiting for the disk."""
        if self.error is not None:
            return
        try:
            self._queue.put_nowait((topic, when, bytes(message)))
            self.count += 1
        except queue.Full:
            self.error = f'{self.folder}: the disk is too slow, {MOST_WAITING} messages wait'

    def close(self) -> None:
        """Write the queued messages and the metadata of the bag."""
        with suppress(queue.Full):
            self._queue.put(None, timeout=CLOSING)
        self._thread.join(timeout=CLOSING)

    def _run(self) -> None:
        writer = self._rosbag2.Writer(self.folder, version=9)
        try:
            store = _types()
            writer.open()
            connections = {topic: writer.add_connection(topic, kind, typestore=store)
                           for topic, kind in self._topics.items()}
            self._take(writer, connections)
            writer.close()
        except (OSError, sqlite3.Error) as error:
            self.error = f'{self.folder}: {getattr(error, "strerror", None) or error}'
            with suppress(Exception):
                writer.abort()  # what was committed remains
            self._discard()

    def _take(self, writer: Any, connections: Mapping[str, Any]) -> None:
        due = 0.0
        while True:
            with suppress(queue.Empty):
                entry = self._queue.get(timeout=COMMIT_EVERY)
                if entry is None:
                    return
                topic, when, message = entry
                writer.write(connections[topic], when, message)
            if time.monotonic() > due:
                writer.storage.conn.commit()
                due = time.monotonic() + COMMIT_EVERY

    def _discard(self) -> None:
        """Empty the queue after an error; nothing more is written."""
        with suppress(queue.Empty):
            while True:
                self._queue.get_nowait()


def _types() -> Any:
    typesys = package('rosbags.typesys')
    return typesys.get_typestore(typesys.Stores.ROS2_JAZZY)


def complete(folder: Path) -> int:
    """Add the missing metadata to a bag whose writer was killed.

    Such a bag contains all messages up to the last commit, but other tools cannot open it without
    its metadata.

    Parameters
    ----------
    folder : Path
        Folder of the bag; it is replaced as a whole.

    Returns
    -------
    int
        Number of messages in the bag.
    """
    fresh = folder.with_name(folder.name + '.complete')
    shutil.rmtree(fresh, ignore_errors=True)
    rosbag2 = package('rosbags.rosbag2')
    count, store = 0, _types()
    with rosbag2.Writer(fresh, version=9) as writer:
        for part in sorted(folder.glob('*.db3')):
            with rosbag2.Reader(part) as bag:
                connections = {c.id: writer.add_connection(c.topic, c.msgtype, typestore=store)
                               for c in bag.connections}
                for connection, when, message in bag.messages():
                    writer.write(connections[connection.id], when, message)
                    count += 1
    old = folder.with_name(folder.name + '.partial')
    folder.rename(old)
    fresh.rename(folder)
    database = folder / f'{fresh.name}.db3'
    metadata = folder / 'metadata.yaml'
    database.rename(folder / f'{folder.name}.db3')
    metadata.write_text(metadata.read_text().replace(database.name, f'{folder.name}.db3'))
    shutil.rmtree(old)
    return count
