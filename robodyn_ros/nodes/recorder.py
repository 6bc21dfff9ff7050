"""`Recorder`: messages into a rosbag2 bag that survives the death of its process."""

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

from rosbags.rosbag2 import Reader, Writer
from rosbags.typesys import Stores, get_typestore

COMMIT_EVERY = 0.5  # s: at most this much is lost where the process is killed


class Recorder:
    """Writes serialised messages to a bag (sqlite3), on a thread of its own.

    Parameters
    ----------
    folder : Path
        Of the bag; must not exist.
    topics : mapping of str to str
        Message type of each topic, for example ``sensor_msgs/msg/JointState``.

    Attributes
    ----------
    error : str or None
        Why nothing more is written, for example a full disk. What was written stays.
    count : int
        Messages taken so far.
    """

    def __init__(self, folder: Path, topics: Mapping[str, str]):
        self.folder, self.error, self.count = folder, None, 0
        self._topics = dict(topics)
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def write(self, topic: str, when: int, message: bytes) -> None:
        """Take a serialised message that arrived at a time (ns); never waits for the disk."""
        self.count += 1
        self._queue.put((topic, when, bytes(message)))

    def close(self) -> None:
        """Write what was taken, and the bag's metadata."""
        self._queue.put(None)
        self._thread.join(timeout=30.0)

    def _run(self) -> None:
        writer = Writer(self.folder, version=9)
        try:
            store = get_typestore(Stores.ROS2_JAZZY)
            writer.open()
            connections = {topic: writer.add_connection(topic, kind, typestore=store)
                           for topic, kind in self._topics.items()}
            self._take(writer, connections)
            writer.close()
        except (OSError, sqlite3.Error) as error:
            self.error = f'{self.folder}: {getattr(error, "strerror", None) or error}'
            with suppress(Exception):
                writer.abort()  # what was committed stays

    def _take(self, writer: Any, connections: Mapping[str, Any]) -> None:
        due, entry = 0.0, ()
        while entry is not None:
            with suppress(queue.Empty):
                entry = self._queue.get(timeout=COMMIT_EVERY)
                if entry:
                    topic, when, message = entry
                    writer.write(connections[topic], when, message)
            if time.monotonic() > due:
                writer.storage.conn.commit()
                due = time.monotonic() + COMMIT_EVERY


def complete(folder: Path) -> int:
    """Give a bag that was cut off its metadata; return how many messages it has.

    The messages of a bag whose writer was killed are all there up to the last commit; other tools
    miss the metadata.
    """
    fresh = folder.with_name(folder.name + '.complete')
    shutil.rmtree(fresh, ignore_errors=True)
    count, store = 0, get_typestore(Stores.ROS2_JAZZY)
    with Writer(fresh, version=9) as writer:
        for part in sorted(folder.glob('*.db3')):
            with Reader(part) as bag:
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
