"""Identifiers: derived ones, so that a restarted process uses the same ids, and random ones."""

from __future__ import annotations

import itertools
import json
import os
import re
import uuid
from urllib.parse import quote

NAMESPACE = uuid.UUID("5b0a1f6e-2f0e-5c3b-9a44-70d1c2b0e6aa")
_CLIENT_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")


class InvalidId(ValueError):
    """A client may not choose this id."""


def call_id(execution_id: str, tool: str, arguments_digest: str, occurrence: int) -> str:
    """The default id of a call: uuid5 of execution, tool, arguments' digest and occurrence.

    Args:
        execution_id: the run.
        tool: its name.
        arguments_digest: SHA-256 of the canonical arguments.
        occurrence: 0 for the first such call of the run, 1 for the second.
    """
    parts = ["call", execution_id, tool, arguments_digest, occurrence]
    return str(uuid.uuid5(NAMESPACE, json.dumps(parts, separators=(",", ":"))))


def new_id() -> str:
    """A random id."""
    return str(uuid.uuid4())


def check_id(text: str, what: str) -> str:
    """The id itself, if a client may choose it.

    Raises:
        InvalidId: it is not up to 128 of `A-Za-z0-9._:-`.
    """
    if _CLIENT_ID.fullmatch(text) is None:
        raise InvalidId(f"{what} {text!r} must be 1 to 128 of A-Z a-z 0-9 . _ : -")
    return text


def check_chosen_id(text: str, what: str) -> str:
    """The id itself, if a client may choose it for something new.

    Raises:
        InvalidId: it is not up to 128 of `A-Za-z0-9._:-`, or is `.` or `..`, which mean other places in a URL.
    """
    if check_id(text, what) in (".", ".."):
        raise InvalidId(f"{what} {text!r} must be neither . nor ..")
    return text


def segment(text: str) -> str:
    """A name as one segment of a URL: also `.` and `..`, which would otherwise mean other places."""
    return "%2E" * len(text) if text in (".", "..") else quote(text, safe="")


class _Attempts:
    """Attempt ids: random per process, and again for every try to run something.

    Two threads that run the same call are two attempts, and so are a process and its fork; otherwise both
    would get the grant.
    """

    def __init__(self) -> None:
        self._pid = -1
        self._process = ""
        self._count = itertools.count()

    def next(self) -> str:
        if self._pid != os.getpid():
            self._process, self._count, self._pid = new_id(), itertools.count(), os.getpid()
        return f"{self._process}.{next(self._count)}"


_ATTEMPTS = _Attempts()


def attempt_id() -> str:
    """A fresh attempt id. It is never stored and never derived from the call (docs/sdk.md)."""
    return _ATTEMPTS.next()
