"""One try at a gated call or a question, and what the next try at the same takes over.

Which of several equal calls one is, its number, is spent once its caller was told how it ended, as the log has it:
what it returned, that it failed, that it was denied. Left in any other way (cancelled, interrupted, timed out, not
answered, for a person to look at) a try gives its number back: the equal call made again is the same call, here as
in a restarted process, and meets what has become of it.

An attempt under which the function has certainly not begun is taken over with the number: else a cancellation between
the consumption and the function would leave the call to a person for nothing.

All of it happens on the client's event loop, so that an interrupt never meets it half done.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass

from placet.ids import attempt_id, call_id
from placet.models import ToolCall
from placet.occurrences import CallKind, Occurrences


@dataclass(frozen=True)
class Attempt:
    """What something is consumed under: `asked_at` is when that was first asked for, by the loop's clock."""

    id: str
    asked_at: float
    taken_over: bool = False


# By process too: a fork has a copy of what is left, and both would run under one attempt.
AttemptKey = tuple[int, str, str]


class Tries:
    """What the tries of one execution share.

    `unused` are the client's attempts that nothing was run under, by process, execution and name: a block that is
    entered anew under the same execution id takes over what was left in the one before.
    """

    def __init__(self, execution_id: str, unused: MutableMapping[AttemptKey, Attempt]) -> None:
        self.execution_id = execution_id
        self.occurrences = Occurrences()
        self._unused = unused

    def put_back(self, name: str, attempt: Attempt) -> None:
        """An attempt that nothing was run under is for the next try."""
        self._unused[self._key(name)] = attempt

    def take(self, name: str) -> Attempt:
        """The attempt that is left of an earlier try, or a fresh one; nobody else gets it."""
        left = self._unused.pop(self._key(name), None)
        if left is not None:
            return Attempt(left.id, left.asked_at, taken_over=True)
        return Attempt(attempt_id(), asyncio.get_running_loop().time())

    def drop(self, name: str) -> None:
        """Forget the attempt that is left, if any."""
        self._unused.pop(self._key(name), None)

    def has(self, call: ToolCall) -> bool:
        """Whether a call is consumed by an attempt that is left of an earlier try."""
        left = self._unused.get(self._key(call.call_id))
        return left is not None and call.status == "consumed" and call.raw.get("attempt_id") == left.id

    def _key(self, name: str) -> AttemptKey:
        return os.getpid(), self.execution_id, name


class Try:
    """One try. `started` says that the function has begun, `failure` what it raised, once the log has that."""

    def __init__(self, tries: Tries) -> None:
        self._tries = tries
        self._numbered: tuple[CallKind, int] | None = None
        self._attempt: tuple[str, Attempt] | None = None
        self._is_over = False
        self.started = False
        self.failure: BaseException | None = None

    @property
    def is_over(self) -> bool:
        """Whether it was left, or its caller was told of its end by an error."""
        return self._is_over

    def number(self, name: str, digest: str) -> str:
        """The id of the next such thing: uuid5 of execution, name, digest and occurrence."""
        self._check()
        kind = name, digest
        number = self._tries.occurrences.next(kind)
        self._numbered = kind, number
        return call_id(self._tries.execution_id, name, digest, number)

    def proposing(self, name: str) -> Attempt:
        """The attempt that a call is proposed with. Until it has the call it is left for whoever consumes."""
        self._check()
        attempt = self._tries.take(name)
        self._tries.put_back(name, attempt)
        return attempt

    def drop(self, name: str) -> None:
        """Forget an attempt under which nothing was consumed, and never will be."""
        self._tries.drop(name)

    def consuming(self, name: str) -> Attempt:
        """The attempt to consume under; asked for right before the consumption is."""
        self._check()
        attempt = self._tries.take(name)
        self._attempt = name, attempt
        return attempt

    def goes_on(self, call: ToolCall) -> bool:
        """Whether a call that is consumed already is this one's to run."""
        return self._tries.has(call)

    def lost(self) -> None:
        """Another attempt has it."""
        self._attempt = None

    def spend(self) -> None:
        """Its caller is told how it ended, though it is left by an error."""
        self._is_over = True

    def leave(self) -> None:
        """Its caller was not told of an end that the log has; harmless when repeated."""
        if self._is_over:
            return
        self._is_over = True
        if self._numbered is not None:
            self._tries.occurrences.give_back(*self._numbered)
        if self._attempt is not None and not self.started:
            self._tries.put_back(*self._attempt)

    @contextmanager
    def left_by_errors(self, but: tuple[type[BaseException], ...] = ()) -> Iterator[None]:
        """Leave it on the loop, by any error but those that tell its caller how it ended.

        An interrupt may meet such an error on its way out of the waiting thread, where nobody else would leave it.
        """
        try:
            yield
        except BaseException as error:
            if not isinstance(error, but):
                self.leave()
            raise

    def _check(self) -> None:
        # Whoever waited is gone, and the next try may have begun: asyncio's cancellation can be late, or lost.
        if self._is_over:
            raise asyncio.CancelledError
