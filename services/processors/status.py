"""The role's own word on how it is, for the supervisor: a small JSON file, replaced whole."""

import json
import os
import time
from pathlib import Path


def write_status(path: Path | None, state: str) -> None:
    """Say how the process is.

    Args:
        path: the status file; None says nothing.
        state: `starting` or `ready`.
    """
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    fresh.write_text(json.dumps({"pid": os.getpid(), "state": state, "address": None, "at": time.time()}))
    fresh.replace(path)
