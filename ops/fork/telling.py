"""A fork in a terminal, and as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from ops.commands.common import print_line
from ops.fork.definitions import Copied
from ops.fork.diff import Row, Side, short
from ops.fork.drive import Stop
from ops.fork.point import Instead, Point
from placet.cli.lines import print_rows

RESULT_SHOWN_CHARS = 60


@dataclass(frozen=True)
class Told:
    """All that a fork is told of.

    Attributes:
        url: the gateway's address.
        execution_id: of both branches.
        project: the original's.
        fork_project: the fork's.
        subject: the person who forked.
        point: the decision that was replaced.
        instead: by what.
        copied: what was published for the fork.
        rows: the calls.
        stopped: where the fork stopped; None if it went to the original's end.
        unasked: questions that were not asked again, with the reason.
        unrepeated: events of the original that were not repeated, by type.
    """

    url: str
    execution_id: str
    project: str
    fork_project: str
    subject: str
    point: Point
    instead: Instead
    copied: Copied
    rows: list[Row]
    stopped: Stop | None
    unasked: Mapping[str, str]
    unrepeated: Mapping[str, int]

    @property
    def is_same(self) -> bool:
        """True if each call became the same in both branches."""
        return all(row.relation == "same" for row in self.rows)

    @property
    def view_url(self) -> str:
        """The address of the fork's execution in the API; it needs the header Placet-Project."""
        return f"{self.url.rstrip('/')}/v1/executions/{quote(self.execution_id, safe='')}"


def json_of(told: Told) -> dict[str, Any]:
    """What `--json` prints."""
    decision = told.point.recorded.decision
    return {
        "execution_id": told.execution_id,
        "original": {"project": told.project},
        "fork": {"project": told.fork_project, "url": told.view_url, "by": told.subject},
        "at": {
            "call_id": told.point.call.call_id,
            "decision_id": decision.decision_id if decision is not None else None,
            "hold_id": told.point.recorded.hold.hold_id,
            "recorded": decision.decision if decision is not None else "expired",
            "by": list(told.point.recorded.voters),
        },
        "with": {
            "decision": told.instead.word,
            "reason": told.instead.reason,
            "arguments": told.instead.arguments,
            "assumed_result": told.instead.output if told.instead.is_assumed else None,
            "is_result_assumed": told.instead.is_assumed,
        },
        "definitions": dataclasses.asdict(told.copied),
        "is_same": told.is_same,
        "stopped": None if told.stopped is None else dataclasses.asdict(told.stopped),
        "calls": [_row(row) for row in told.rows],
        "questions_not_repeated": dict(told.unasked),
        "events_not_repeated": dict(told.unrepeated),
    }


def _row(row: Row) -> dict[str, Any]:
    found = dataclasses.asdict(row)
    found["used"] = [used._asdict() for used in row.used]
    return found


def tell(told: Told) -> None:
    """Print the branches side by side, and what has to be known to read them."""
    heads = ("call", "tool", told.project, told.fork_project, "difference")
    print_rows(heads, [_cells(row) for row in told.rows], "No call is in either of them.")
    for line in lines_of(told):
        print_line(line)


def _cells(row: Row) -> tuple[str, ...]:
    what = ", ".join(row.differs) if row.relation == "different" else row.relation.replace("_", " ")
    other = "" if row.fork is None else _cell(row.fork)
    return row.call_id, row.tool, _cell(row.original), other, what


def lines_of(told: Told) -> list[str]:
    """What is said below the table."""
    place, point = told.execution_id, told.point
    replaced = f"{told.instead.word} of {told.subject} in place of the recorded {point.said}"
    others = f"every other decision of the fork is {told.subject}'s, too, as recorded"
    lines = [f"At {point.name} ({point.call.call_id}): {replaced}; {others}."]
    if told.stopped is not None:
        lines.append(f"The fork stopped at {told.stopped.call_id}: {told.stopped.why}.")
    lines += [
        f"{row.call_id}: {used.path} {used.value} came out of what {used.of_call} returned in {told.project}, which"
        " the fork does not have: a real agent might not have proposed this call."
        for row in told.rows
        for used in row.used
    ]
    lines += [
        f"{row.call_id}: its values were not looked at (too many, too long, or an address that programs could read"
        f" differently): they may have come out of results of {told.project} which the fork does not have."
        for row in told.rows
        if not row.is_looked_at
    ]
    lines += [f"{row.call_id}: its result was assumed (--result)." for row in told.rows if row.is_assumed]
    lines += [
        f"{row.call_id} had no result of its own: it was given that of {row.stub}."
        for row in told.rows
        if row.stub not in (None, row.call_id)
    ]
    lines += _of_definitions(told)
    lines += [f"The question {name} was not repeated: {why}." for name, why in told.unasked.items()]
    if told.unrepeated:
        counted = ", ".join(f"{count} {name}" for name, count in told.unrepeated.items())
        lines.append(f"Not repeated: {counted}.")
    lines.append(f"The fork: placet --project {told.fork_project} state {place}, or {told.view_url}")
    return lines


def _of_definitions(told: Told) -> list[str]:
    copied, lines = told.copied, []
    judged = {row.fork.policy for row in told.rows if row.fork is not None}
    if copied.policy:
        lines.append(
            f"Policy: {copied.policy} in {told.project}, {', '.join(sorted(judged)) or 'none'} in the fork."
        )
    if copied.others:
        lines.append(f"Calls of {told.project} were also judged by {', '.join(copied.others)}.")
    if copied.changed:
        lines.append(f"Tools with another definition now than then: {', '.join(copied.changed)}.")
    return lines


def _cell(side: Side) -> str:
    rules = " ".join(short(rule) for rule in side.rules)
    verdict = f"{side.effect} ({rules})" if rules else side.effect
    ended = side.status.replace("_", " ")
    if side.result is not None:
        cut = (
            side.result if len(side.result) <= RESULT_SHOWN_CHARS else f"{side.result[:RESULT_SHOWN_CHARS]}…"
        )
        ended = f"{ended}: {cut}"
    return " → ".join(part for part in (verdict, *side.decisions, ended) if part)
