"""The leases of turns: renewed in time whatever is delayed, and given back by a worker that is stopped."""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from starlette.responses import JSONResponse, Response

from placet import AsyncPlacet, AsyncTurn, NotAuthorised, Placet, places, turn_reports
from placet import worker as workers
from placet.lease import Lease
from tests.sdk.claimed import TURN
from tests.sdk.scripted import QUICK, Asked, Scripted, serving

LEASE_S = 1.0
PATIENCE_S = 60.0
ENDS = ("2026-11-27T12:00:00Z", "2026-11-27T12:00:01Z")


@dataclass
class Agency:
    """A gateway with one turn, which answers renewals with the ends of its lease that it was given.

    `told` is what it was told of the turn's end; `refused` the codes of what it refuses.
    """

    ends: list[str]
    claims_refused: list[str] = field(default_factory=list)
    renewed_at: list[float] = field(default_factory=list)
    claimed_at: float = 0.0
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    attempts: list[str] = field(default_factory=list)
    told: list[dict[str, Any]] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)

    async def http(self, asked: Asked) -> Response:
        last = asked.path.rpartition("/")[2]
        now = asyncio.get_running_loop().time()
        if last == "claim":
            return await self._claim(asked.json()["attempt_id"], now)
        if last == "renew":
            self.renewed_at.append(now)
            end = self.ends.pop(0) if len(self.ends) > 1 else self.ends[0]
            return JSONResponse({**TURN, "lease_until": end})
        if last == "yield":
            await asyncio.Event().wait()
        if (code := self.refused.get(last)) is not None:
            return JSONResponse({"code": code, "detail": "the turn has ended: completed"}, 409)
        if last == "reply":
            return JSONResponse({**TURN, "lease_until": ENDS[0]})
        self.told.append(asked.json())
        self.ended.set()
        return JSONResponse({**TURN, "status": "completed"})

    async def _claim(self, attempt_id: str, now: float) -> Response:
        self.attempts.append(attempt_id)
        if self.claims_refused:
            code = self.claims_refused.pop()
            return JSONResponse({"code": code, "detail": "too late"}, 409)
        if self.claimed_at:
            await asyncio.Event().wait()
        self.claimed_at = now
        turn = {**TURN, "attempt_id": attempt_id, "lease_until": ENDS[0]}
        return JSONResponse({"turn": turn, "lease_seconds": LEASE_S})


async def served(agency: Agency, script: Scripted, agent: Any) -> None:
    async with AsyncPlacet(script.url, token="t", transport="rest", patience=QUICK) as client:
        serving_turns = asyncio.create_task(client.serve({"bot": agent}))
        async with asyncio.timeout(PATIENCE_S):
            await agency.ended.wait()
        serving_turns.cancel()
        await asyncio.gather(serving_turns, return_exceptions=True)


async def test_renewal_that_changed_nothing_is_followed_by_another_soon() -> None:
    agency = Agency(ends=[ENDS[0], ENDS[0], ENDS[1]])

    async def agent(turn: AsyncTurn) -> str:
        while len(agency.renewed_at) < 4:
            await asyncio.sleep(0.01)
        return "done"

    async with serving(Scripted(on_http=agency.http, refuse_sockets=404)) as script:
        await served(agency, script, agent)
    first, second, third, fourth = agency.renewed_at
    assert first - agency.claimed_at >= LEASE_S / 2
    assert third - agency.claimed_at < LEASE_S, "twice again before the lease ends"
    assert second - first < LEASE_S / 2
    assert fourth - third >= LEASE_S / 2 - 0.05, "the third one began the lease anew"


@pytest.mark.parametrize("code", ["already_consumed", "not_released"])
async def test_claim_that_comes_too_late_is_made_anew_under_another_id(code: str) -> None:
    agency = Agency(ends=[ENDS[0]], claims_refused=[code])

    async def agent(turn: AsyncTurn) -> str:
        return "done"

    async with serving(Scripted(on_http=agency.http, refuse_sockets=404)) as script:
        await served(agency, script, agent)
    assert len(set(agency.attempts)) == len(agency.attempts) >= 2


