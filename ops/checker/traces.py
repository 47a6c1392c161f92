"""What commands left in the log: each is decided once, and none is skipped.

Facts of one command stand side by side, so that one row is kept for all of them; another one is only needed where
the same command left something elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any

import msgspec

from log.places import TopicPartition
from ops.checker.asked import NUDGE, name_of
from ops.checker.facts import LOG_EVENTS, Fact
from ops.checker.scratch import Scratch
from ops.checker.violations import Violation

DEFINITIONS = ".definitions"
WANT_OF_AUTHORITY = frozenset({"not_authorised", "own_request", "forbidden_role"})
Report = Callable[[Violation], None]


@dataclass(slots=True)
class Trace:
    """Facts of one command and body that stand side by side.

    Attributes:
        name: of the command, and `digest` of its body.
        about_log: whether they are about the log itself: they answer, but decide nothing.
        first: offset of the first, `last` of the last.
        command_id: the id.
        place: term and command offset of the first; `is_one` as long as all have the same.
        first_type: type of the first, `last_type` of the last.
        is_unknown: whether the first refused what does not exist.
        is_passing: whether the first refused what is remembered only for a while (decision 44).
        refuses: how many refuse a reuse.
        plain: how many change nothing, and `abandons` how many gave a command up, of `count`.
    """

    name: bytes
    digest: str
    about_log: bool
    first: int
    last: int
    command_id: str
    place: tuple[int, int]
    first_type: str
    last_type: str
    is_unknown: bool
    is_passing: bool
    is_one: bool = True
    count: int = 0
    refuses: int = 0
    plain: int = 0
    abandons: int = 0

    def take(self, fact: Fact) -> None:
        """Add the next fact."""
        code = str(getattr(fact.body, "code", ""))
        self.last, self.last_type = fact.offset, fact.type
        self.is_one = self.is_one and (fact.term, fact.command_offset) == self.place
        self.count += 1
        self.refuses += code == "idempotency_key_reused"
        self.plain += fact.type in ("CommandRefused", "DecisionRefused") and code == "execution_closed"
        self.abandons += fact.type == "CommandAbandoned"


class Traces:
    """All traces in one events partition."""

    def __init__(self, tp: TopicPartition, scratch: Scratch) -> None:
        self._tp = tp
        self._scratch = scratch
        self._open: Trace | None = None
        self.reached = -1

    def read(self, fact: Fact) -> None:
        """Take the next counting fact."""
        self.reached = max(self.reached, fact.command_offset)
        if fact.type == "WriterAlive":
            self.reached = max(self.reached, fact.body.commands_through)
        name, about_log = name_of(fact.key, fact.command_id), fact.type in LOG_EVENTS
        known = self._open
        if (
            known is None
            or (known.name, known.digest, known.about_log) != (name, fact.command_digest, about_log)
            or fact.offset != known.last + 1
        ):
            self._keep()
            code = str(getattr(fact.body, "code", ""))
            known = self._open = Trace(
                name,
                fact.command_digest,
                about_log,
                fact.offset,
                fact.offset,
                fact.command_id,
                (fact.term, fact.command_offset),
                fact.type,
                fact.type,
                code == "not_found",
                self._passes(fact, code),
            )
        known.take(fact)

    def check_answers(self, report: Report) -> None:
        """Every command is decided once: an id stands for the body that came first, and every other is refused."""
        self._keep()
        statement = "SELECT value FROM traces WHERE part = ? AND NOT about_log ORDER BY name, first"
        rows = self._scratch.rows(statement, (str(self._tp),))
        for _, traces in groupby(map(_decoded, rows), attrgetter("name")):
            self._check_bodies(list(traces), report)

    def check_commands(self, commands: TopicPartition, at_rest: bool, report: Report) -> int:
        """Commands are handled in order, so before the newest that left events none may be without a trace.

        At rest, none at all may be. Nudges leave none when they come early; dead letters are traces as well.

        Args:
            commands: the partition of the commands.
            at_rest: whether nothing is under way any more.
            report: takes what must not be.

        Returns:
            How many behind the newest have no trace.
        """
        self._keep()
        waiting = 0
        values = (str(commands), NUDGE, str(self._tp), f"{commands.topic}/{commands.partition}/")
        for offset, command_id, kind in self._scratch.rows(_UNANSWERED, values):
            where, evidence = f"{commands}@{offset}", (command_id, kind)
            if offset <= self.reached:
                report(Violation("I3", where, "a command was skipped", evidence))
                continue
            waiting += 1
            if at_rest:
                report(Violation("I12", where, "a command was never handled", evidence))
        return waiting

    def _passes(self, fact: Fact, code: str) -> bool:
        if fact.type not in ("CommandRefused", "DecisionRefused"):
            return False
        if self._tp.topic.endswith(DEFINITIONS):
            return code in WANT_OF_AUTHORITY
        # Where a run was begun, that is its first event.
        return fact.version == 1

    def _keep(self) -> None:
        trace, self._open = self._open, None
        if trace is not None:
            places = (trace.name, trace.digest, trace.about_log, trace.first, trace.last)
            row = (str(self._tp), *places, msgspec.msgpack.encode(trace))
            self._scratch.add("INSERT INTO traces VALUES (?, ?, ?, ?, ?, ?, ?)", [row])

    def _check_bodies(self, traces: Sequence[Trace], report: Report) -> None:
        by_body: dict[str, list[Trace]] = {}
        for trace in traces:
            by_body.setdefault(trace.digest, []).append(trace)
        first, *others = by_body.values()
        command_id = first[0].command_id
        if any(trace.refuses for trace in first):
            what = "refused as another body under a used id, though it came first"
            report(Violation("I3", self._at(first[-1].last), what, (command_id,)))
        for body in others:
            # Where there is no execution only so many ids are remembered; one that closed long ago remembers none.
            forgotten = first[0].is_unknown or all(trace.plain == trace.count for trace in body)
            if not forgotten and not all(trace.refuses == trace.count for trace in body):
                what = "two bodies of one command id were decided"
                report(Violation("I2", self._at(body[0].first), what, (command_id,)))
        for body in by_body.values():
            self._check_once(body, report)

    def _check_once(self, body: Sequence[Trace], report: Report) -> None:
        """One command's events stand side by side, in one term, from one place on the commands topic."""
        first, *again = body
        # A run that ended long ago keeps only its id: a late repeat is refused again, which changes nothing; and one
        # that had been given up is given up again. So is a repeat of what was refused where there is no run, or for
        # want of authority to publish, once so many others of its sender were.
        given_up = first.first_type == "CommandAbandoned"
        if first.is_one and all(
            trace.plain + (trace.abandons if given_up else 0) == trace.count
            or (first.is_passing and trace.is_passing and trace.count == 1)
            for trace in again
        ):
            return
        last = body[-1]
        what = "one command was decided twice"
        report(Violation("I2", self._at(last.last), what, (last.command_id, last.last_type)))

    def _at(self, offset: int) -> str:
        return f"{self._tp}@{offset}"


_UNANSWERED = """
SELECT c.place, c.id, c.type FROM commands c
WHERE c.part = ? AND c.type <> ?
  AND NOT EXISTS (SELECT 1 FROM traces t WHERE t.part = ? AND t.name = c.name AND t.digest IN (c.digest, ''))
  AND NOT EXISTS (SELECT 1 FROM letters l WHERE l.id = ? || c.place)
ORDER BY c.place
"""


def _decoded(row: tuple[Any, ...]) -> Trace:
    return msgspec.msgpack.decode(row[0], type=Trace)
