"""The recorded events as a consumer gets them, and which of them it wants."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from placet.models import Event, Object
from placet.parsing import UnexpectedAnswer, parse_time

Names = str | Iterable[str]


@dataclass(frozen=True)
class LogEvent:
    """One recorded event.

    Attributes:
        id: the same however often the event is delivered: a consumer that must act once compares it.
        type: such as `DecisionRecorded`; a newer installation can have types that this client does not know.
        at: the log's time, in UTC.
        execution_id: the run that it belongs to.
        version: counts the run's events from 1.
        cursor: the position after this event, to start from.
        data: the event's fields; nested JSON is text, times end in `_ms`.
        partition: of the log.
        offset: in its partition.
        term: of the decider that recorded it.
        command_id: of the command that caused it.
        tenant: from Kafka; empty from a gateway, which serves one tenant and project.
        project: the same.
        raw: from Kafka the record's value, framed Avro; empty from a gateway.
    """

    id: str
    type: str
    at: datetime
    execution_id: str
    version: int
    cursor: str = field(repr=False)
    data: Object = field(hash=False)
    partition: int = -1
    offset: int = -1
    term: int = -1
    command_id: str = ""
    tenant: str = ""
    project: str = ""
    raw: bytes = field(default=b"", repr=False)


@dataclass(frozen=True)
class Reached:
    """A position, and the event that comes right before it; None if nothing is delivered there."""

    cursor: str
    event: LogEvent | None = None


def event_of(message: Event) -> LogEvent:
    """The event in a message of the gateway's stream.

    Raises:
        UnexpectedAnswer: a part is missing.
    """
    body = message.body
    try:
        return LogEvent(
            id=str(body["event_id"]),
            type=str(body["event_type"]),
            at=parse_time(body["at"]),
            execution_id=str(body["execution_id"]),
            version=int(body["version"]),
            cursor=message.cursor,
            data=body["data"],
            partition=int(body.get("partition", -1)),
            offset=int(body.get("offset", -1)),
            term=int(body.get("term", -1)),
            command_id=str(body.get("command_id", "")),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UnexpectedAnswer(f"an event of the stream: {error!r}") from error


def names_of(given: Names | None) -> frozenset[str] | None:
    """Names of a filter; None for no filter.

    Raises:
        ValueError: there are none, or one is empty: nothing would ever be delivered.
    """
    if given is None:
        return None
    found = frozenset([given] if isinstance(given, str) else given)
    if not found or not all(found):
        raise ValueError("a filter names nothing: leave it out to get every event")
    return found


@dataclass(frozen=True)
class Wanted:
    """A consumer's filter; None for no restriction."""

    types: frozenset[str] | None = None
    agents: frozenset[str] | None = None
    executions: frozenset[str] | None = None

    @classmethod
    def of(cls, types: Names | None, agents: Names | None, execution: Names | None) -> Wanted:
        """The filter of a consumer's arguments; errors as `names_of`."""
        return cls(names_of(types), names_of(agents), names_of(execution))

    def fits(self, event: LogEvent) -> bool:
        """Returns True if the type and the execution are wanted; the agent is not looked at."""
        fits_type = self.types is None or event.type in self.types
        return fits_type and (self.executions is None or event.execution_id in self.executions)


def agent_in(event: LogEvent) -> str | None:
    """The agent of an execution that starts by this event; None for other events."""
    said: Any = event.data.get("agent") if event.type == "ExecutionStarted" else None
    return said if isinstance(said, str) else None
