"""How many calls may be open at once: of one subject, of those without a valid token, and that wait.

Calls that have no valid token take nothing from those that have one: they are counted apart, by their address.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, contextmanager

import grpc

from gateway.rpc.callers import Caller, Callers
from gateway.rpc.long_messages import counts_for
from gateway.rpc.metadata import Context, address_of, said_in
from gateway.rpc.upstream import CONNECTIONS_MAX, Refused
from gateway.shares.open_limit import OpenLimit

# Of each method that needs no token, and of all calls whose token is not known to be valid.
STRANGERS_OF_ADDRESS = 64
STRANGERS_MAX = 512
# Each call that waits has a connection to the gateway: some stay free for those that do not, whoever waits.
WAITS_MAX = CONNECTIONS_MAX * 4 // 5
CALLS = "calls without a valid token"


class Admission:
    """Counts open calls, and refuses those that are too many."""

    def __init__(self, callers: Callers, calls_at_once: int) -> None:
        """Begin without calls.

        Args:
            callers: tells whose a call is.
            calls_at_once: the open calls of one subject.
        """
        self._callers = callers
        self._calls = OpenLimit(calls_at_once, f"{calls_at_once} calls of this subject are open: end some")
        self._waits = OpenLimit(WAITS_MAX, "too many calls wait: ask again without waiting", WAITS_MAX)
        self._strangers: defaultdict[str, OpenLimit] = defaultdict(
            lambda: OpenLimit(STRANGERS_OF_ADDRESS, "too many calls without a token are open", STRANGERS_MAX)
        )

    @asynccontextmanager
    async def stranger(self, method: str, context: Context) -> AsyncIterator[None]:
        """Count a call of a method that needs no token.

        Raises:
            Problem: 429 quota, too many of its address, or of all, are open.
        """
        with self._stranger(method, context):
            yield

    @asynccontextmanager
    async def call(self, method: str, context: Context) -> AsyncIterator[Caller | None]:
        """Count a call of a method that needs a token; yields its caller as `Callers.caller`.

        Raises:
            Problem: 429 quota, too many are open; otherwise as `Callers.caller`.
        """
        said, callers = said_in(context), self._callers
        with ExitStack() as taken:
            if not callers.is_known(said):
                taken.enter_context(self._stranger(CALLS, context))
            caller = await callers.caller(said, context)
            if caller is not None:
                taken.close()
                taken.enter_context(self._calls.of(caller))
            counts_for(("", address_of(context.peer())) if caller is None else caller)
            try:
                yield caller
            except Refused as error:
                if error.code is grpc.StatusCode.UNAUTHENTICATED:
                    callers.failed(said, context)
                raise
            if caller is None:
                callers.accepted(said)

    def _stranger(self, method: str, context: Context) -> AbstractContextManager[None]:
        return self._strangers[method].of(address_of(context.peer()))

    @contextmanager
    def waiting(self, caller: Caller | None) -> Iterator[None]:
        """Count a call that waits for a person; without a caller it is bounded as a stranger's alone.

        Raises:
            Problem: 429 quota, too many of its tenant, or of all, wait.
        """
        with self._waits.of(caller and caller.tenant):
            yield
