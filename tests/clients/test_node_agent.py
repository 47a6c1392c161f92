"""The agent of examples/node-agent while its gateway is away."""

from __future__ import annotations

from pathlib import Path

from tests.clients.tools import start_tool
from tests.sdk.proxied import Proxied
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
