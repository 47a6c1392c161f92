"""Why the embedded broker ended: its log, read for the causes that an operator can do something about."""

from __future__ import annotations

from pathlib import Path

from ops.errors import DataDirectoryInUseError, DiskFullError, KafkaFailedError, OpsError, PortTakenError
from ops.kafka.settings import Layout

TAIL_BYTES = 64 * 1024


def explain(layout: Layout) -> OpsError:
    """The error that says what to do about a broker that ended, or did not become ready."""
    said = _tail(layout.output) + _tail(layout.log)
    if "No space left on device" in said:
        return DiskFullError(
            f"The disk that holds {layout.root} is full: free space and start again, "
            "nothing acknowledged is lost."
        )
    if "Address already in use" in said or "BindException" in said:
        return PortTakenError(
            "A port that Kafka was to listen on is taken: start again, or choose another port."
        )
    if "Failed to acquire lock" in said:
        return DataDirectoryInUseError(
            f"Another Kafka runs on {layout.data}: stop it, or choose another --data-dir."
        )
    return KafkaFailedError(
        f"The embedded Kafka did not start: read {layout.log} and {layout.output} for the cause."
    )


def _tail(path: Path) -> str:
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - TAIL_BYTES))
        return file.read().decode("utf-8", "replace")
