"""What the person who runs a fork decides on each hold, and the comment that says why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ops.fork.point import Instead, Point, said_of
from ops.fork.recorded import Answered, RecordedCall
from schemas.canonical import parse_strict
from schemas.events import holds as h
from schemas.limits import TEXT_MAX_CHARS


@dataclass(frozen=True)
class Said:
    """A decision to send: approve, edit or reject, with the comment, and with the arguments of an edit.

    `remember` is given for an approval that also counts for calls like it in the run: for which arguments.
    """

    word: str
    comment: str
    arguments: Mapping[str, Any] | None = None
    remember: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Sayings:
    """The decisions of one fork.

    Attributes:
        execution_id: of the original.
        point: the decision that is replaced.
        instead: what is put in its place.
    """

    execution_id: str
    point: Point
    instead: Instead

    def on(self, call: RecordedCall, number: int) -> Said | None:
        """What to decide on a call's hold of this number (from 0); None if the original does not say.

        A hold that the original did not have is decided as the original's call went on: the policy, a standing rule
        or trust had released it there, or the policy had denied it.
        """
        if call is self.point.call and number >= self.point.number:
            return self._instead(is_first=number == self.point.number)
        if number < len(call.holds):
            return self._recorded(call.holds[number])
        if call.released is not None:
            return Said("approve", self._text(f"{call.released.released_by} had released it"))
        if call.denied is not None:
            return Said("reject", self._text(f"{call.denied.cause} had denied it", call.denied.feedback))
        return None

    def _instead(self, *, is_first: bool) -> Said:
        word, edited = self.instead.word, self.instead.arguments
        if word == "edit" and not is_first:
            # The edited call asks again, and the person is still of the same mind.
            word, edited = "approve", None
        text = self._text(f"{word} in place of the recorded {self.point.said}", self.instead.reason)
        return Said(word, text, edited)

    def _recorded(self, one: Answered) -> Said | None:
        decision = one.decision
        if decision is None:
            return Said("reject", self._text("nobody had decided in time")) if one.expired else None
        edited = None
        if decision.decision == "edit" and decision.edited_arguments is not None:
            edited = parse_strict(decision.edited_arguments)
        word = "reject" if decision.decision == "respond" else decision.decision
        text = self._text(f"recorded {said_of(one)}", decision.feedback)
        return Said(word, text, edited, _remembered(decision))

    def on_question(self, one: Answered | None, *, timed_out: bool) -> str:
        """The comment on the answer to a question."""
        return self._text("recorded default" if timed_out or one is None else f"recorded {said_of(one)}")

    def _text(self, why: str, feedback: str = "") -> str:
        text = f"fork of {self.execution_id} at {self.point.name}: {why}"
        return (f"{text}: {feedback}" if feedback else text)[:TEXT_MAX_CHARS]


def _remembered(decision: h.DecisionRecorded) -> Mapping[str, Any] | None:
    """For which arguments an approval was remembered in its run; a standing rule is not made again."""
    if decision.scope != "execution" or decision.remember is None:
        return None
    return {"arguments": parse_strict(decision.remember)["arguments"]}
