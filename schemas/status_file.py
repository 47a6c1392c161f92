"""A role's own word on how it is: a small JSON file for the supervisor and for people, replaced whole."""

import json
import os
import secrets
import time
from pathlib import Path
from typing import Any

from schemas.headers import rfc3339

# It runs and is connected, but does not do its work; `reason` says why.
STALLED = "stalled"


def write_status(path: str | Path | None, state: str, address: str | None = None, **facts: int | str) -> None:
    """Write `{"pid", "state", "address", "at", …}`; does nothing without a path.

    Args:
        path: the status file; None or "" where nobody asks.
        state: starting, ready, stalled or stopping.
        address: where the role listens, if it does.
        facts: more of what people may want to know; `reason` says why it is stalled.
    """
    if not path:
        return
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    at = rfc3339(time.time_ns() // 1_000_000)
    status = {"pid": os.getpid(), "state": state, "address": address, "at": at, **facts}
    fresh = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    fresh.write_text(json.dumps(status), encoding="utf-8")
    fresh.replace(target)


def read_status(path: Path) -> dict[str, Any] | None:
    """What a status file says; None where it is gone, is being replaced, or is no status file."""
    try:
        status = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return status if isinstance(status, dict) and isinstance(status.get("state"), str) else None
