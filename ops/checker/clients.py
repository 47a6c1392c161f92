"""What clients saw and did, held against the log: acknowledgements that must survive, effects that must be let.

A history line is a JSON object with `at` (ms), `client`, `op`, `tenant`, `execution_id`, and by op:

    propose, decide, consume, report …   command_id, and call_id / hold_id / digest / attempt_id of what was asked
    ack       command_id, events: the ids of the events that the client took for its answer; and where it is known
              command_digest, of the body that it had sent
    effect    call_id, digest, attempt_id: the tool ran, outside of everything that Placet can see
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ops.checker.facts import Fact
from ops.checker.violations import Violation

Line = Mapping[str, Any]
Report = Callable[[Violation], None]
# What a client asked for is held against the event that took it: op → (event, field).
ASKED = {"decide": "DecisionRecorded", "consume": "GrantConsumed"}
# What a line must have, what one of an op must have besides, and what it may have.
COMMON = ("at", "client", "op")
RUN = ("tenant", "project", "execution_id")
NEEDED = {
    "ack": ("tenant", "command_id", "events"),
    "effect": (*RUN, "call_id", "attempt_id", "digest"),
    **dict.fromkeys(ASKED, ("command_id",)),
}
OPTIONAL = {"ack": (*RUN, "command_digest"), **dict.fromkeys(ASKED, (*RUN, "digest", "command_digest"))}
SHOWN_MAX = 40


def fault_of(line: Any) -> str:
    """What is wrong with a history line, as the rest of a sentence about it; empty if nothing is.

    An optional field that is null is as if it were missing; fields that are not held against the log may be anything.
    """
    if not isinstance(line, dict):
        return f"has no {', '.join(COMMON)}"
    op = str(line.get("op"))
    needed = (*COMMON, *NEEDED.get(op, ()))
    if missing := [name for name in needed if name not in line]:
        return f"has no {', '.join(missing)}"
    given = [name for name in OPTIONAL.get(op, ()) if line.get(name) is not None]
    for name in (*needed, *given):
        kind, fits = _KINDS.get(name, _TEXT)
        if not fits(line[name]):
            shown = json.dumps(line[name])
            cut = shown if len(shown) <= SHOWN_MAX else f"{shown[:SHOWN_MAX]}…"
            return f"has {cut} as {name}, which must be {kind}"
    return ""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_text(value: Any) -> bool:
    # A lone surrogate can be written to no output.
    return isinstance(value, str) and not any("\ud800" <= one <= "\udfff" for one in value)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


_TEXT = ("a text", _is_text)
_KINDS = {"at": ("a number", _is_number), "events": ("a list of texts", _are_texts)}


class Heard:
    """Clients' lines, and the counting facts of all partitions that they speak of: no others are kept."""

    def __init__(self, histories: Iterable[Line]) -> None:
        self._lines = list(histories)
        self._facts: dict[str, list[Fact]] = {
            line["command_id"]: [] for line in self._lines if line["op"] == "ack" or line["op"] in ASKED
        }
        self._attempts = {
            (line["call_id"], line["attempt_id"]) for line in self._lines if line["op"] == "effect"
        }
        self._consumed: list[Fact] = []

    def read(self, fact: Fact) -> None:
        """Take the next counting fact."""
        if (known := self._facts.get(fact.command_id)) is not None:
            known.append(fact)
        if fact.type == "GrantConsumed" and (fact.body.call_id, fact.body.attempt_id) in self._attempts:
            self._consumed.append(fact)

    def check(self, report: Report) -> None:
        """Hold every line against what was read."""
        _check_lines(self._lines, self._facts, report)
        _check_effects([line for line in self._lines if line["op"] == "effect"], self._consumed, report)