async def test_turn_that_cannot_be_given_back_is_told_in_a_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(turn_reports, "GIVE_BACK_S", 0.1)
    agency = Agency(ends=[ENDS[0]])

    async def agent(turn: AsyncTurn) -> str:
        agency.ended.set()
        await asyncio.Event().wait()
        return ""

    with caplog.at_level(logging.WARNING, "placet"):
        async with serving(Scripted(on_http=agency.http, refuse_sockets=404)) as script:
            await served(agency, script, agent)
    (record,) = caplog.records
    assert record.exc_info is None
    assert "was not given back" in record.getMessage()
    assert "no answer within 0.1 s" in record.getMessage()


async def test_lease_began_no_earlier_than_the_first_request_that_can_have_renewed_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    monkeypatch.setattr("placet.clock.now", lambda: now)
    lease = Lease(30.0, "t0", 0.0)
    assert lease.due_in() == 16.5
    now = 16.5
    lost = lease.asked()
    now = 20.0
    # The answer to the first request was lost, and the second one finds the lease renewed: by either of them.
    assert lease.answered({"lease_until": "t1"}, lease.asked())
    assert lease.due_in() == lost + 16.5 - now
    now = 33.0
    assert not lease.answered({"lease_until": "t1"}, lease.asked())
    assert lease.due_in() == 0.0
    assert lease.answered({}, lease.asked()), "a gateway that does not tell the end is taken at its word"


@pytest.mark.parametrize(("blocked_s", "told"), [(1.0, 1), (0.0, 0)])
async def test_function_that_blocked_the_event_loop_for_longer_than_its_lease_is_told(
    blocked_s: float, told: int, caplog: pytest.LogCaptureFixture
) -> None:
    agency = Agency(ends=[*ENDS])

    async def agent(turn: AsyncTurn) -> str:
        time.sleep(LEASE_S * blocked_s)  # noqa: ASYNC251 - the fault that is told
        while not agency.renewed_at:
            await asyncio.sleep(0.01)
        return "done"

    with caplog.at_level(logging.WARNING, "placet"):
        async with serving(Scripted(on_http=agency.http, refuse_sockets=404)) as script:
            await served(agency, script, agent)
    found = [one.getMessage() for one in caplog.records]
    assert len(found) == told
    assert all("a lease was over for" in one and "the event loop was blocked" in one for one in found)


