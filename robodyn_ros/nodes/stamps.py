"""Stamps of messages as whole nanoseconds."""

from __future__ import annotations

from typing import Any

BILLION = 1_000_000_000
LATEST = (2**31 - 1) * BILLION + BILLION - 1  # ns: seconds are 32-bit integers


def nanoseconds(stamp: Any) -> int:
    """Return a Time or Duration as ns."""
    return int(stamp.sec) * BILLION + int(stamp.nanosec)


def set_nanoseconds(stamp: Any, ns: int) -> None:
    """Set a Time or Duration to ns, or to the latest time that it can hold."""
    stamp.sec, stamp.nanosec = divmod(min(ns, LATEST), BILLION)
