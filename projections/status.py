"""The projector's own word on how it is: a small JSON file, replaced whole."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path


def write_status(path: str, state: str, **facts: int) -> None:
    """Write `{"pid", "state", "address", "at", …}`; does nothing without a path.

    Args:
        path: the status file, or "" where nobody asks.
        state: starting, ready or stopping.
        facts: more of what people may want to know.
    """
    if not path:
        return
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    row = {"pid": os.getpid(), "state": state, "address": None, "at": datetime.now(UTC).isoformat(), **facts}
    fresh = target.with_name(f".{target.name}.{os.getpid()}")
    fresh.write_text(json.dumps(row))
    fresh.replace(target)
