"""The installation itself: its components, its health, its schema registry."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import ConfigDict, Field

from gateway.resources.base import OPEN, Resource


class Component(Resource):
    """A part of the installation and its state at a moment.

    `state` is starting, ready, stalled (alive but unable to work), silent (no heartbeat for some seconds), stopping
    or unreachable. `pid` is null if it is not a Placet process. `probe_address` is where its probe listens, null for
    Kafka and the gateway. `pid`, `host`, both addresses and the text of `reason` are shown only to an admin of the
    installation's own tenant. `partitions` is only given for Kafka: the number of partitions of the executions.
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
    probe_address: str | None = None


class Health(Resource):
    """The liveness of the process."""

    status: str


class Readiness(Resource):
    """The readiness of the installation to decide: the problems that prevent decisions, and other warnings."""

    status: str
    problems: list[str]
    warnings: list[str]


class SchemaId(Resource):
    """The id of a schema."""

    id: int


class SchemaText(Resource):
    """A schema as text."""

    text: str = Field(alias="schema")


class SubjectVersion(Resource):
    """A subject and one of its versions."""

    subject: str
    version: int


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
    """An error in the form of a schema registry."""

    error_code: int
    message: str
