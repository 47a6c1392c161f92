"""What each table and column of the views means: PostgreSQL's comments, and the list in docs/columns.md."""

from __future__ import annotations

from projections.store.table_comments import OF_TABLE

# Of columns that mean the same wherever they stand.
COMMON: dict[str, str] = {
    "tenant": "Whose it is.",
    "project": "In which of the tenant's projects.",
    "execution_id": "The run of an agent.",
    "call_id": "The tool call in its run.",
    "hold_id": "The pause for a person.",
    "request_id": "The question of an agent, where the hold is one.",
    "agent": "The agent that acts.",
    "tool": "The tool's name.",
    "tool_version": "SHA-256 of the tool's definition.",
    "revision": "Counts what the call's arguments were, from 1; an edit makes the next.",
    "arguments": "Canonical JSON of the arguments, exactly as it was decided on.",
    "digest": "SHA-256 to which an approval binds: tenant, agent, tool, its version and the arguments.",
    "reason": "Why, in the words of who did it.",
    "at_ms": "When, by the log's time.",
    "event_id": "The record of the log that says so.",
    "log_partition": "Partition of the topic.",
    "log_offset": "Offset in the partition.",
    "updated_at_ms": "When it last changed.",
    "subject": "Who: a person, a service, a policy's version, a rule, the timer or the decider.",
    "feedback": "What the person said to it.",
    "status": "Where it stands.",
    "context": "JSON that the agent gave along.",
    "effect": "The verdict: allow, hold or deny.",
    "rules": "JSON list of the rules that matched, policy@version/rule.",
    "policy_version": "The policy that judged, and its version.",
    "verdict_reason": "Why the verdict came out so.",
    "verdict_detail": "What is to be said to it, such as the condition that failed.",
    "risk_score": "Risk from 0 to 1.",
    "risk_level": "Risk in words.",
    "risk_parts": "JSON list of what the risk is made of.",
    "risk_required": "The lower bound of trust at which the expected harm would be acceptable.",
    "trust": "JSON of the counts that the verdict cites; null while they were not complete.",
    "deadline_at_ms": "Until when somebody must decide; null: without a deadline.",
    "decision": "What was decided: approve, edit, reject or respond.",
    "decision_id": "Names the decision.",
    "decided_by": "Who decided.",
    "view_digest": "SHA-256 of the text that was shown.",
    "dwell_ms": "How long the person looked, in milliseconds; null where it was not measured.",
    "proposed_arguments": "The agent's own arguments, once a person has edited them.",
    "output": "JSON that the tool returned.",
    "error": "Why it did not succeed.",
    "ended_at_ms": "When it ended; null while it has not.",
    "name": "Its name.",
    "version": "Counts its versions from 1.",
    "document": "JSON of the whole.",
    "published_by": "Who published it.",
    "published_at_ms": "When it was published.",
    "command_id": "The command that caused it (an idempotency key).",
    "command_digest": "Names the command's body.",
    "topic": "The topic of the log.",
    "detail": "What is to be said to it.",
    "code": "The reason for a refusal (protocol, Refusals); null where nothing was refused.",
    "opened_at_ms": "When the hold opened.",
    "question": "What the person is asked.",
    "options": "JSON list of the answers to choose from.",
    "fields": "JSON list of the fields to be filled in.",
    "decision_type": "What the agent calls the kind of decision.",
    "kind": "What the hold is: clarification, decision, env_var or permission.",
    "timed_out": "1 where time ran out and ended it; with on_timeout default, its default answers.",
    "response": "JSON of the answer to a request.",
    "closed_at_ms": "When the hold ended; null while it is open.",
    "rule_id": "The standing rule.",
}

# Columns of JSON text, by table where only some tables have JSON under the name.
# fmt: off
_JSON = frozenset((
    "context", "arguments", "claims", "proposed_arguments", "approved_arguments", "edits", "rules",
    "risk_parts", "trust", "rollback", "output", "options", "input_schema", "fields", "roles", "reviewers",
    "excluded", "requirements", "delegations", "votes", "default_value", "escalate_roles", "response", "badges",
    "opening", "body", "before", "after", "document", "policy_rules", "contradiction", "definition", "result_output",
))
# fmt: on
_JSON_OF = {"executions": frozenset({"result"})}
# Names that are JSON elsewhere and counts here.
_NO_JSON = {"agents": frozenset({"votes"}), "trust": frozenset({"edits"})}
# Milliseconds since 1970; others that end in `_ms` are durations.
_MOMENTS = ("_at_ms", "_until_ms")


def is_json(table: str, column: str) -> bool:
    """Whether a column of text holds JSON."""
    if column in _NO_JSON.get(table, ()):
        return False
    return column in _JSON or column in _JSON_OF.get(table, ())


def is_moment(column: str) -> bool:
    """Whether a column is a moment in milliseconds since 1970."""
    return column == "at_ms" or column.endswith(_MOMENTS)


def table_comment(table: str) -> str:
    """What a table or SQL view is."""
    return OF_TABLE[table][0]


def column_comment(table: str, column: str) -> str:
    """What a column means.

    Raises:
        KeyError: nobody has said so.
    """
    text = OF_TABLE[table][1].get(column) or COMMON[column]
    return f"{text} Milliseconds since 1970, UTC." if is_moment(column) else text
