"""What was asked: one commands partition, and whether each command left the trace that it must leave."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import Any, NamedTuple

import msgspec

from log.places import TopicPartition
from ops.checker.facts import Fact
from ops.checker.scratch import Scratch, short
from ops.checker.violations import Violation
from schemas import codec
from schemas.record import RawRecord, UnreadableRecord

NUDGE = "ExpireDue"
Report = Callable[[Violation], None]
# What an event must have taken from its command as the command said it: (command, event) → fields.
TAKEN: dict[tuple[str, str], tuple[str, ...]] = {
    ("DecideHold", "DecisionRecorded"): ("hold_id", "digest", "decision"),
    ("ConsumeGrant", "GrantConsumed"): ("call_id", "digest", "attempt_id"),
    ("RenewLease", "LeaseRenewed"): ("call_id", "attempt_id"),
    ("ProposeToolCall", "ToolCallProposed"): ("call_id", "tool", "arguments"),
    ("ProposeToolCall", "GrantConsumed"): ("call_id", "attempt_id"),
    ("ReportImpact", "ImpactReported"): ("call_id", "reason"),
    ("ReportResult", "ToolCallSucceeded"): ("call_id", "attempt_id", "output"),
}
# Who alone may ask for an event.
ASKED_BY = {"GrantConsumed": frozenset({"ConsumeGrant", "ProposeToolCall"})}
# Longer values are compared by what stands for them.
KEPT_CHARS = 64


class Command(NamedTuple):
    """One record of a commands topic, with the fields of `TAKEN`; its type is "NoneType" when nobody can read it."""

    offset: int
    appended_ms: int
    name: bytes
    digest: str
    command_id: str
    type: str
    said: dict[str, Any]


@dataclass(slots=True)
class Asked:
    """One commands partition; what is asked and answered stands in the scratch."""

    tp: TopicPartition
    scratch: Scratch
    _last: Command | None = None

    def read(self, raws: Iterable[RawRecord]) -> None:
        """Take the next commands of the partition."""
        rows = []
        for raw in raws:
            at = _command(raw)
            said = msgspec.msgpack.encode(at.said)
            rows.append((str(self.tp), *at[:6], said))
        self.scratch.add("INSERT OR REPLACE INTO commands VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)

    def at(self, offset: int) -> Command | None:
        """The command at an offset, if it is (still) there."""
        if self._last is None or self._last.offset != offset:
            row = self.scratch.one(_COMMAND, (str(self.tp), offset))
            if row is None:
                return None
            place, appended_ms, name, digest, command_id, kind, said = row
            decoded = msgspec.msgpack.decode(said)
            self._last = Command(place, appended_ms, name, digest, command_id, kind, decoded)
        return self._last

    def appended_ms(self, offset: int) -> int | None:
        """The broker's time of a command, if it is (still) there; whether it can be true is told by `doubted`."""
        command = self.at(offset)
        return None if command is None else command.appended_ms

    def doubt(self, offset: int, violation: Violation) -> None:
        """Keep what is to be told if the stamp of the command at the offset can be true."""
        value = msgspec.msgpack.encode(violation)
        self.scratch.add("INSERT INTO doubts VALUES (?, ?, ?)", [(str(self.tp), offset, value)])

    def doubted(self, newest_ms: int) -> Iterator[Violation]:
        """What was kept by `doubt`, where the broker's clock was right.

        Args:
            newest_ms: the newest time that anything in the log was decided at.
        """
        found = self.scratch.rows(
            "SELECT place, value FROM doubts WHERE part = ? ORDER BY rowid", (str(self.tp),)
        )
        first = next(found, None)
        if first is None:
            return
        wrong = self._incredible(newest_ms)
        for offset, value in (first, *found):
            if offset not in wrong:
                yield msgspec.msgpack.decode(value, type=Violation)

    def _incredible(self, newest_ms: int) -> set[int]:
        """Offsets of commands that the broker stamped while its clock was wrong.

        Later ones, or all that was decided, are older; or earlier ones are newer. A decider that doubts a stamp asks
        for the time on the same partition of the executions' commands, so there it shows.
        """
        rows = self.scratch.rows(
            "SELECT place, appended_ms FROM commands WHERE part = ? ORDER BY place", (str(self.tp),)
        )
        offsets, stamps = array("q"), array("q")
        for offset, appended_ms in rows:
            offsets.append(offset)
            stamps.append(appended_ms)
        before = array("q", accumulate(stamps, max))
        after = array("q", accumulate(reversed(stamps), min, initial=newest_ms))
        after.pop(0)
        after.reverse()
        pairs = zip(offsets, stamps, before, after, strict=True)
        return {offset for offset, stamp, low, high in pairs if not low <= stamp <= high}

    def check(self, fact: Fact, report: Report) -> None:
        """Hold an event against the command that it names: same id, key and body."""
        command = self.at(fact.command_offset)
        if command is None:
            return
        if command.name != name_of(fact.key, fact.command_id):
            what = "the event names a command that is at another offset"
            report(Violation("I3", fact.where, what, (fact.command_id,)))
        if fact.command_digest and fact.command_digest != command.digest:
            what = "the event names a body that is not the command's"
            report(Violation("I3", fact.where, what, (fact.command_id,)))
        if command.type not in ASKED_BY.get(fact.type, (command.type,)):
            what = f"a {command.type} does not request a {fact.type}"
            report(Violation("I1", fact.where, what, (fact.command_id,)))
        if differing := _differs(command, fact):
            report(
                Violation(
                    "I1", fact.where, f"decided with {differing} other than requested", (fact.command_id,)
                )
            )


_COMMAND = (
    "SELECT place, appended_ms, name, digest, id, type, said FROM commands WHERE part = ? AND place = ?"
)


def name_of(key: str, command_id: str) -> bytes:
    """What stands for a command's id under its key."""
    return short(f"{key}\n{command_id}")


def _command(raw: RawRecord) -> Command:
    try:
        body: Any = codec.decode(raw.value)
    except UnreadableRecord:
        body = None
    command_id = dict(raw.headers).get("ce_id", b"") or b""
    text = command_id.decode(errors="replace")
    digest = hashlib.sha256(raw.value).hexdigest()[:32]
    kind = type(body).__name__
    said = {name: _kept(getattr(body, name)) for name in _fields_of(kind)}
    name = name_of(raw.key.decode(errors="replace"), text)
    return Command(raw.offset, raw.timestamp_ms, name, digest, text, kind, said)


@cache
def _fields_of(kind: str) -> frozenset[str]:
    return frozenset(name for (command, _), fields in TAKEN.items() if command == kind for name in fields)


def _kept(value: Any) -> Any:
    return [short(value)] if isinstance(value, str) and len(value) > KEPT_CHARS else value


def _differs(command: Command, fact: Fact) -> str:
    """The name of what the event took otherwise than the command said it."""
    said = command.said
    editors_vote = (
        fact.type == "DecisionRecorded" and fact.body.decision == "approve" and not fact.body.resolves
    )
    if editors_vote and said.get("decision") == "edit":
        # An edit's own fact stands before it; this one counts its editor on the hold that it opened.
        return ""
    for name in TAKEN.get((command.type, fact.type), ()):
        # A request has no arguments to be seen, so an answer to it may leave the digest out.
        is_left_out = name == "digest" and not said[name] and not fact.body.call_id
        if _kept(getattr(fact.body, name)) != said[name] and not is_left_out:
            return name
    return ""
