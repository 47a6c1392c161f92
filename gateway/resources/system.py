"""The installation itself: its components, its health, its schema registry."""

from __future__ import annotations

from datetime import datetime

from gateway.resources.base import Resource


class Component(Resource):
    """A part of the installation and how it was at a moment.

    `pid` is null where it is no process of ours. It and `address` are null for all but an admin of the
    installation's own tenant.
    """

    name: str
    pid: int | None
    state: str
    address: str | None
    at: datetime
    reason: str | None = None


class Health(Resource):
    """Whether the process lives, or serves."""

    status: str


class RegistryError(Resource):
    """An error as a schema registry says it."""

    error_code: int
    message: str
