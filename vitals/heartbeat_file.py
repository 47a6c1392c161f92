"""Reads the heartbeats in the status files of this machine's processes."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from schemas.headers import epoch_ms
from vitals.heartbeat import SILENT_AFTER_S, Heartbeat, HeartbeatUnreadable, heartbeat_of
from vitals.status_file import read_status


def read_heartbeat(path: Path) -> tuple[Heartbeat, float] | None:
    """The heartbeat in a status file and its age in seconds; None if there is none."""
    status = read_status(path)
    if status is None:
        return None
    try:
        heartbeat = heartbeat_of({"role": path.stem, "name": path.stem, "host": "", **status})
    except HeartbeatUnreadable:
        return None
    age_s = float(status["age_s"])
    return _as_old_as_it_is(heartbeat, age_s), age_s


def _as_old_as_it_is(heartbeat: Heartbeat, age_s: float) -> Heartbeat:
    """A heartbeat, marked as outdated if its file was only touched since: then only the process's life is known."""
    old_s = _since_s(heartbeat.at) - age_s
    if old_s <= SILENT_AFTER_S:
        return heartbeat
    reason = f"its status file cannot be written: its status is {old_s + age_s:.0f} s old"
    return replace(heartbeat, reason=reason, kafka_age_ms=None)


def _since_s(at: str) -> float:
    """Seconds since a time; 0 if it is missing or malformed."""
    try:
        return time.time() - epoch_ms(at) / 1000
    except ValueError:
        return 0.0
