"""Stamps of messages as whole nanoseconds."""

from __future__ import annotations

from typing import Any

BILLION = 1_000_000_000


def nanoseconds(stamp: Any) -> int:
    """Return a Time or Duration as ns."""
    return int(stamp.sec) * BILLION + int(stamp.nanosec)


def set_nanoseconds(stamp: Any, ns: int) -> None:
    """Make a Time or Duration say ns."""
    stamp.sec, stamp.nanosec = divmod(ns, BILLION)