def _check_lines(lines: Sequence[Line], by_command: Mapping[str, Sequence[Fact]], report: Report) -> None:
    asked = {(line["command_id"], _body(line), _run(line)): line for line in lines if line["op"] in ASKED}
    for line in lines:
        if line["op"] == "ack":
            _check_ack(line, by_command.get(line["command_id"], []), report)
    for (command_id, body, run), line in asked.items():
        found = [fact for fact in by_command.get(command_id, []) if _is_of(run, fact)]
        _check_asked(line, [fact for fact in found if not body or fact.command_digest == body], report)


def _check_ack(line: Line, found: Sequence[Fact], report: Report) -> None:
    ids = {fact.event_id for fact in found}
    lost = [event_id for event_id in line["events"] if event_id not in ids]
    if lost:
        what = "an acknowledged answer is not in the log"
        report(Violation("I3", _where(line), what, (line["command_id"], *lost)))
    taken = _taken(line, found)
    others = [fact for fact in taken if fact.command_digest != _body(line)]
    if _body(line) and others:
        what = "answered with what was decided about another body"
        report(Violation("I3", _where(line), what, (line["command_id"], others[0].where)))
    is_own = [fact.key.split("/")[0] == line["tenant"] for fact in taken or found]
    if (taken and not all(is_own)) or (found and not any(is_own)):
        report(Violation("I9", _where(line), "answered from another tenant's key", (line["command_id"],)))


def _taken(line: Line, found: Sequence[Fact]) -> list[Fact]:
    """The facts that a client took for its answer, of the run that it asked about where they are there.

    Doors that choose the ids of their commands may choose one in two runs, and then events' ids are the same, too.
    """
    taken = [fact for fact in found if fact.event_id in line["events"]]
    own = {fact.event_id for fact in taken if _is_of(_run(line), fact)}
    return [fact for fact in taken if _is_of(_run(line), fact) or fact.event_id not in own]


def _check_asked(line: Line, found: Sequence[Fact], report: Report) -> None:
    for fact in found:
        if fact.type != ASKED[line["op"]] or not line.get("digest") or _is_editors_vote(fact, found):
            continue
        if fact.body.digest != line["digest"]:
            what = "taken for another digest than the one that was seen"
            report(Violation("I1", fact.where, what, (line["digest"], fact.body.digest, line["command_id"])))


def _body(line: Line) -> str:
    return str(line.get("command_digest") or "")


def _run(line: Line) -> tuple[str, ...]:
    """Tenant, project and execution of a line, as far as it names them."""
    return tuple(str(line.get(name) or "") for name in RUN)


def _is_of(run: Sequence[str], fact: Fact) -> bool:
    """Whether a fact is of a run: the same command id elsewhere is another command."""
    return all(name in ("", part) for name, part in zip(run, fact.key.split("/"), strict=False))


def _is_editors_vote(fact: Fact, found: Sequence[Fact]) -> bool:
    """Whether a decision is the editor's own word on the new digest, which the same command's edit made."""
    edits = [each for each in found if each.type == "DecisionRecorded" and each.body.decision == "edit"]
    proposed = {each.body.digest for each in found if each.type == "ToolCallProposed"}
    is_vote = fact.type == "DecisionRecorded" and fact.body.decision == "approve"
    return is_vote and bool(edits) and fact.body.digest in proposed


def _check_effects(effects: Sequence[Line], facts: Sequence[Fact], report: Report) -> None:
    grants = {(fact.key, fact.body.call_id, fact.body.attempt_id): fact for fact in facts}
    ran: set[tuple[str, str, str]] = set()
    for line in effects:
        key = f"{line['tenant']}/{line['project']}/{line['execution_id']}"
        attempt = (key, line["call_id"], line["attempt_id"])
        grant = grants.get(attempt)
        if grant is None:
            report(Violation("I1", _where(line), "an effect without a consumed release", attempt))
        elif grant.body.digest != line["digest"]:
            report(Violation("I1", _where(line), "an effect with another digest than released", attempt))
        if attempt in ran:
            report(Violation("I2", _where(line), "one attempt had its effect twice", attempt))
        ran.add(attempt)


def _where(line: Line) -> str:
    return f"{line['client']} at {line['at']}"
