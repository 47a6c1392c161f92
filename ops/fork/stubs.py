"""Recorded results in the place of tools, and the values that came out of results which a branch does not have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from ops.fork.point import Instead, Point
from ops.fork.recorded import RecordedCall, RecordedQuestion, Result, Run, key_of
from schemas.canonical import canonical
from schemas.sensitive import placeholders, pointer
from services.domain.policy.identifying import Value, identifying_of
from services.domain.policy.leaves import TooMany
from services.domain.untrusted import NO_WORDS, WordsOfRun

SHOWN_MAX_CHARS = 200


class Stub(NamedTuple):
    """A result, and where it is from: the call that returned it in the original, or None if it is assumed."""

    result: Result
    call_id: str | None


class Used(NamedTuple):
    """A value of a call that came out of a result which the branch does not have."""

    path: str
    value: str
    of_call: str


@dataclass(frozen=True)
class Stubs:
    """The results of a recorded run, for the calls of its fork."""

    run: Run
    point: Point
    instead: Instead

    def of(self, call_id: str, tool: str, arguments: str) -> Stub | None:
        """The result for a call with these arguments (canonical JSON): its own, else that of the first equal one.

        Without one, the replaced call has the result that is assumed for it, if there is one.
        """
        key = key_of(tool, arguments)
        own = self.run.calls.get(call_id)
        equal = [one for one in (own, *self.run.calls.values()) if one is not None and _ran_as(one) == key]
        if equal and (result := equal[0].result) is not None:
            return Stub(result, equal[0].call_id)
        if self.instead.is_assumed and call_id == self.point.call.call_id:
            return Stub(Result("succeeded", canonical(self.instead.output)), None)
        return None


def _ran_as(call: RecordedCall) -> tuple[str, str] | None:
    """The tool and the arguments with which a call ran; None if it did not, or nobody knows what it returned."""
    if call.result is None or call.released is None:
        return None
    return key_of(call.tool, call.released.arguments)


@dataclass
class Values:
    """What the agent of a branch can have read so far, in comparison with what the original's had.

    Attributes:
        run: the original.
        got: the results that the branch has, by the calls to which they were given.
    """

    run: Run
    got: dict[str, Result] = field(default_factory=dict)

    def used_by(self, call: RecordedCall) -> tuple[Used, ...] | None:
        """The identifying values of a proposed call that came only out of results which this branch does not have.

        As for taint, a value counts as coming from a text that has each word of it, or of what gives it away
        (`Value.origins`), and numbers are not looked at.

        Returns:
            The values; None if there are such results, and the call has values that are not looked at.
        """
        missing = list(self._missing(call))
        if not missing:
            return ()
        try:
            values = identifying_of(call.arguments, _risk_parts(call)).values
        except (TooMany, OverflowError):
            return None
        found: dict[str, Used] = {}
        for other, result in missing:
            known = tuple(self._known_before(other))
            for value in values:
                if value.path not in found and any(
                    _in(result.text, origin) and not any(_knows(text, origin) for text in known)
                    for origin in value.origins
                ):
                    found[value.path] = Used(value.path, _shown(value), other.call_id)
        return tuple(found[path] for path in sorted(found))

    def _missing(self, call: RecordedCall) -> Iterator[tuple[RecordedCall, Result]]:
        """The results that the original's agent had before it proposed this call, and the branch's has not."""
        before = call.events[0].version
        for other in self.run.calls.values():
            if other.result is None or other.result_version >= before:
                continue
            if self.got.get(other.call_id) != other.result:
                yield other, other.result

    def _known_before(self, other: RecordedCall) -> Iterator[str]:
        """What the agent knew without a result: what people said, other results, and what it had proposed before."""
        yield from (self.run.started.request, self.run.started.context)
        for step in self.run.steps:
            if isinstance(step, RecordedQuestion):
                if step.provided is not None:
                    yield step.provided.response
            elif step.events[0].version < other.result_version:
                yield step.proposed.arguments
        yield from (result.text for result in self.got.values())


def _risk_parts(call: RecordedCall) -> tuple[str, ...]:
    """The parts of the risk of its verdict: where a tool runs code, no text of its calls is prose."""
    return () if call.verdict is None else call.verdict.risk_parts


def _shown(value: Value) -> str:
    """A value; of a long one its beginning, and not the digest that stands for it elsewhere."""
    return value.text if not value.whole else f"{value.whole[:SHOWN_MAX_CHARS]}…"


def _in(text: str, value: str) -> bool:
    """True if a value can come from a text: it has all of its words, or is too long to be looked at."""
    return bool(_words_of(text).tainted([value], ""))


def _knows(text: str, value: str) -> bool:
    return not _words_of(text).is_full and _in(text, value)


@lru_cache(maxsize=4_096)
def _words_of(text: str) -> WordsOfRun:
    return NO_WORDS.with_output("text", text)


def sealed_paths(arguments: Mapping[str, object]) -> tuple[str, ...]:
    """The places of sealed values in arguments, as JSON pointers: only their commitments are in the log."""
    return tuple(pointer(path) for path, _, _ in placeholders(arguments))
