"""The columns of an export: one list for all types of events, so that every file has the same schema.

The first ones come from a record's place, key and headers. Each of the others is the field of the same name in the
events that have one, and null in all other events; `body` has all fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, NamedTuple


class Kind(Enum):
    """The type of a column's values; the value is its name for people."""

    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    TRUTH = "true or false"
    TIME = "time"
    TEXTS = "list of texts"


class Column(NamedTuple):
    """One column.

    Attributes:
        name: its name.
        kind: the type of its values.
        meaning: a sentence.
        field: the field of the events that it is read from, if that has another name.
    """

    name: str
    kind: Kind
    meaning: str
    field: str = ""

    @property
    def source(self) -> str:
        """The name of the events' field."""
        return self.field or self.name


class Row(NamedTuple):
    """An event that counts. The fields before `fields` are the values of `OF_RECORDS`, in their order.

    `at_ms` is milliseconds since the epoch, `body` the event's fields as JSON, `fields` the same as Avro has them.
    """

    partition: int
    offset: int
    at_ms: int
    tenant: str
    project: str
    execution_id: str | None
    version: int
    term: int
    event_id: str
    command_id: str
    type: str
    body: bytes
    fields: Mapping[str, Any]


_T, _I, _N, _B = Kind.TEXT, Kind.INTEGER, Kind.NUMBER, Kind.TRUTH

OF_RECORDS = (
    Column("partition", _I, "Partition of the topic."),
    Column("offset", _I, "Offset in the partition; there are gaps."),
    Column("at", Kind.TIME, "When it happened, by the log's time, in UTC, to the millisecond."),
    Column("tenant", _T, "The tenant."),
    Column("project", _T, "The tenant's project; `*` for a definition of the whole tenant."),
    Column(
        "execution_id", _T, "Id of the run; `rule/…` for the uses of a standing rule; null for a definition."
    ),
    Column("version", _I, "Counts the events of the run, or of the definition, from 1."),
    Column("term", _I, "Offset of the claim under which it was written."),
    Column("event_id", _T, "Id of the event: unique in the log."),
    Column("command_id", _T, "Id of the command that caused it."),
    Column("type", _T, "Type of the event."),
    Column("body", _T, "All fields of the event as JSON; JSON within it is text."),
)

OF_EVENTS = (
    Column("by", _T, "Who acted: a person, a service, the timer or the decider."),
    Column("person", _T, "The principal whose account that is."),
    Column("roles", Kind.TEXTS, "Roles by which a person decided, or whom a hold asks."),
    Column("agent", _T, "The agent that acts."),
    Column("user", _T, "The user on whose behalf a run was started, or who joined it."),
    Column("tool", _T, "The tool's name."),
    Column("tool_version", _T, "SHA-256 of the tool's definition."),
    Column("arguments", _T, "Canonical JSON of a call's arguments, as proposed or released."),
    Column("output", _T, "JSON of what a call returned."),
    Column("response", _T, "JSON of the answer to a question."),
    Column("call_id", _T, "Id of the call in its run."),
    Column("revision", _I, "Number of the call's revision, from 1."),
    Column("digest", _T, "SHA-256 that an approval is bound to."),
    Column("request_id", _T, "Id of the question in its run."),
    Column("hold_id", _T, "Id of the hold."),
    Column("turn_id", _T, "Id of the turn of a conversation."),
    Column("attempt_id", _T, "Id of the attempt that runs the call or works on the turn."),
    Column("decision_id", _T, "Id of the decision."),
    Column("grant_id", _T, "Id of the release."),
    Column("rule_id", _T, "Id of the standing rule."),
    Column("effect", _T, "The verdict: allow, hold or deny."),
    Column("rules", Kind.TEXTS, "The rules that the verdict cites, each `policy@version/rule`."),
    Column("policy_version", _T, "The policy that judged."),
    Column("risk_score", _N, "The risk, from 0 to 1."),
    Column("risk_level", _T, "low, medium or high."),
    Column("risk_required", _N, "The trust that the verdict required."),
    Column("kind", _T, "Of a hold or a question: clarification, decision, env_var or permission."),
    Column("cause", _T, "Why a hold was opened, a call denied, or a turn given back."),
    Column("quorum", _I, "How many people a hold asks for."),
    Column(
        "deadline_at_ms", _I, "Deadline of a hold or a reservation, milliseconds since 1970, UTC; null: none."
    ),
    Column("on_timeout", _T, "What follows if nobody decides in time."),
    Column("decision", _T, "approve, edit, reject or respond."),
    Column("scope", _T, "How far the decision is to be remembered."),
    Column("resolves", _B, "Whether the decision ended its hold."),
    Column("timed_out", _B, "Whether the answer is the default, because the time ran out."),
    Column("dwell_ms", _I, "How long the hold was displayed before the decision, in milliseconds."),
    Column("feedback", _T, "What the person wrote."),
    Column("released_by", _T, "Who released the call: policy, decision or rule."),
    Column("expires_at_ms", _I, "Until when the release can be used, milliseconds since 1970, UTC."),
    Column("duration_ms", _I, "How long the call ran, in milliseconds."),
    Column("code", _T, "Why a command or a decision was refused."),
    Column("command", _T, "The command that was refused or given up."),
    Column("outcome", _T, "How a turn ended."),
    Column("question", _T, "The question to a person."),
    Column("reason", _T, "The reason that the event gives."),
    Column("detail", _T, "Details of a verdict, a refusal or a reservation."),
    Column("error", _T, "Why a call, a run or a turn failed."),
    Column("name", _T, "Name of a definition."),
    Column("definition_version", _I, "Version of a definition, from 1.", "version"),
)

COLUMNS = (*OF_RECORDS, *OF_EVENTS)
