"""The checker's own model of planted calls: they never run, and what people answered is told at once, as it was.

Written apart from `schemas.probe` and `schemas.json_pointer` on purpose: a mistake there must not be repeated here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ops.checker.facts import Fact
from ops.checker.run_facts import RunFacts

_NOTHING = object()


@dataclass(slots=True)
class Planted:
    """A planted call: by whom, its arguments as JSON, and the places in them that an edit must change.

    `answers` are (account, decision, caught) of all who have voted; `ended` is what the last of them made of it.
    `over` is true once its hold has ended, `told` once ProbeEnded says what it was.
    """

    by: str
    arguments: str
    wrong: tuple[str, ...]
    answers: list[tuple[str, str, bool]] = field(default_factory=list)
    ended: str = ""
    over: bool = False
    told: bool = False

    def voted(self, body: Any) -> None:
        """Take a DecisionRecorded on the call."""
        caught = body.decision in ("reject", "respond")
        if body.decision == "edit" and self.wrong:
            before, after = _value(self.arguments), _value(body.edited_arguments)
            caught = all(_part(before, place) != _part(after, place) for place in self.wrong)
        self.answers.append((body.by, body.decision, caught))
        if body.resolves:
            self.ended = "caught" if caught else "missed"

    def misfits(self, body: Any, hold_state: str) -> Iterator[str]:
        """What a ProbeEnded says that is not so.

        Args:
            body: the ProbeEnded.
            hold_state: of the call's hold by then: resolved, expired or cancelled.
        """
        if body.result != (self.ended or hold_state):
            yield f"a planted call told as {body.result} that was {self.ended or hold_state}"
        listed = _value(body.answers)
        told = [_answer(one) for one in listed] if isinstance(listed, list) else None
        if told != self.answers:
            yield "other answers to a planted call than people gave"
        if (body.planted_by, _value(body.wrong)) != (self.by, list(self.wrong)):
            yield "the end of another planted call than the one that is named"
        if any(by == self.by for by, _, _ in self.answers):
            yield "who planted a call has answered to it"


def planted(body: Any) -> Planted | None:
    """The planted call of a ToolCallProposed; None for any other call."""
    if body.probe is None:
        return None
    said = _value(body.probe)
    if not isinstance(said, dict):
        return Planted("", body.arguments, ())
    wrong = said.get("wrong")
    places = tuple(map(str, wrong)) if isinstance(wrong, list) else ()
    return Planted(str(said.get("by")), body.arguments, places)


def is_for_it(run: RunFacts, proposed: Fact) -> bool:
    """Whether a run was opened for the planted call that is proposed in it, and has no other before it."""
    # A version that opened the run by the same command left no mark in its start.
    is_opened_for_it = run.opened_for == proposed.body.probe or run.started_command == proposed.command_id
    return is_opened_for_it and not run.has_calls


def _answer(one: Any) -> tuple[Any, Any, Any]:
    return (one.get("by"), one.get("decision"), one.get("caught")) if isinstance(one, dict) else (one, "", "")


def _value(text: str | None) -> Any:
    """The value of a JSON text; what is none is no value that anything equals."""
    try:
        return json.loads(text or "")
    except (ValueError, RecursionError):
        return _NOTHING


def _part(value: Any, place: str) -> Any:
    """The part of a JSON value at a JSON Pointer (RFC 6901)."""
    for name in (step.replace("~1", "/").replace("~0", "~") for step in place.split("/")[1:]):
        try:
            if isinstance(value, list) and not (name.isascii() and name.isdigit() and name == str(int(name))):
                return _NOTHING
            value = value[int(name)] if isinstance(value, list) else value[name]
        except (ValueError, KeyError, IndexError, TypeError):
            return _NOTHING
    return value
