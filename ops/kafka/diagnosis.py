"""Why the embedded broker ended: its log, read for the causes that an operator can do something about."""

from __future__ import annotations

import re
from pathlib import Path

from ops.errors import (
    DataDirectoryInUseError,
    DataDirectoryUnusableError,
    DiskFullError,
    KafkaFailedError,
    OpsError,
    PortTakenError,
)
from ops.kafka.settings import Layout

TAIL_BYTES = 64 * 1024
LINE_KEPT = 300
_TROUBLE = re.compile(r"\b(WARN|ERROR|FATAL)\b|(Exception|Error)\b")


def explain(layout: Layout, waited_s: float | None = None) -> OpsError:
    """The error that says what to do about a broker that ended, or did not become ready.

    Args:
        layout: its files.
        waited_s: how long it was waited for, where it still runs and does not serve; None where it ended.
    """
    said = _tail(layout.output) + _tail(layout.log)
    if "No space left on device" in said:
        return DiskFullError(
            f"The disk that holds {layout.root} is full: free space and start again, "
            "nothing acknowledged is lost."
        )
    if "Address already in use" in said or "BindException" in said:
        return PortTakenError(
            "A port that Kafka was to listen on was taken while it started: start again, and it takes one that is "
            "free (--port is the gateway's and does not change this)."
        )
    if "Failed to acquire lock" in said:
        return DataDirectoryInUseError(
            f"Another Kafka runs on {layout.data}: stop it, or choose another --data-dir."
        )
    if "Read-only file system" in said:
        return DataDirectoryUnusableError(
            f"{layout.root} is on a read-only file system: make it writable, or choose another --data-dir."
        )
    what = "ended while it started" if waited_s is None else f"does not serve after {waited_s:.0f} s"
    files = f"{layout.log} and {layout.output}"
    if trouble := _last_trouble(said):
        cause = f"read {files} for the cause; the last error is: {trouble}"
        # A machine with much to do says such things too.
        slow = "it may only be slow, and starting again loses nothing: try once more; if it fails again, "
        advice = cause if waited_s is None else slow + cause
    elif waited_s is None:
        advice = f"{files} show no error, so something else ended it: check for a lack of memory"
    else:
        advice = f"{files} show no error, so it may only be slow: start again when this machine is less busy"
    return KafkaFailedError(f"The embedded Kafka did not start: it {what}; {advice}.")


def _last_trouble(said: str) -> str:
    """The last line that tells of trouble: the JVM's own remarks at every start do not."""
    found = [line.strip() for line in said.splitlines() if _TROUBLE.search(line)]
    return found[-1][:LINE_KEPT] if found else ""


def _tail(path: Path) -> str:
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - TAIL_BYTES))
        return file.read().decode("utf-8", "replace")
