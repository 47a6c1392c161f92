"""The answers to commands."""

from typing import Annotated, TypedDict

from projections.tables.columns import TableOf
from projections.tables.common import (
    Code,
    CommandDigest,
    CommandId,
    Detail,
    LogPartition,
    Project,
    Tenant,
    Topic,
)


class AnswerRow(TypedDict):
    """The result of each command."""

    tenant: Tenant
    project: Project
    command_id: CommandId
    command_digest: CommandDigest
    topic: Topic
    log_key: Annotated[str, "Key of its events in the log."]
    log_partition: LogPartition
    first_offset: Annotated[int, "Offset of its first event."]
    last_offset: Annotated[int, "Offset of its last event."]
    code: Code | None
    detail: Detail | None


ANSWERS = TableOf(
    "answers",
    AnswerRow,
    key=("tenant", "project", "command_id", "log_key"),
    merge={"first_offset": "first", "code": "not_null", "detail": "not_null"},
)
