"""The agent of examples/node-agent while its gateway is away, and where it answers late."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from starlette.responses import JSONResponse, Response

from tests.clients.tools import start_tool
from tests.sdk.desk import Resource
from tests.sdk.proxied import Proxied
from tests.sdk.scripted import Asked
from tests.sdk.threaded import serving_thread

AGENT = Path(__file__).resolve().parents[2] / "examples" / "node-agent" / "agent.mjs"


def test_node_agent_outlives_the_pages_of_a_proxy() -> None:
    proxied = Proxied(502, times=2)
    with (
        serving_thread(proxied.scripted()) as script,
        start_tool("node", AGENT, PLACET_URL=script.url, PLACET_TOKEN="t") as running,
    ):
        said, wrong = running.communicate(timeout=60)
    assert (running.returncode, wrong) == (0, "")
    assert said.splitlines()[-1].startswith("pay ")
    assert proxied.ended_as == ["complete"]


def test_node_agent_that_is_refused_says_by_whom_and_why() -> None:
    with (
        serving_thread(Proxied(403, times=None).scripted()) as script,
        start_tool("node", AGENT, PLACET_URL=script.url, PLACET_TOKEN="t") as running,
    ):
        _, wrong = running.communicate(timeout=60)
    assert running.returncode != 0
    assert "403 <html>Bad gateway</html>" in wrong


LEASE_S = 1.0
OVER = {"status": 409, "code": "not_released", "detail": "the call is outcome_unknown"}


@dataclass
class Slow(Proxied):
    """A gateway that takes so long for each answer about the run of a call, and may refuse its signs of life."""

    delays_s: list[float] = field(default_factory=list)
    refuses: bool = False
    asked: list[tuple[str, Resource]] = field(default_factory=list)

    async def http(self, asked: Asked) -> Response:
        step = asked.path.rpartition("/")[2]
        if step not in ("consume", "heartbeat"):
            return await super().http(asked)
        self.asked.append((step, asked.json()))
        await asyncio.sleep(self.delays_s.pop(0))
        if step == "heartbeat" and self.refuses:
            return JSONResponse(OVER, 409)
        has = {"status": "consumed", "attempt_id": asked.json()["attempt_id"], "lease_seconds": LEASE_S}
        arguments = {"approved_arguments": self.call["arguments"]} if step == "consume" else {}
        return JSONResponse({**self.call, **arguments, **has})


def ran(gateway: Slow) -> tuple[int, str, str]:
    """How the agent ends at a gateway: its exit code, what it says, and what went wrong."""
    with (
        serving_thread(gateway.scripted()) as script,
        start_tool("node", AGENT, PLACET_URL=script.url, PLACET_TOKEN="t") as running,
    ):
        said, wrong = running.communicate(timeout=60)
    return running.returncode, said, wrong


@pytest.mark.parametrize(("delays_s", "signs"), [((0.0,), 0), ((0.7, 0.0), 1), ((0.7, 0.7, 0.0), 2)])
def test_node_agent_that_hears_late_of_its_consumption_pays_after_a_sign_of_life(
    delays_s: tuple[float, ...], signs: int
) -> None:
    gateway = Slow(200, times=0, delays_s=list(delays_s))
    code, said, wrong = ran(gateway)
    assert (code, wrong) == (0, "")
    assert said.splitlines()[-1].startswith('pay {"')
    assert [step for step, _ in gateway.asked] == ["consume", *["heartbeat"] * signs]
    assert len({body["attempt_id"] for _, body in gateway.asked}) == 1
    assert gateway.asked[0][1]["grant_id"] == "g1", "no later release of the call"


def test_node_agent_whose_lease_has_ended_meanwhile_pays_nothing() -> None:
    code, said, wrong = ran(Slow(200, times=0, delays_s=[1.2, 0.0], refuses=True))
    assert (code, "pay" in said) == (1, False)
    assert "not_released" in wrong


def test_node_agent_to_whom_all_answers_are_late_pays_nothing() -> None:
    code, said, wrong = ran(Slow(200, times=0, delays_s=[0.6] * 4))
    assert (code, "pay" in said) == (1, False)
    assert "longer than half of the call's lease" in wrong
