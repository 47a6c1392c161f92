"""The tables of the views, once for both databases. `docs/views.md` is their description for analysts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

ColumnType = Literal["text", "int", "real", "bytes"]
Merge = Literal["sum", "max", "first", "not_null"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column. `name` is the key of a row's dict too."""

    name: str
    type: ColumnType = "text"
    null: bool = False


@dataclass(frozen=True, slots=True)
class Index:
    """An index; `where` makes it a partial one."""

    name: str
    columns: tuple[str, ...]
    where: str = ""


@dataclass(frozen=True)
class Table:
    """A table with its primary key.

    `merge` says what a write does to a column of a row that is there already, where it does not replace it:
    add to it, keep the greater, keep the first, or replace it only by a value that is not null. Rows that
    several partitions write have no other columns, so that the order between partitions does not matter.
    """

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    indices: tuple[Index, ...] = ()
    merge: Mapping[str, Merge] = field(default_factory=dict)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The column names in order."""
        return tuple(column.name for column in self.columns)


def _text(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name) for name in names)


def _int(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name, "int") for name in names)


def _bytes(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name, "bytes") for name in names)


def _maybe(*names: str, type: ColumnType = "text") -> tuple[Column, ...]:  # noqa: A002
    return tuple(Column(name, type, null=True) for name in names)


COUNTERS: tuple[str, ...] = (
    "proposed",
    "allowed",
    "held",
    "denied",
    "approved",
    "edited",
    "rejected",
    "succeeded",
    "failed",
    "unknown",
    "refused",
)

_OWNER = _text("tenant", "project")
_VERDICT = (
    *_maybe("effect", "rules", "policy_version", "verdict_reason", "verdict_detail"),
    *_maybe("risk_score", type="real"),
    *_maybe("risk_level", "risk_parts"),
    *_maybe("risk_required", type="real"),
    *_maybe("trust"),
)

EXECUTIONS = Table(
    "executions",
    (
        *_OWNER,
        *_text("execution_id", "agent", "user_id", "workspace", "request", "context", "state", "lifecycle"),
        *_int("open_approvals", "open_questions", "calls", "version"),
        *_maybe("result", "error", "reason"),
        *_text("started_by"),
        *_maybe("ended_by"),
        *_int("started_at_ms", "updated_at_ms"),
        *_maybe("ended_at_ms", type="int"),
        *_int("log_partition"),
    ),
    key=("tenant", "project", "execution_id"),
    indices=(
        Index("executions_by_start", ("tenant", "project", "started_at_ms", "execution_id")),
        Index(
            "executions_under_way",
            ("tenant", "project", "started_at_ms", "execution_id"),
            where="ended_at_ms IS NULL",
        ),
    ),
)

TOOL_CALLS = Table(
    "tool_calls",
    (
        *_OWNER,
        *_text("execution_id", "call_id"),
        *_int("revision"),
        *_text("agent", "tool", "tool_version", "arguments", "digest", "context", "claims", "reason"),
        *_text("proposed_by", "status"),
        *_maybe("proposed_arguments", "approved_arguments", "edits"),
        *_VERDICT,
        *_maybe("hold_id"),
        *_maybe("deadline_at_ms", type="int"),
        *_maybe("decision", "decision_id", "decided_by"),
        *_maybe("decided_at_ms", type="int"),
        *_maybe("feedback", "released_by", "rule_id", "grant_id", "grant_decision_id", "grant_digest"),
        *_maybe("grant_expires_at_ms", type="int"),
        *_maybe("denied_because", "rollback", "attempt_id"),
        *_maybe("run_deadline_at_ms", "lease_ms", "lease_until_ms", type="int"),
        *_maybe("output", "error"),
        *_maybe("duration_ms", type="int"),
        *_int("proposed_at_ms", "updated_at_ms"),
        *_maybe("ended_at_ms", type="int"),
    ),
    key=("tenant", "project", "execution_id", "call_id"),
    indices=(Index("calls_open", ("tenant", "project", "proposed_at_ms"), where="ended_at_ms IS NULL"),),
)

HOLDS = Table(
    "holds",
    (
        *_OWNER,
        *_text("hold_id", "execution_id"),
        *_maybe("request", "call_id", "request_id"),
        *_int("revision"),
        *_text("digest", "kind", "cause", "status"),
        *_maybe("agent", "tool", "tool_version", "arguments", "reason"),
        *_VERDICT,
        *_text("question", "options", "input_schema", "fields", "decision_type", "requester", "roles"),
        *_text("reviewers", "excluded"),
        *_int("quorum", "exclude_requester"),
        *_maybe("requirements"),
        *_text("votes"),
        *_maybe("claimed_by"),
        *_maybe("claimed_until_ms", type="int"),
        *_maybe("assignee"),
        *_int("escalated", "opened_at_ms"),
        *_maybe("deadline_at_ms", type="int"),
        *_text("on_timeout"),
        *_maybe("default_value"),
        *_maybe("escalate_at_ms", type="int"),
        *_text("escalate_roles", "on_reject"),
        *_maybe("decision", "decision_id", "decided_by", "feedback", "response"),
        *_int("timed_out", "updated_at_ms"),
        *_maybe("closed_at_ms", type="int"),
        *_text("view_digest", "badges", "opening"),
        *_int("view_version", "must_read"),
        *_maybe("proposed_arguments"),
    ),
    key=("tenant", "project", "hold_id"),
    indices=(
        Index("holds_by_opening", ("tenant", "project", "opened_at_ms", "hold_id")),
        Index("holds_open", ("tenant", "project", "opened_at_ms", "hold_id"), where="status = 'open'"),
        Index("holds_by_request", ("tenant", "project", "request_id"), where="request_id IS NOT NULL"),
    ),
)

EVENTS = Table(
    "events",
    (
        *_OWNER,
        *_text("execution_id"),
        *_int("log_partition", "log_offset", "version"),
        *_text("event_id", "type"),
        *_int("at_ms", "term"),
        *_text("command_id", "command_digest"),
        *_int("command_offset"),
        *_text("body"),
    ),
    key=("tenant", "project", "execution_id", "log_offset"),
)

AUDIT_ENTRIES = Table(
    "audit_entries",
    (
        *_OWNER,
        *_int("at_ms"),
        *_text("event_id", "subject", "action"),
        *_maybe("execution_id", "call_id", "hold_id"),
        *_text("digest"),
        *_maybe("before", "after"),
        *_text("feedback"),
        *_maybe("view_digest"),
        *_maybe("dwell_ms", type="int"),
        *_int("log_partition", "log_offset"),
    ),
    key=("tenant", "project", "at_ms", "event_id"),
    indices=(
        Index("audit_by_subject", ("tenant", "project", "subject", "at_ms", "event_id")),
        Index("audit_by_event", ("tenant", "event_id")),
    ),
)

AUDIT_TREES = Table(
    "audit_trees",
    (*_text("tenant", "topic"), *_int("log_partition", "size", "last_offset")),
    key=("tenant", "topic", "log_partition"),
)

AUDIT_TILES = Table(
    "audit_tiles",
    (
        *_text("tenant", "topic"),
        *_int("log_partition", "level", "number", "first_offset"),
        *_bytes("hashes", "offsets"),
    ),
    key=("tenant", "topic", "log_partition", "level", "number"),
    indices=(
        Index(
            "audit_tiles_by_offset",
            ("tenant", "topic", "log_partition", "first_offset"),
            where="level = 0",
        ),
    ),
)

ANSWERS = Table(
    "answers",
    (
        *_OWNER,
        *_text("command_id", "command_digest", "topic", "log_key"),
        *_int("log_partition", "first_offset", "last_offset"),
        *_maybe("code", "detail"),
    ),
    key=("tenant", "project", "command_id"),
    merge={"first_offset": "first", "code": "not_null", "detail": "not_null"},
)

STANDING_RULES = Table(
    "standing_rules",
    (
        *_text(
            "tenant", "rule_id", "project", "agent", "tool", "status", "reason", "document", "policy_rules"
        ),
        *_maybe("uses", type="int"),
        *_int("expires_at_ms"),
        *_text("made_by"),
        *_int("made_at_ms"),
        *_text("changed_by"),
        *_maybe("contradiction"),
        *_int("updated_at_ms", "log_offset"),
    ),
    key=("tenant", "rule_id"),
    indices=(Index("standing_rules_by_project", ("tenant", "project", "made_at_ms", "rule_id")),),
)

RULE_USES = Table(
    "rule_uses",
    (
        *_OWNER,
        *_text("rule_id"),
        *_int("number"),
        *_text("execution_id", "call_id"),
        *_int("revision"),
        *_text("digest", "reservation_id"),
        *_int("at_ms", "log_partition", "log_offset"),
    ),
    key=("tenant", "project", "rule_id", "number"),
)

DEFINITIONS = Table(
    "definitions",
    (
        *_OWNER,
        *_text("kind", "name"),
        *_int("version"),
        *_text("tool_version", "document", "published_by"),
        *_int("published_at_ms", "log_offset"),
        *_text("event_id", "command_id"),
    ),
    key=("tenant", "project", "kind", "name", "version"),
)

AGENTS = Table(
    "agents",
    (
        *_OWNER,
        *_text("agent", "tool"),
        *_int(*COUNTERS, "last_seen_at_ms"),
    ),
    key=("tenant", "project", "agent", "tool"),
    merge={**dict.fromkeys(COUNTERS, "sum"), "last_seen_at_ms": "max"},
)

ADOPTIONS = Table(
    "adoptions",
    _int("log_partition", "through_offset", "at_ms", "log_offset"),
    key=("log_partition",),
)

DEAD_LETTERS = Table(
    "dead_letters",
    (
        *_text("topic"),
        *_int("log_partition", "log_offset", "at_ms"),
        *_text("tenant", "log_key", "reason", "detail"),
    ),
    key=("topic", "log_partition", "log_offset"),
    indices=(Index("dead_letters_by_tenant", ("tenant", "at_ms")),),
)

SKIPPED_RECORDS = Table(
    "skipped_records",
    (*_text("topic"), *_int("log_partition", "log_offset"), *_text("reason", "detail")),
    key=("topic", "log_partition", "log_offset"),
)

POSITIONS = Table(
    "placet_positions",
    (
        *_text("source", "topic"),
        *_int("log_partition"),
        *_text("topic_id"),
        *_int("next_offset", "claim"),
        *_text("record_id"),
    ),
    key=("source",),
)

# What a rebuild must reproduce row by row; the positions say up to where. Dead letters are not among them: the
# log itself forgets them after 30 days.
VIEW_TABLES = (
    EXECUTIONS,
    TOOL_CALLS,
    HOLDS,
    EVENTS,
    AUDIT_ENTRIES,
    AUDIT_TREES,
    AUDIT_TILES,
    ANSWERS,
    DEFINITIONS,
    STANDING_RULES,
    RULE_USES,
    AGENTS,
    ADOPTIONS,
    SKIPPED_RECORDS,
)
TABLES = (*VIEW_TABLES, DEAD_LETTERS, POSITIONS)
