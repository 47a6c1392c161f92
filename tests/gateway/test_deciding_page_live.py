"""The example of docs/sdk.md for whoever decides, as it stands there, on a running stack."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from placet import AlreadyDecided, Placet
from tests.gateway.conftest import Doors

pytestmark = [pytest.mark.stack, pytest.mark.broker]

PAGE = (Path(__file__).parents[2] / "docs" / "sdk.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
TENANT = "deciding"


def test_example_of_the_page_approves_edits_rejects_and_answers(
    doors: Doors, capsys: pytest.CaptureFixture[str]
) -> None:
    (example,) = (block for block in BLOCKS if '"edit"' in block)
    doors.publish(TENANT)
    bot = doors.caller("bot", "agent", tenant=TENANT, agent="billing")
    run = bot.execution()
    calls = [bot.propose(run, arguments={"amount": amount}) for amount in (50, 300, 900)]
    asked = bot.post("/v1/requests", {"execution_id": run, "question": "Which account?"}).json()

    with Placet(doors.url, token=doors.token("anna", "reviewer", tenant=TENANT)) as placet:
        exec(compile(example, "docs/sdk.md", "exec"), {"placet": placet})

    found = [bot.get(f"/v1/executions/{run}/tool-calls/{call['call_id']}").json() for call in calls]
    assert [(call["status"], call["approved_arguments"]) for call in found] == [
        ("released", {"amount": 50}),
        ("released", {"amount": 100}),
        ("denied", None),
    ]
    assert found[2]["decision"]["feedback"] == "Ask the treasurer first."
    assert bot.get(f"/v1/requests/{asked['request_id']}").json()["response"] == "GB29 NWBK"
    assert f"runs as {found[1]['digest']}" in capsys.readouterr().out.splitlines()


def test_example_of_a_repeated_change_gets_the_first_answer_again(doors: Doors) -> None:
    (example,) = (block for block in BLOCKS if "idempotency_key(" in block and "holds.decide(" in block)
    doors.publish(TENANT)
    bot = doors.caller("bot", "agent", tenant=TENANT, agent="billing")
    call = bot.propose(bot.execution(), arguments={"amount": 50})

    with Placet(doors.url, token=doors.token("ben", "reviewer", tenant=TENANT)) as placet:
        hold = placet.holds.get(call["hold_id"])
        for _ in range(2):
            exec(compile(example, "docs/sdk.md", "exec"), {"placet": placet, "hold": hold})
        with pytest.raises(AlreadyDecided):
            placet.holds.decide(hold.hold_id, "edit", digest=hold.digest, edited_arguments={"amount": 5})
