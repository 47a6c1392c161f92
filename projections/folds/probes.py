"""Rows of what people answered to planted calls."""

from collections.abc import Iterator

from projections.folds.effects import Before, New, new
from projections.folds.rows import owner_of, source_of
from projections.tables.probes import PROBE_ANSWERS, ProbeAnswerRow
from schemas.events.calls import ProbeEnded
from schemas.probe import answers_from_text
from schemas.record import Event


def probe_answer_rows(body: ProbeEnded, event: Event, before: Before) -> Iterator[New]:
    """The rows of the answers to a planted call, in the order in which people gave them."""
    for number, answer in enumerate(answers_from_text(body.answers), 1):
        row: ProbeAnswerRow = {
            **owner_of(event),
            **source_of(event),
            "number": number,
            "call_id": body.call_id,
            "hold_id": body.hold_id,
            "agent": body.agent,
            "tool": body.tool,
            "subject": answer.by,
            "person": answer.person or None,
            "decision": answer.decision,
            "caught": int(answer.caught),
            "planted_by": body.planted_by,
        }
        yield new(PROBE_ANSWERS, row)
