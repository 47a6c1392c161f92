"""The variables that this process has taken from the vault, for a run that is entered again before it ends.

The gateway delivers them once. A function that runs again from its beginning, as that of a turn does which was given
back until a person had answered something else, asks for the same variables again: this process has them already, and
nobody is asked to type them twice. They are kept in memory only, until the run or turn ends, and for a day at most.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from typing import NamedTuple

from placet import clock

RUNS_MAX = 1_000
KEPT_S = 24 * 3600.0
# The timer must not be early.
DROPPED_AFTER_S = 1.0


class _Kept(NamedTuple):
    until: float
    by_request: dict[str, Mapping[str, str]]


class TakenVariables:
    """The variables of the runs of one client, by execution and request."""

    def __init__(self) -> None:
        # In the order in which they end.
        self._runs: OrderedDict[str, _Kept] = OrderedDict()

    def keep(self, execution_id: str, request_id: str, values: Mapping[str, str]) -> None:
        """Keep the values that answered a request of a run; called on the client's loop."""
        before = self._runs.pop(execution_id, None)
        by_request = {} if before is None else before.by_request
        self._runs[execution_id] = _Kept(clock.now() + KEPT_S, {**by_request, request_id: dict(values)})
        self._drop_old()
        asyncio.get_running_loop().call_later(KEPT_S + DROPPED_AFTER_S, self._drop_old)

    def of(self, execution_id: str, request_id: str) -> Mapping[str, str] | None:
        """The values that answered a request; None if they are not here."""
        self._drop_old()
        kept = self._runs.get(execution_id)
        found = None if kept is None else kept.by_request.get(request_id)
        # The caller may change what it gets.
        return None if found is None else dict(found)

    def drop(self, execution_id: str, request_id: str) -> None:
        """Forget the values of one request, which were erased; does nothing if there are none."""
        if (kept := self._runs.get(execution_id)) is not None:
            kept.by_request.pop(request_id, None)

    def forget(self, execution_id: str) -> None:
        """Forget the values of a run; does nothing if there are none."""
        self._runs.pop(execution_id, None)

    def _drop_old(self) -> None:
        now = clock.now()
        while self._runs and (len(self._runs) > RUNS_MAX or next(iter(self._runs.values())).until <= now):
            self._runs.popitem(last=False)
