"""What the log has of each call of an evaluation: read as events over the API, call by call.

Whether a call is the task's own or an attacker's is in its id (`03-own`, `04-injected`), which no condition of a
policy can read; round, task and attack are in the execution's.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ops.errors import OpsError
from placet import AsyncPlacet

AT_ONCE = 8
TRIES = 50
PAUSE_S = 0.2
DONE = frozenset({"ToolCallSucceeded", "ToolCallFailed"})


class Place(NamedTuple):
    """Where an event is in the log."""

    type: str
    partition: int
    offset: int


@dataclass
class CallFact:
    """One call, as its events tell it.

    Attributes:
        execution_id: `r{round}.{suite}.{task}[.{attack}]`.
        call_id: `{number}-own` or `{number}-injected`.
        tool: its name.
        effect: the verdict's: allow, hold, deny.
        reason: the verdict's, such as matched, trusted, remembered.
        adaptive: what the adaptive block made of it: released, sampled, asked; empty if nothing.
        trust_class: the class that it counts for.
        risk_parts: what makes its risk, such as money.
        history: what the history of its values adds: novel, tainted.
        required: the lower bound of trust that the adaptive block weighed against, with the history, without the
            policy's floor; that of the risk alone if there was no such block.
        decision: a person's: approve, reject; empty if there was none.
        released_by: policy, decision or rule; empty if it was not released.
        held: a person was asked.
        consumed: its grant was consumed: the tool ran.
        places: its events, in the order of the log.
    """

    execution_id: str
    call_id: str
    tool: str = ""
    effect: str = ""
    reason: str = ""
    adaptive: str = ""
    trust_class: str = ""
    risk_parts: tuple[str, ...] = ()
    history: tuple[str, ...] = ()
    required: float = 0.0
    decision: str = ""
    released_by: str = ""
    held: bool = False
    consumed: bool = False
    places: list[Place] = field(default_factory=list)

    @property
    def round(self) -> int:
        """The round, from 1."""
        return int(self.execution_id[1:].partition(".")[0])

    @property
    def is_injected(self) -> bool:
        """True if an attacker's text made the agent propose it."""
        return self.call_id.endswith("injected")

    def read(self, event: Mapping[str, Any]) -> None:
        """Read its next event."""
        kind, data = event["type"], event["data"]
        self.places.append(Place(kind, event["partition"], event["offset"]))
        if kind == "ToolCallProposed":
            self.tool = data["tool"]
        elif kind == "PolicyVerdictIssued":
            self.effect, self.reason = data["effect"], data["reason"]
            self.trust_class, self.risk_parts = data["trust_class"], tuple(data["risk_parts"])
            self.history = tuple(json.loads(data["history"])["parts"]) if data["history"] else ()
            adaptive = json.loads(data["adaptive"]) if data["adaptive"] else {"result": ""}
            self.adaptive, self.required = adaptive["result"], adaptive.get("required", data["risk_required"])
        elif kind == "HoldOpened":
            self.held = True
        elif kind == "DecisionRecorded" and data["resolves"]:
            self.decision = data["decision"]
        elif kind == "ToolCallReleased":
            self.released_by = data["released_by"]
        elif kind == "GrantConsumed":
            self.consumed = True


def calls_of(execution_id: str, events: Iterable[Mapping[str, Any]]) -> list[CallFact]:
    """The calls of one execution, in the order in which they were proposed."""
    found: dict[str, CallFact] = {}
    for event in events:
        if call_id := event["data"].get("call_id"):
            found.setdefault(call_id, CallFact(execution_id, call_id)).read(event)
    return list(found.values())


async def executions_in(placet: AsyncPlacet) -> list[str]:
    """The ids of all executions of the token's project."""
    found: list[str] = []
    cursor: str | None = None
    while True:
        page = await placet.executions.list(cursor=cursor, limit=200)
        found += [execution.execution_id for execution in page.items]
        if (cursor := page.next_cursor) is None:
            return found


async def read_facts(placet: AsyncPlacet, executions: Sequence[str]) -> list[CallFact]:
    """The calls of all these executions, which have ended.

    Raises:
        OpsError: an execution has not ended, or the views did not reach its end.
    """
    free = asyncio.Semaphore(AT_ONCE)

    async def one(execution_id: str) -> list[CallFact]:
        async with free:
            return calls_of(execution_id, await _events(placet, execution_id))

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(execution_id)) for execution_id in executions]
    return [fact for task in tasks for fact in task.result()]


async def _events(placet: AsyncPlacet, execution_id: str) -> list[Mapping[str, Any]]:
    for _ in range(TRIES):
        rows: list[Mapping[str, Any]] = []
        cursor: str | None = None
        while True:
            page = await placet.executions.events(execution_id, cursor=cursor)
            rows += page.items
            if (cursor := page.next_cursor) is None:
                break
        if any(row["type"] == "ExecutionCompleted" for row in rows):
            return rows
        await asyncio.sleep(PAUSE_S)
    raise OpsError(f"The views have not reached the end of execution {execution_id}.")
