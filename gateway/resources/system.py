"""The installation itself: its components, its health, its schema registry."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import ConfigDict, Field

from gateway.resources.base import OPEN, Resource


class Component(Resource):
    """A part of the installation and how it was at a moment.

    `state` is starting, ready, stalled (it lives and cannot do its work), silent (no heartbeat for some seconds),
    stopping or unreachable. `pid` is null where it is no process of ours. It, `host`, `address` and the words of
    `reason` are shown to an admin of the installation's own tenant alone. `partitions`, of Kafka alone, is how many
    the events of executions have.
    """

    name: str
    role: str
    host: str | None
    pid: int | None
    state: str
    address: str | None
    at: datetime
    lag_records: int | None
    partitions: int | None = None
    reason: str | None = None


class Health(Resource):
    """Whether the process lives."""

    status: str


class Readiness(Resource):
    """Whether the installation decides; what keeps it from that, and what else is wrong."""

    status: str
    problems: list[str]
    warnings: list[str]


class SchemaId(Resource):
    """The id of a schema."""

    id: int


class SchemaText(Resource):
    """A schema as text."""

    text: str = Field(alias="schema")


class SchemaVersion(SchemaText):
    """A version of a subject."""

    subject: str
    version: int
    id: int
    schemaType: Literal["AVRO"]


class JsonSchema(Resource):
    """A JSON Schema (draft 2020-12)."""

    model_config = ConfigDict(extra="allow", json_schema_extra={OPEN: True})


class RegistryError(Resource):
    """An error as a schema registry says it."""

    error_code: int
    message: str
