"""What was asked: one commands partition, and whether each command left the trace that it must leave."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain
from typing import Any

from ops.checker.facts import Fact
from ops.checker.violations import Violation
from schemas import codec
from schemas.record import RawRecord, UnreadableRecord
from services.runtime.log import TopicPartition

NUDGE = "ExpireDue"
Report = Callable[[Violation], None]


@dataclass(frozen=True, slots=True)
class Command:
    """One record of a commands topic; `body` is None when nobody can read it."""

    offset: int
    appended_ms: int
    key: str
    command_id: str
    digest: str
    body: Any


@dataclass(slots=True)
class Asked:
    """One commands partition."""

    tp: TopicPartition
    commands: dict[int, Command] = field(default_factory=dict)
    incredible: frozenset[int] = frozenset()

    def appended_ms(self, offset: int) -> int | None:
        """The broker's time of a command, if it is (still) there and can be true."""
        command = self.commands.get(offset)
        return None if command is None or offset in self.incredible else command.appended_ms


def read_commands(tp: TopicPartition, raws: Iterable[RawRecord], newest_ms: int | None = None) -> Asked:
    """A commands partition; `newest_ms` is the newest time that anything in the log was decided at."""
    commands = {raw.offset: _command(raw) for raw in raws}
    return Asked(tp, commands, _incredible(list(commands.values()), newest_ms))


def _incredible(commands: Sequence[Command], newest_ms: int | None) -> frozenset[int]:
    """Offsets of commands that the broker stamped while its clock was wrong.

    Later ones, or all that was decided, are older; or earlier ones are newer. A decider that doubts a stamp asks for
    the time on the same partition of the executions' commands, so there it shows.
    """
    newest = list(accumulate((command.appended_ms for command in commands), max))
    last = [] if newest_ms is None else [newest_ms]
    stamps = (command.appended_ms for command in reversed(commands))
    oldest = list(accumulate(chain(last, stamps), min))[len(last) :][::-1]
    return frozenset(
        command.offset
        for command, before, after in zip(commands, newest, oldest, strict=True)
        if not before <= command.appended_ms <= after
    )


def _command(raw: RawRecord) -> Command:
    try:
        body: Any = codec.decode(raw.value)
    except UnreadableRecord:
        body = None
    command_id = dict(raw.headers).get("ce_id", b"").decode(errors="replace")
    digest = hashlib.sha256(raw.value).hexdigest()[:32]
    return Command(raw.offset, raw.timestamp_ms, raw.key.decode(errors="replace"), command_id, digest, body)


def check_answers(asked: Asked, traces: Mapping[tuple[str, str], list[Fact]], report: Report) -> None:
    """Every event answers the command that it names: same id, key and body, decided once."""
    for (_, command_id), facts in traces.items():
        _check_bodies(command_id, facts, report)
        for fact in facts:
            command = asked.commands.get(fact.command_offset)
            if command is not None:
                _check_answer(command, fact, report)


def check_no_command_was_passed_over(
    asked: Asked, facts: Sequence[Fact], letters: frozenset[str], at_rest: bool, report: Report
) -> None:
    """Commands are dealt with in order, so before the newest one that left events none may be without a trace.

    At rest, none at all may be. Nudges leave none when they come early; dead letters are traces as well.
    """
    answered = {(fact.key, fact.command_id, fact.command_digest) for fact in facts}
    undigested = {(fact.key, fact.command_id) for fact in facts if not fact.command_digest}
    dealt_with = max((fact.command_offset for fact in facts), default=-1)
    through = [fact.body.commands_through for fact in facts if fact.type == "WriterAlive"]
    reached = max([dealt_with, *through])
    for command in asked.commands.values():
        if command.offset > reached and not at_rest:
            return
        lettered = f"{asked.tp.topic}/{asked.tp.partition}/{command.offset}" in letters
        nudge = type(command.body).__name__ == NUDGE
        name = (command.key, command.command_id)
        traced = (*name, command.digest) in answered or name in undigested
        if not traced and not lettered and not nudge:
            number = "I3" if command.offset <= reached else "I12"
            what = "a command was passed over" if number == "I3" else "a command was never dealt with"
            where = f"{asked.tp}@{command.offset}"
            report(Violation(number, where, what, (command.command_id, type(command.body).__name__)))


