"""The tables of the views, once for both databases. `docs/views.md` is their description for analysts."""

from projections.store.columns import Index, Table, integer, maybe, octets, text

__all__ = ["Table"]

COUNTERS: tuple[str, ...] = (
    "proposed",
    "allowed",
    "held",
    "denied",
    "approved",
    "edited",
    "rejected",
    "votes",
    "succeeded",
    "failed",
    "unknown",
    "refused",
)

_OWNER = text("tenant", "project")
_VERDICT = (
    *maybe("effect", "rules", "policy_version", "verdict_reason", "verdict_detail"),
    *maybe("risk_score", type="real"),
    *maybe("risk_level", "risk_parts"),
    *maybe("risk_required", type="real"),
    *maybe("trust"),
)

EXECUTIONS = Table(
    "executions",
    (
        *_OWNER,
        *text("execution_id", "agent", "user_id", "workspace", "request", "context", "state", "lifecycle"),
        *integer("open_approvals", "open_questions", "calls", "version"),
        *maybe("result", "error", "reason"),
        *text("started_by"),
        *maybe("ended_by"),
        *integer("started_at_ms", "updated_at_ms"),
        *maybe("ended_at_ms", type="int"),
        *integer("log_partition"),
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
    time="started_at_ms",
)

TOOL_CALLS = Table(
    "tool_calls",
    (
        *_OWNER,
        *text("execution_id", "call_id"),
        *integer("revision"),
        *text("agent", "tool", "tool_version", "arguments", "digest", "context", "claims", "reason"),
        *text("proposed_by", "status"),
        *maybe("proposed_arguments", "approved_arguments", "edits"),
        *_VERDICT,
        *maybe("hold_id"),
        *maybe("deadline_at_ms", type="int"),
        *maybe("decision", "decision_id", "decided_by"),
        *maybe("decided_at_ms", type="int"),
        *maybe("feedback", "released_by", "rule_id", "grant_id", "grant_decision_id", "grant_digest"),
        *maybe("grant_expires_at_ms", type="int"),
        *maybe("denied_because", "rollback", "attempt_id"),
        *maybe("run_deadline_at_ms", "lease_ms", "lease_until_ms", type="int"),
        *maybe("output", "error"),
        *maybe("duration_ms", type="int"),
        *integer("proposed_at_ms", "updated_at_ms"),
        *maybe("ended_at_ms", type="int"),
    ),
    key=("tenant", "project", "execution_id", "call_id"),
    indices=(
        Index("calls_open", ("tenant", "project", "proposed_at_ms"), where="ended_at_ms IS NULL"),
        Index("calls_by_time", ("tenant", "project", "proposed_at_ms")),
    ),
    time="proposed_at_ms",
)

HOLDS = Table(
    "holds",
    (
        *_OWNER,
        *text("hold_id", "execution_id"),
        *maybe("request", "call_id", "request_id"),
        *integer("revision"),
        *text("digest", "kind", "cause", "status"),
        *maybe("agent", "tool", "tool_version", "arguments", "reason"),
        *_VERDICT,
        *text("question", "options", "input_schema", "fields", "decision_type", "requester", "roles"),
        *text("reviewers", "excluded"),
        *integer("quorum", "exclude_requester"),
        *maybe("requirements"),
        *text("votes"),
        *maybe("claimed_by"),
        *maybe("claimed_until_ms", type="int"),
        *maybe("assignee"),
        *integer("escalated", "opened_at_ms"),
        *maybe("deadline_at_ms", type="int"),
        *text("on_timeout"),
        *maybe("default_value"),
        *maybe("escalate_at_ms", type="int"),
        *text("escalate_roles", "on_reject"),
        *maybe("decision", "decision_id", "decided_by", "feedback", "response"),
        *integer("timed_out", "updated_at_ms"),
        *maybe("closed_at_ms", type="int"),
        *text("view_digest", "badges", "opening"),
        *integer("view_version", "must_read"),
        *maybe("proposed_arguments", "delegations"),
    ),
    key=("tenant", "project", "hold_id"),
    indices=(
        Index("holds_by_opening", ("tenant", "project", "opened_at_ms", "hold_id")),
        Index("holds_open", ("tenant", "project", "opened_at_ms", "hold_id"), where="status = 'open'"),
        Index("holds_by_request", ("tenant", "project", "request_id"), where="request_id IS NOT NULL"),
    ),
    time="opened_at_ms",
)

EVENTS = Table(
    "events",
    (
        *_OWNER,
        *text("execution_id"),
        *integer("log_partition", "log_offset", "version"),
        *text("event_id", "type"),
        *integer("at_ms", "term"),
        *text("command_id", "command_digest"),
        *integer("command_offset"),
        *text("body"),
    ),
    key=("tenant", "project", "execution_id", "log_offset"),
    indices=(Index("events_by_time", ("tenant", "project", "at_ms")),),
    time="at_ms",
)

VOTES = Table(
    "votes",
    (
        *_OWNER,
        *integer("at_ms"),
        *text("event_id", "hold_id", "execution_id"),
        *maybe("call_id", "request_id", "agent", "tool"),
        *maybe("revision", type="int"),
        *text("digest", "subject"),
        *maybe("person", "roles"),
        *text("decision", "outcome"),
        *maybe("code", "detail", "decision_id", "winning_decision_id"),
        *text("feedback"),
        *maybe("view_digest"),
        *maybe("dwell_ms", type="int"),
        *integer("log_partition", "log_offset"),
    ),
    key=("tenant", "project", "at_ms", "event_id"),
    indices=(Index("votes_by_hold", ("tenant", "project", "hold_id", "at_ms")),),
    time="at_ms",
)

EDITS = Table(
    "edits",
    (
        *_OWNER,
        *text("execution_id", "call_id"),
        *integer("revision", "number", "at_ms"),
        *text("agent", "tool", "hold_id", "decision_id", "subject", "op", "path"),
        *maybe("before", "after"),
        *text("feedback", "event_id"),
        *integer("log_partition", "log_offset"),
    ),
    key=("tenant", "project", "execution_id", "call_id", "revision", "number"),
    indices=(Index("edits_by_time", ("tenant", "project", "at_ms")),),
    time="at_ms",
)

EVIDENCE = Table(
    "evidence",
    (
        *_OWNER,
        *text("agent", "tool"),
        *integer("at_ms"),
        *text("event_id", "kind", "execution_id", "call_id"),
        *integer("log_partition", "log_offset"),
    ),
    key=("tenant", "project", "agent", "tool", "at_ms", "event_id"),
    indices=(Index("evidence_by_time", ("tenant", "project", "at_ms")),),
    time="at_ms",
)

AUDIT_ENTRIES = Table(
    "audit_entries",
    (
        *_OWNER,
        *integer("at_ms"),
        *text("event_id", "subject", "action"),
        *maybe("execution_id", "call_id", "hold_id"),
        *text("digest"),
        *maybe("before", "after"),
        *text("feedback"),
        *maybe("view_digest"),
        *maybe("dwell_ms", type="int"),
        *integer("log_partition", "log_offset"),
    ),
    key=("tenant", "project", "at_ms", "event_id"),
    indices=(
        Index("audit_by_subject", ("tenant", "project", "subject", "at_ms", "event_id")),
        Index("audit_by_event", ("tenant", "event_id")),
    ),
    time="at_ms",
)

AUDIT_TREES = Table(
    "audit_trees",
    (*text("tenant", "topic"), *integer("log_partition", "size", "last_offset")),
    key=("tenant", "topic", "log_partition"),
)

AUDIT_TILES = Table(
    "audit_tiles",
    (
        *text("tenant", "topic"),
        *integer("log_partition", "level", "number", "first_offset"),
        *octets("hashes", "offsets"),
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
        *text("command_id", "command_digest", "topic", "log_key"),
        *integer("log_partition", "first_offset", "last_offset"),
        *maybe("code", "detail"),
    ),
    key=("tenant", "project", "command_id", "log_key"),
    merge={"first_offset": "first", "code": "not_null", "detail": "not_null"},
)

STANDING_RULES = Table(
    "standing_rules",
    (
        *text(
            "tenant", "rule_id", "project", "agent", "tool", "status", "reason", "document", "policy_rules"
        ),
        *maybe("uses", type="int"),
        *integer("expires_at_ms"),
        *text("made_by"),
        *integer("made_at_ms"),
        *text("changed_by"),
        *maybe("contradiction"),
        *integer("updated_at_ms", "log_offset"),
    ),
    key=("tenant", "rule_id"),
    indices=(Index("standing_rules_by_project", ("tenant", "project", "made_at_ms", "rule_id")),),
    time="made_at_ms",
)

RULE_USES = Table(
    "rule_uses",
    (
        *_OWNER,
        *text("rule_id"),
        *integer("number"),
        *text("execution_id", "call_id"),
        *integer("revision"),
        *text("digest", "reservation_id"),
        *integer("at_ms", "log_partition", "log_offset"),
    ),
    key=("tenant", "project", "rule_id", "number"),
    indices=(Index("rule_uses_by_time", ("tenant", "project", "at_ms")),),
    time="at_ms",
)

DEFINITIONS = Table(
    "definitions",
    (
        *_OWNER,
        *text("kind", "name"),
        *integer("version"),
        *text("tool_version", "document", "published_by"),
        *integer("published_at_ms", "log_offset"),
        *text("event_id", "command_id"),
    ),
    key=("tenant", "project", "kind", "name", "version"),
    indices=(Index("definitions_by_time", ("tenant", "project", "published_at_ms")),),
    time="published_at_ms",
)

AGENTS = Table(
    "agents",
    (
        *_OWNER,
        *text("agent", "tool"),
        *integer(*COUNTERS, "last_seen_at_ms"),
    ),
    key=("tenant", "project", "agent", "tool"),
    merge={**dict.fromkeys(COUNTERS, "sum"), "last_seen_at_ms": "max"},
)

ADOPTIONS = Table(
    "adoptions",
    integer("log_partition", "through_offset", "at_ms", "log_offset"),
    key=("log_partition",),
)

DEAD_LETTERS = Table(
    "dead_letters",
    (
        *text("topic"),
        *integer("log_partition", "log_offset", "at_ms"),
        *text("tenant", "log_key", "reason", "detail"),
    ),
    key=("topic", "log_partition", "log_offset"),
    indices=(Index("dead_letters_by_tenant", ("tenant", "at_ms")),),
    time="at_ms",
)

SKIPPED_RECORDS = Table(
    "skipped_records",
    (*text("topic"), *integer("log_partition", "log_offset"), *text("reason", "detail")),
    key=("topic", "log_partition", "log_offset"),
)

POSITIONS = Table(
    "placet_positions",
    (
        *text("source", "topic"),
        *integer("log_partition"),
        *text("topic_id"),
        *integer("next_offset", "claim"),
        *text("record_id"),
    ),
    key=("source",),
)

# What a rebuild must reproduce row by row; the positions say up to where. Of dead letters it reproduces those that
# the log still holds: their topic is kept for 30 days.
VIEW_TABLES = (
    EXECUTIONS,
    TOOL_CALLS,
    HOLDS,
    EVENTS,
    VOTES,
    EDITS,
    EVIDENCE,
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
    DEAD_LETTERS,
)
TABLES = (*VIEW_TABLES, POSITIONS)
