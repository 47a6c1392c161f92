"""A role's status file: a small JSON file for the supervisor and for people, replaced as a whole."""

import json
import logging
import os
import secrets
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from host.json_files import read_json_file
from schemas.headers import rfc3339

logger = logging.getLogger(__name__)

# The role runs and is connected, but does not do its work; `reason` says why.
STALLED = "stalled"
READ_AGAIN_S = 0.01


def write_status(path: str | Path | None, state: str, address: str | None = None, **facts: Any) -> None:
    """Write `{"pid", "state", "address", "at", …}`; does nothing without a path.

    A file that cannot be replaced (on a full disk) does not end the process: the old file is overwritten, which needs
    no more space. If even that fails, the file is touched, so that its age shows that the process lives, and `at`
    that the contents are old.

    Args:
        path: the status file; None or "" for none.
        state: starting, ready, stalled or stopping.
        address: the address on which the role listens, if it does.
        facts: more fields; `reason` says why the role is stalled.
    """
    if not path:
        return
    target = Path(path)
    at = rfc3339(time.time_ns() // 1_000_000)
    status = {"pid": os.getpid(), "state": state, "address": address, "at": at, **facts}
    text = json.dumps(status)
    fresh = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(target)
    except OSError as error:
        logger.warning("the status file %s cannot be written: %s", target, error.strerror or error)
        with suppress(OSError):
            fresh.unlink(missing_ok=True)
        with suppress(OSError):
            _write_over(target, text)


def _write_over(target: Path, text: str) -> None:
    descriptor = os.open(target, os.O_WRONLY)
    try:
        # In one write and never shorter than before, so that a concurrent reader finds no rest of the old text.
        os.pwrite(descriptor, text.encode().ljust(os.fstat(descriptor).st_size), 0)
    except OSError:
        os.utime(descriptor)
    finally:
        os.close(descriptor)


def read_status(path: Path) -> dict[str, Any] | None:
    """The contents of a status file, and its age as `age_s`; None if it is missing, being replaced, or invalid."""
    try:
        status = _json(path)
        age_s = time.time() - path.stat().st_mtime
    except (OSError, ValueError):
        return None
    if not isinstance(status, dict) or not isinstance(status.get("state"), str):
        return None
    return {**status, "age_s": max(0.0, age_s)}


def _json(path: Path) -> Any:
    try:
        return read_json_file(path)
    except ValueError:
        # It may be being overwritten at this moment.
        time.sleep(READ_AGAIN_S)
        return read_json_file(path)
