"""The text of the README's "Use it", as it stands there, on a running stack."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest

from tests.gateway.conftest import Caller, Doors
from tests.gateway.people import answer_next, decide, open_hold
from tests.gateway.test_hitl_agents_live import Bank, shell
from tests.gateway.test_hitl_pages_live import run_shell
from tests.pages import ROOT, Block

pytestmark = [pytest.mark.stack, pytest.mark.broker]

TENANT, AGENT = "readers", "billing-bot"


@pytest.fixture
def own(doors: Doors) -> Caller:
    """The README's agent, in a tenant of its own."""
    return doors.caller("billing-bot", "agent", tenant=TENANT, agent=AGENT)


@pytest.fixture
def mia(doors: Doors) -> Caller:
    return doors.caller("mia", "reviewer", tenant=TENANT)


async def test_call_and_question(
    own: Caller, mia: Caller, page_blocks: list[Block], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (block,) = page_blocks
    bank = Bank()
    running = asyncio.create_task(
        asyncio.to_thread(lambda: asyncio.run(block.run(own.url, TOKEN=own.token, bank=bank)))
    )
    call = await asyncio.to_thread(open_hold, mia, AGENT, tool="send_money")
    await asyncio.to_thread(decide, mia, call, decision="approve")
    await asyncio.to_thread(answer_next, mia, AGENT, "rent", kind="decision")
    (await running)["placet"].close()
    assert bank.sent == [("GB29…", 98.7)]
    assert capsys.readouterr().out == "rent \n"
    (line,) = re.findall(r"^    (placet state .*)$", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE)
    with shell(f"{line} ", tmp_path, PLACET_URL=own.url, PLACET_TOKEN=mia.token) as looking:
        said, _ = await asyncio.to_thread(looking.communicate, timeout=60)
    assert looking.returncode == 0
    assert "running" in said


def test_conversation(own: Caller, mia: Caller, page_blocks: list[Block], tmp_path: Path) -> None:
    module, chat = page_blocks
    (tmp_path / "agents.py").write_text(module.text, encoding="utf-8")
    access = {"PLACET_URL": own.url, "PLACET_TOKEN": own.token}
    with (
        shell("placet agent run agents", tmp_path, **access),
        shell(chat.text, tmp_path, **access) as talking,
    ):
        answer_next(mia, AGENT, "travel", kind="decision")
        said, _ = talking.communicate(timeout=60)
    assert said == "The March invoice is booked to travel\n"


def test_human_input(doors: Doors, own: Caller, mia: Caller, page_blocks: list[Block]) -> None:
    (block,) = page_blocks
    admin = doors.token("admin", "admin", tenant=TENANT)
    access = {"PLACET_URL": own.url, "PLACET_TOKEN": admin, "AGENT_TOKEN": own.token}
    said = json.loads(run_shell(block, own.url, **access))
    fields = said["result"]["structValue"]["fields"]
    assert fields["status"] == {"stringValue": "waiting_for_human"}
    task_id = fields["task_id"]["stringValue"]
    hold = open_hold(mia, AGENT, request_id=task_id)
    decide(mia, hold, decision="respond", value="Yes.")
    assert own.get(f"/v1/human-input/{task_id}").json() == {"response": "Yes."}
