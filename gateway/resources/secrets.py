"""Sensitive values as they are delivered, and the data keys that they are sealed under."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from gateway.resources.base import Resource


class DeliveredSecret(Resource):
    """A sensitive value; `path` (JSON pointer) is its place in the arguments or the answer.

    SHA-256 of the nonce's bytes followed by the value's canonical JSON is the commitment at that place.
    """

    path: str
    handle: str
    nonce: str
    value: Any


class DeliveredSecrets(Resource):
    """The answer to an env_var request, for one attempt."""

    request_id: str
    secrets: list[DeliveredSecret]
    cursor: str | None = None


class Erased(Resource):
    """The erasure of sensitive values, which can no longer be read; `erased` is their number."""

    call_id: str | None
    request_id: str | None
    erased: int
    cursor: str | None = None


class DataKey(Resource):
    """A key that sensitive values are sealed under; `wrapped_by` names the master key.

    `project` is the project of the values, `*` for the tenant: a key from before each project had its own.
    """

    name: str
    project: str
    made_at: datetime
    destroyed_at: datetime | None
    wrapped_by: str
    cursor: str | None = None
