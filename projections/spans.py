"""The spans of a projector: one for each traced command, and one for each wait for a person that is over.

They are made when the rows are written. A view that is built again from the log makes none for what is long past.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from projections.tables.holds import HoldRow
from schemas.events.holds import DecisionRecorded, HoldCancelled, HoldExpired
from schemas.record import Event
from vitals.facts import facts_of, is_recent, of_record

if TYPE_CHECKING:
    from vitals.spans import Spans

NS_PER_MS = 1_000_000
_CLOSING = (DecisionRecorded, HoldExpired, HoldCancelled)


@dataclass(slots=True)
class ProjectorSpans:
    """Collects what a batch does, and makes its spans once the batch is written.

    Attributes:
        spans: makes the spans.
        topic: of the executions.
    """

    spans: Spans
    topic: str
    _firsts: dict[str, Event] = field(default_factory=dict)
    _waits: list[tuple[Event, HoldRow]] = field(default_factory=list)
    _began_ns: int = 0

    def begin(self) -> None:
        """Begin a batch."""
        self._firsts.clear()
        self._waits.clear()
        self._began_ns = time.time_ns()

    def folded(self, event: Event, hold: HoldRow | None) -> None:
        """Note an event, and its hold as it is after it; a hold can expire in no trace at all."""
        if not is_recent(event.meta.at_ms):
            return
        if event.meta.trace:
            self._firsts.setdefault(event.meta.trace, event)
        if (
            hold is not None
            and isinstance(event.body, _CLOSING)
            and hold["status"] != "open"
            and hold["trace"]
        ):
            self._waits.append((event, hold))

    def written(self) -> None:
        """Make the spans of the batch."""
        from opentelemetry.trace import SpanKind

        between_ns = self._began_ns, time.time_ns()
        name = f"process {self.topic}"
        for trace, event in self._firsts.items():
            facts = {
                **facts_of(self.topic, event.key, event.body, event.meta.tenant),
                **of_record(self.topic, event.partition, event.offset, "project"),
            }
            self.spans.record(name, SpanKind.CONSUMER, trace, facts, between_ns)
        for event, hold in self._waits:
            self._record_wait(event, hold)

    def _record_wait(self, event: Event, hold: HoldRow) -> None:
        """The wait belongs to the trace that opened the hold, with a link to that of the decision, if any."""
        from opentelemetry.trace import SpanKind

        facts = facts_of(self.topic, event.key, event.body, event.meta.tenant)
        facts["placet.hold_status"] = hold["status"]
        if hold["call_id"]:
            facts["placet.call_id"] = hold["call_id"]
        opened_ns, closed_ns = hold["opened_at_ms"] * NS_PER_MS, event.meta.at_ms * NS_PER_MS
        name, trace = "wait for a person", hold["trace"] or ""
        # A deadline ended it: whichever command came next, of anybody, had the decider record that.
        link = "" if isinstance(event.body, HoldExpired) else event.meta.trace
        self.spans.record(name, SpanKind.INTERNAL, trace, facts, (opened_ns, closed_ns), link)