async def test_renewals_that_were_asked_for_in_time_and_not_answered_were_not_blocked(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    times = iter((16.5, 25.0, 40.0))
    monkeypatch.setattr("placet.clock.now", lambda: next(times))
    lease = Lease(30.0, "t0", 0.0)
    for _ in range(3):
        lease.asked()
    assert caplog.records == []


async def test_lease_that_is_over_is_told_once_however_often_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("placet.clock.now", lambda: 40.0)
    lease = Lease(30.0, "t0", 0.0)
    for _ in range(3):
        assert not lease.answered({"lease_until": "t0"}, lease.asked())
    assert len(caplog.records) == 1


async def test_gateway_that_does_not_answer_a_claim_is_told_soon_and_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(workers, "SILENT_S", 1.0)
    waits: list[str] = []

    async def silent(asked: Asked) -> Response:
        waits.append(asked.params.get("wait", ""))
        if len(waits) > 1:
            await asyncio.Event().wait()
        return JSONResponse({"turn": None})

    monkeypatch.setattr(places, "LONG_S", 0.2)
    with caplog.at_level(logging.WARNING, "placet"):
        async with (
            serving(Scripted(on_http=silent, refuse_sockets=404)) as script,
            AsyncPlacet(script.url, token="t", transport="rest", patience=QUICK) as client,
        ):
            serving_turns = asyncio.create_task(client.serve({"bot": agent_of_nothing}))
            async with asyncio.timeout(PATIENCE_S):
                while not caplog.records:
                    await asyncio.sleep(0.01)
            serving_turns.cancel()
            await asyncio.gather(serving_turns, return_exceptions=True)
    (record,) = caplog.records
    assert record.getMessage() == (
        "the gateway has not answered for 1.2 s, and is tried again: messages to bot wait"
    )
    assert waits[:2] == ["0", "1"]


async def agent_of_nothing(turn: AsyncTurn) -> str:
    return ""


@pytest.mark.parametrize("is_blocking", [False, True])
async def test_function_that_exits_fails_its_turn_and_leaves_the_worker(is_blocking: bool) -> None:
    agency = Agency(ends=[ENDS[0]])

    async def agent(turn: AsyncTurn) -> str:
        sys.exit("cannot go on")

    def blocking(turn: Any) -> str:
        sys.exit("cannot go on")

    async with serving(Scripted(on_http=agency.http, refuse_sockets=404)) as script:
        if is_blocking:
            await asyncio.to_thread(served_blocking, agency, script, blocking)
        else:
            await served(agency, script, agent)
    (told,) = agency.told
    assert (told["outcome"], told["error"]) == ("failed", "AgentExited: SystemExit: cannot go on")


def served_blocking(agency: Agency, script: Scripted, agent: Any) -> None:
    with Placet(script.url, token="t", transport="rest", patience=QUICK) as client:
        thread = threading.Thread(target=lambda: ended_by_closing(client, agent))
        thread.start()
        until = time.monotonic() + PATIENCE_S
        while not agency.told and time.monotonic() < until:
            time.sleep(0.01)
    thread.join(PATIENCE_S)


def ended_by_closing(client: Placet, agent: Any) -> None:
    with suppress(concurrent.futures.CancelledError):
        client.serve({"bot": agent})


async def test_turn_that_ended_elsewhere_is_no_failure_of_the_agent(caplog: pytest.LogCaptureFixture) -> None:
    """Its worker was frozen, and another one completed the turn meanwhile."""
    agency = Agency(ends=[ENDS[0]], refused={"reply": "not_open", "end": "not_open"})

    async def agent(turn: AsyncTurn) -> str:
        await turn.say("hello")
        return "done"

    class Ending(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            agency.ended.set()

    handler = Ending()
    logging.getLogger("placet").addHandler(handler)
    with caplog.at_level(logging.WARNING, "placet"):
        async with serving(Scripted(on_http=agency.http, refuse_sockets=404)) as script:
            await served(agency, script, agent)
    logging.getLogger("placet").removeHandler(handler)
    told = [(one.levelname, one.exc_info) for one in caplog.records]
    assert told == [("WARNING", None)], caplog.text
    assert "was taken from this worker" in caplog.text


async def test_agent_that_catches_what_should_give_its_turn_back_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    agency = Agency(ends=[ENDS[0]])

    async def agent(turn: AsyncTurn) -> str:
        turn.run._unanswered.add("question-7")
        return "sorry"

    with caplog.at_level(logging.WARNING, "placet"):
        async with serving(Scripted(on_http=agency.http, refuse_sockets=404)) as script:
            await served(agency, script, agent)
    assert agency.told[0]["reply"] == "sorry"
    assert "ends while its question question-7 waits" in caplog.text
    assert "catch HITLPending" in caplog.text


async def test_gateway_is_not_blamed_for_a_loop_that_was_blocked(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(workers, "HELD_UP_S", 0.1)
    with caplog.at_level(logging.WARNING, "placet"):
        silence = workers._Silence("bot", 0.05)
        time.sleep(0.5)  # noqa: ASYNC251 - the fault
        await asyncio.sleep(0.01)
        silence.close()
        assert caplog.records == []
        silence = workers._Silence("bot", 0.05)
        async with asyncio.timeout(PATIENCE_S):
            while not caplog.records:
                await asyncio.sleep(0.01)
        silence.close()


async def test_refusal_names_the_agent_that_the_token_cannot_act_for() -> None:
    async def refusing(asked: Asked) -> Response:
        return JSONResponse({"code": "not_authorised", "detail": "it takes the agent's own"}, 403)

    async with (
        serving(Scripted(on_http=refusing, refuse_sockets=404)) as script,
        AsyncPlacet(script.url, token="t", transport="rest", patience=QUICK) as client,
    ):
        with pytest.raises(NotAuthorised, match="filer: it takes the agent's own"):
            await client.serve({"filer": agent_of_nothing})
