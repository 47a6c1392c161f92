"""Sensitive values as they are handed over, and the data keys that they are sealed under."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from gateway.resources.base import Resource


class DeliveredSecret(Resource):
    """A sensitive value: `path` (JSON pointer) says where it belongs.

    SHA-256 of the nonce's bytes and then the value's canonical JSON is the commitment that stands there.
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
    """Sensitive values that nobody can have any more; `erased` is how many there were."""

    call_id: str | None
    request_id: str | None
    erased: int
    cursor: str | None = None


class DataKey(Resource):
    """A key that sensitive values are sealed under; `wrapped_by` names the master key.

    `project` is whose values, `*` for the tenant's: one that was made before each project had its own.
    """

    name: str
    project: str
    made_at: datetime
    destroyed_at: datetime | None
    wrapped_by: str
    cursor: str | None = None
