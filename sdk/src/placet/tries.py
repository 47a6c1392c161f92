"""One try at a gated call or a question, and the state that the next try at the same call takes over.

Equal calls are distinguished by a number. The number is spent once the caller was told the outcome that the log has:
the return value, the failure, the denial. A try that ends in any other way (cancelled, interrupted, timed out, not
answered, left for a person to settle) gives its number back: the equal call made again is the same call, in this
process as in a restarted one, and continues from that call's present state.

If the function has certainly not begun under an attempt, the attempt is taken over with the number. Otherwise a
cancellation between the consumption and the function would leave the call for a person to settle without need.

All of this runs on the client's event loop, so that an interrupt never finds it half done.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from placet import clock
from placet.ids import attempt_id, call_id
from placet.models import ToolCall
from placet.occurrences import CallKind, Occurrences
from placet.threads import Place


@dataclass(frozen=True)
class Attempt:
    """An attempt to consume.

    `asked_at` is the time of its first request, by `placet.clock`; `by` the last try that proposed a call with it.
    """

    id: str
    asked_at: float
    taken_over: bool = False
    by: Try | None = field(default=None, compare=False, repr=False)


# With the process id: a fork has a copy of the unused attempts, and both processes would run under one attempt.
AttemptKey = tuple[int, str, str]


class Tries:
    """The shared state of the tries of one execution.

    `unused` are the client's attempts under which nothing was run, by process, execution and name: a block that is
    entered again under the same execution id takes over the unused attempts of the block before.
    """

    def __init__(self, execution_id: str, unused: MutableMapping[AttemptKey, Attempt]) -> None:
        self.execution_id = execution_id
        self.occurrences = Occurrences()
        self._unused = unused

    def put_back(self, name: str, attempt: Attempt) -> None:
        """Keep an attempt under which nothing was run for the next try."""
        self._unused[self._key(name)] = attempt

    def take(self, name: str) -> Attempt:
        """Take the unused attempt of an earlier try, or a new one; no other try gets it."""
        left = self._unused.pop(self._key(name), None)
        if left is not None:
            return replace(left, taken_over=True)
        return Attempt(attempt_id(), clock.now())

    def drop(self, name: str) -> None:
        """Forget the unused attempt, if any."""
        self._unused.pop(self._key(name), None)

    @property
    def unstarted(self) -> tuple[str, ...]:
        """The names of the calls and questions with an attempt under which nothing was run."""
        here = os.getpid(), self.execution_id
        return tuple(name for pid, execution_id, name in self._unused if (pid, execution_id) == here)

    def unused(self, name: str) -> Attempt | None:
        """The attempt of a name under which nothing was run, if any; it stays where it is."""
        return self._unused.get(self._key(name))

    def is_under_way(self, name: str) -> bool:
        """Returns True if the try that has proposed a call with its unused attempt can still use that."""
        left = self.unused(name)
        return left is not None and left.by is not None and left.by.is_proposing

    def has(self, call: ToolCall) -> bool:
        """Returns True if a call is consumed by the unused attempt of an earlier try."""
        left = self.unused(call.call_id)
        return left is not None and call.status == "consumed" and call.raw.get("attempt_id") == left.id

    def _key(self, name: str) -> AttemptKey:
        return os.getpid(), self.execution_id, name


class Try:
    """One try.

    `started` is true once the function has begun; `failure` is its exception, once the log has it. `trace` is the
    trace context of its proposal; empty if it is not traced. `place` is its place on a thread, if it needs one.
    `is_proposing` is true from its proposal until it has permission to run, or has none to wait for.
    """

    def __init__(self, tries: Tries) -> None:
        self._tries = tries
        self.place = Place()
        self._numbered: tuple[CallKind, int] | None = None
        self._attempt: tuple[str, Attempt] | None = None
        self._is_over = False
        self.started = self.is_proposing = False
        self.failure: BaseException | None = None
        self.trace = ""

    @property
    def is_over(self) -> bool:
        """Returns True if the try was left, or its caller was told the outcome by an error."""
        return self._is_over

    def number(self, name: str, digest: str) -> str:
        """The id of the next call or question of this kind: uuid5 of execution, name, digest and occurrence."""
        self._check()
        kind = name, digest
        number = self._tries.occurrences.next(kind)
        self._numbered = kind, number
        return call_id(self._tries.execution_id, name, digest, number)

    def proposing(self, name: str) -> Attempt:
        """The attempt with which a call is proposed. Until it has consumed the call, `consuming` can take it."""
        self._check()
        attempt = replace(self._tries.take(name), by=self)
        self._tries.put_back(name, attempt)
        self.is_proposing = True
        return attempt

    def drop(self, name: str) -> None:
        """Forget an attempt under which nothing was consumed or ever will be."""
        self._tries.drop(name)

    def consuming(self, name: str) -> Attempt:
        """The attempt under which to consume; taken right before the consumption is requested."""
        self._check()
        attempt = self._tries.take(name)
        self._attempt = name, attempt
        return attempt

    def goes_on(self, call: ToolCall) -> bool:
        """Returns True if this try can run a call that is consumed already."""
        return self._tries.has(call)

    def lost(self) -> None:
        """Forget the try's attempt, since another attempt has the call."""
        self._attempt = None

    def spend(self) -> None:
        """Mark the try as over: its caller is told the outcome, though by an error."""
        self._is_over = True

    def leave(self) -> None:
        """Give the number and an unused attempt back, since the caller was told no outcome; can be repeated."""
        if self._is_over:
            return
        self._is_over = True
        if self._numbered is not None:
            self._tries.occurrences.give_back(*self._numbered)
        if self._attempt is not None and not self.started:
            self._tries.put_back(*self._attempt)

    @contextmanager
    def left_by_errors(self, but: tuple[type[BaseException], ...] = ()) -> Iterator[None]:
        """Leave the try, on the loop, by any error except those that tell its caller the outcome.

        An interrupt can replace such an error on its way out of the waiting thread, where nothing else would leave
        the try.
        """
        try:
            yield
        except BaseException as error:
            if not isinstance(error, but):
                self.leave()
            raise
        finally:
            self.is_proposing = False

    def _check(self) -> None:
        # The caller no longer waits, and the next try may have begun: asyncio's cancellation can be late or lost.
        if self._is_over:
            raise asyncio.CancelledError
