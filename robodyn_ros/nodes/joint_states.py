"""Reads JointState messages into arrays in the order of the model's joints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from robodyn_ros.model import Joints
from robodyn_ros.nodes.stamps import nanoseconds
from robodyn_ros.spatial import Array


class StateError(Exception):
    """A joint state cannot be used.

    Attributes
    ----------
    kind : str
        Kind of error, used for counting: ``missing_joint``, ``wrong_length``, ``not_finite`` or
        ``time_jump``.
    """

    def __init__(self, kind: str, text: str):
        self.kind = kind
        super().__init__(text)


class StateReader:
    """Reads the states of a model's joints.

    A message may name the joints in any order, and may contain other joints, which are ignored.
    """

    def __init__(self, joints: Joints):
        self._names = joints.joint_names
        self._seen: list[str] | None = None
        self._pick: Any = None
        self._last = -1

    def read(self, message: Any) -> tuple[Array, Array | None, Array | None]:
        """Return q, qd and measured torque, shape (n,) each; None for an empty field.

        Raises
        ------
        StateError
            The state cannot be used; the message names the joint or field.
        """
        now = nanoseconds(message.header.stamp)
        if now < self._last:
            back, self._last = (self._last - now) * 1e-9, now
            raise StateError('time_jump', f'stamp jumped back by {back:.3f} s')
        self._last = now
        names = message.name
        if names != self._seen:
            self._learn(names)
        count = len(names)
        position = self._take(message.position, count, 'position')
        if position is None:
            raise StateError('wrong_length', f'position has 0 numbers for {count} names')
        return (position, self._take(message.velocity, count, 'velocity'),
                self._take(message.effort, count, 'effort', finite=False))

    def read_on(self, message: Any, on_jump: Callable[[StateError], None],
                ) -> tuple[Array, Array | None, Array | None]:
        """Return the result of `read`; if the stamp jumped back, call ``on_jump`` and continue."""
        try:
            return self.read(message)
        except StateError as error:
            if error.kind != 'time_jump':
                raise
            on_jump(error)
            return self.read(message)  # the first state after the jump

    def _learn(self, names: list[str]) -> None:
        missing = [name for name in self._names if name not in names]
        if missing:
            raise StateError('missing_joint', f'joints {", ".join(map(repr, missing[:5]))} are '
                                              f'missing; it has {", ".join(names[:20])}')
        twice = {name for name in self._names if list(names).count(name) > 1}
        if twice:
            raise StateError('missing_joint', f'joint {sorted(twice)[0]!r} is named twice')
        pick = [list(names).index(name) for name in self._names]
        self._pick = None if pick == list(range(len(names))) else np.array(pick)
        self._seen = list(names)

    def _take(self, values: Any, count: int, field: str, finite: bool = True) -> Array | None:
        if not len(values):
            return None
        if len(values) != count:
            raise StateError('wrong_length',
                             f'{field} has {len(values)} numbers for {count} names')
        array = np.array(values) if self._pick is None else np.frombuffer(values)[self._pick]
        # the sum is finite only if all numbers are; it may also overflow
        if finite and not np.isfinite(array.sum()):
            bad = np.flatnonzero(~np.isfinite(array))
            if len(bad):
                raise StateError('not_finite', f'{field} of joint {self._names[int(bad[0])]!r} is '
                                               'not finite')
        return array
