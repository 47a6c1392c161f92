"""Planted calls: known-bad calls by which an operator sees whether people notice."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from placet import asks
from placet.channel import Channel
from placet.errors import PlacetError, Refused, Unavailable
from placet.models import Object, Page

# Seconds from the start of a planted run to its call, drawn if the caller says nothing: agents do not propose their
# first call at the moment at which they start a run.
AFTER_S = (2.0, 20.0)


@dataclass(frozen=True)
class ProbeAnswer:
    """What one person answered to a planted call; `caught` if the call would not have run as it was planted."""

    by: str
    decision: str
    caught: bool
    person: str = ""


@dataclass(frozen=True)
class Probe:
    """A planted call; it never runs. `result` is caught, missed, expired or cancelled, and empty until people answer.

    `wrong` are the places in its arguments (JSON Pointers) that an edit must change; empty if no edit makes it right.
    """

    execution_id: str
    call_id: str
    agent: str
    tool: str
    planted_by: str
    note: str = ""
    hold_id: str = ""
    arguments: Object = field(default_factory=dict, hash=False)
    wrong: tuple[str, ...] = ()
    result: str = ""
    answers: tuple[ProbeAnswer, ...] = ()
    planted_at: datetime | None = None
    ended_at: datetime | None = None
    cursor: str = ""
    raw: Object = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class AsyncProbes:
    """Planted calls. Only an operator plants one; analysts can list them, too."""

    channel: Channel

    async def plant(
        self,
        agent: str,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        note: str,
        wrong: Sequence[str] = (),
        requester: str | None = None,
        user: str | None = None,
        workspace: str | None = None,
        request: Any = None,
        reason: str | None = None,
        context: Mapping[str, Any] | None = None,
        annotations: Mapping[str, Any] | None = None,
        run_context: Mapping[str, Any] | None = None,
        idle_s: float | None = None,
        execution_id: str | None = None,
        call_id: str | None = None,
        after_s: float | None = None,
        opened: Callable[[str], object] | None = None,
    ) -> Probe:
        """Plant a call that people should not approve; it is refused if nobody would be asked about it.

        Its run is opened first, as an agent's is; then this waits, and plants the call. A run that stays empty, since
        this was interrupted meanwhile, is ended by `executions.cancel`; a note of the error (`__notes__`) names it.

        Args:
            agent: whose call it appears to be.
            tool: the tool that it appears to call.
            arguments: its arguments.
            note: what is bad about it: told to those who have answered.
            wrong: JSON Pointers such as `/to`, the places that an edit must change to make the call right.
            requester: the account that appears to propose it; by default the agent's name.
            user: the user of the run that it appears to be in, as for `executions.start`.
            workspace: its workspace.
            request: what it appears to be asked for.
            reason: the agent's apparent reason for the call.
            context: the call's context.
            annotations: what the agent appears to say of the tool.
            run_context: the run's context.
            idle_s: after how many seconds the run ends by itself, if the agent's do.
            execution_id: the new run's id, if the agent's runs have chosen ones; by default a fresh one.
            call_id: the call's.
            after_s: seconds from the start of the run to the call, from 0 on; by default drawn from `AFTER_S`.
            opened: is called with the run's id once the run is open, before the wait for the call.
        """
        run = {"user": user, "workspace": workspace, "request": request, "run_context": run_context}
        call = {"requester": requester, "reason": reason, "context": context, "annotations": annotations}
        ids = {"idle_seconds": idle_s, "execution_id": execution_id, "call_id": call_id}
        bad = {"agent": agent, "tool": tool, "arguments": dict(arguments), "note": note, "wrong": list(wrong)}
        return await self._plant_after(_wait_s(after_s), asks.probe_body(bad, {**run, **call, **ids}), opened)

    async def _plant_after(
        self, wait_s: float, body: Object, opened: Callable[[str], object] | None
    ) -> Probe:
        is_open = False
        try:
            await self.channel.ask(asks.open_probe_run(body))
            is_open = True
            if opened is not None:
                opened(body["execution_id"])
            await asyncio.sleep(wait_s)
            return await self.channel.one(Probe, asks.plant_probe(body))
        except (PlacetError, asyncio.CancelledError) as error:
            if is_open or isinstance(error, Unavailable) or not isinstance(error, Refused):
                error.add_note(left_open(body["execution_id"], is_open=is_open))
            raise

    async def list(self, *, cursor: str | None = None) -> Page[Probe]:
        """The planted calls of the project, the newest first, also those that wait for an answer."""
        return await self.channel.page(Probe, asks.read("/probes", cursor=cursor))


def left_open(execution_id: str, *, is_open: bool) -> str:
    """How the run of a planted call is ended, if it stays empty."""
    opened = "was opened" if is_open else "may have been opened"
    return (
        f"the run {execution_id} {opened} for the call: unless placet probe list shows the call, end it with "
        f"placet cancel {execution_id}"
    )


def _wait_s(after_s: float | None) -> float:
    """The seconds between the start of a run and its call.

    Raises:
        ValueError: what the caller says is no number of seconds from 0 on.
    """
    if after_s is None:
        return random.uniform(*AFTER_S)  # noqa: S311 - nothing secret
    if not 0 <= after_s < float("inf"):
        raise ValueError("after_s must be seconds, from 0 on")
    return after_s