def _check_bodies(command_id: str, facts: Sequence[Fact], report: Report) -> None:
    """An id stands for the body that came first: that one is decided once, and every other body is refused."""
    by_body: dict[str, list[Fact]] = {}
    for fact in facts:
        by_body.setdefault(fact.command_digest, []).append(fact)
    first, *others = by_body.values()
    if any(_refuses_reuse(fact) for fact in first):
        what = "refused as another body under a used id, though it came first"
        report(Violation("I3", first[-1].where, what, (command_id,)))
    for body in others:
        # Where there is no execution only so many ids are remembered; one that closed long ago remembers none.
        forgotten = _code(first[0]) == "not_found" or all(map(_changes_nothing, body))
        if not forgotten and not all(map(_refuses_reuse, body)):
            report(Violation("I2", body[0].where, "two bodies of one command id were decided", (command_id,)))
    for body in by_body.values():
        _check_once(command_id, body, report)


def _refuses_reuse(fact: Fact) -> bool:
    return _code(fact) == "idempotency_key_reused"


def _code(fact: Fact) -> str:
    return str(getattr(fact.body, "code", ""))


def _check_once(command_id: str, facts: Sequence[Fact], report: Report) -> None:
    """One command's events stand side by side, in one term, from one place on the commands topic."""
    first = facts[0]
    together = [fact for i, fact in enumerate(facts) if fact.offset == first.offset + i]
    again = facts[len(together) :]
    one = len({(fact.term, fact.command_offset) for fact in together}) == 1
    # A run that ended long ago keeps only its id: a late repeat is refused anew, which changes nothing; and one
    # that had been given up is given up anew.
    if one and all(_changes_nothing(fact) or fact.type == first.type == "CommandAbandoned" for fact in again):
        return
    report(Violation("I2", facts[-1].where, "one command was decided twice", (command_id, facts[-1].type)))


def _changes_nothing(fact: Fact) -> bool:
    return fact.type in ("CommandRefused", "DecisionRefused") and fact.body.code == "execution_closed"


def _check_answer(command: Command, fact: Fact, report: Report) -> None:
    if (command.command_id, command.key) != (fact.command_id, fact.key):
        report(
            Violation("I3", fact.where, "the event names a command that stands elsewhere", (fact.command_id,))
        )
    if fact.command_digest and fact.command_digest != command.digest:
        report(
            Violation("I3", fact.where, "the event names another body than the command's", (fact.command_id,))
        )
    differing = _differs(command.body, fact)
    if differing:
        report(Violation("I1", fact.where, f"decided on other {differing} than asked", (fact.command_id,)))


def _differs(body: Any, fact: Fact) -> str:
    """The name of what the event took otherwise than the command said it."""
    editors_vote = (
        fact.type == "DecisionRecorded" and fact.body.decision == "approve" and not fact.body.resolves
    )
    if editors_vote and getattr(body, "decision", "") == "edit":
        # An edit's own fact stands before it; this one counts its editor on the hold that it opened.
        return ""
    pairs = {
        ("DecideHold", "DecisionRecorded"): ("hold_id", "digest", "decision"),
        ("ConsumeGrant", "GrantConsumed"): ("call_id", "digest", "attempt_id"),
        ("RenewLease", "LeaseRenewed"): ("call_id", "attempt_id"),
        ("ProposeToolCall", "ToolCallProposed"): ("call_id", "tool", "arguments"),
        ("ReportResult", "ToolCallSucceeded"): ("call_id", "attempt_id", "output"),
    }
    for name in pairs.get((type(body).__name__, fact.type), ()):
        said = getattr(body, name)
        # A request has no arguments to be seen, so an answer to it may leave the digest out.
        if getattr(fact.body, name) != said and not (name == "digest" and not said and not fact.body.call_id):
            return name
    return ""
