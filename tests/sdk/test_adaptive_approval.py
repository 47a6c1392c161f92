"""`AdaptiveApprovalService` with both clients, against a scripted gateway: what is asked, and what counts."""

from __future__ import annotations

import math
from typing import Any

import pytest
from starlette.responses import JSONResponse, Response

from placet import AdaptiveApprovalService, AsyncAdaptiveApprovalService, AsyncPlacet, Placet
from tests.sdk.scripted import QUICK, Asked, Scripted, serving
from tests.sdk.threaded import serving_thread

WEIGHED = {"is_eligible": True, "why": "trust is enough", "lower_bound": 0.95, "required": 0.8, "floor": 0.9}
BY_TRUST = {"effect": "hold", "requires_approval": False, "adaptive": WEIGHED}
BY_RULE = {"effect": "allow", "requires_approval": False, "adaptive": None}
ASKED = {"effect": "hold", "requires_approval": True, "adaptive": {**WEIGHED, "is_eligible": False}}
CALL = {"agent": "bot", "tool": "note", "arguments": {"text": "hello"}}


class Gateway:
    """Answers assessments: each call as its tool is listed, at a level of risk."""

    def __init__(self, level: str = "medium", **tools: dict[str, Any]) -> None:
        self.level, self.tools = level, {"note": BY_TRUST, **tools}
        self.asked: list[Asked] = []

    async def answer(self, request: Asked) -> Response:
        self.asked.append(request)
        if request.method == "GET":
            return JSONResponse({"agent": "bot", "lower_bound": 0.75, "classes": [], "next_cursor": "c"})
        risk = {"score": 0.5, "level": self.level, "parts": [], "required": 0.9}
        calls = [
            {"tool": one["tool"], "risk": risk, **self.tools[one["tool"]]} for one in request.json()["calls"]
        ]
        requires = any(call["requires_approval"] for call in calls)
        return JSONResponse({"agent": "bot", "requires_approval": requires, "risk": risk, "calls": calls})

    def scripted(self) -> Scripted:
        script = Scripted()
        script.on_http = self.answer
        return script

    def service(self, script: Scripted) -> AdaptiveApprovalService:
        return AdaptiveApprovalService(Placet(script.url, token="t", patience=QUICK))


@pytest.mark.parametrize(
    ("tools", "given", "requires"),
    [
        ({}, (), False),
        ({}, (0.95, "medium"), False),
        ({}, (0.9, "low"), False),
        ({}, (0.89, "medium"), True),
        ({}, (0, None), True),
        ({}, (None, "high"), True),
        ({"note": BY_RULE}, (0.0, "high"), False),
        ({"note": ASKED}, (1.0, "low"), True),
        ({"note": {**BY_TRUST, "adaptive": {**WEIGHED, "floor": None}}}, (), True),
        ({"note": {**BY_TRUST, "adaptive": None}}, (), True),
    ],
)
def test_numbers_of_the_caller_only_ask_for_more(
    tools: dict[str, Any], given: tuple[Any, ...], requires: bool
) -> None:
    gateway = Gateway(**tools)
    with serving_thread(gateway.scripted()) as script:
        assert gateway.service(script).should_require_approval(CALL, *given) is requires


def test_plan_is_asked_as_its_calls_in_parts_and_needs_approval_if_one_step_does() -> None:
    gateway = Gateway(pay=ASKED)
    steps = [
        {"function": "note", "parameters": {"text": str(number)}, "step_id": str(number)}
        for number in range(70)
    ]
    with serving_thread(gateway.scripted()) as script:
        service = gateway.service(script)
        assert not service.should_require_approval({"agent": "bot", "goal": "notes", "steps": steps})
        assert [len(one.json()["calls"]) for one in gateway.asked] == [50, 20]
        assert {one.path for one in gateway.asked} == {"/v1/agents/bot/assess"}
        steps[69] = {"function": "pay", "parameters": {}}
        assert service.should_require_approval({"agent": "bot", "steps": steps})


@pytest.mark.parametrize(
    ("plan", "given", "said"),
    [
        ({"steps": []}, (), "at least one step"),
        ({"steps": "note"}, (), "a list of steps"),
        ({"steps": [{"parameters": {}}]}, (), r"steps\[0\]: needs the tool's name"),
        ({"tool": "note", "arguments": [1]}, (), "`arguments` or `parameters`"),
        ([], (), "not list"),
        ({**CALL, "agent": 5}, (), "agent: the name"),
        (CALL, (math.nan,), "from 0 to 1, not nan"),
        (CALL, (1.01,), "from 0 to 1"),
        (CALL, (True,), "from 0 to 1"),
        (CALL, (0.5, "huge"), "one of low, medium, high, not 'huge'"),
    ],
)
def test_plan_or_number_that_is_none_is_refused_before_anything_is_asked(
    plan: Any, given: tuple[Any, ...], said: str
) -> None:
    gateway = Gateway()
    with serving_thread(gateway.scripted()) as script, pytest.raises(ValueError, match=said):
        gateway.service(script).should_require_approval(plan, *given)
    assert not gateway.asked


def test_score_is_the_lower_bound_and_risk_the_highest_of_the_task() -> None:
    gateway = Gateway("high")
    with serving_thread(gateway.scripted()) as script:
        service = gateway.service(script)
        assert service.calculate_agent_trust_score("bot") == 0.75
        assert (
            service.calculate_task_risk_level("Pay the invoice", {"agent": "bot", "tools": ["pay"]}) == "high"
        )
        body = gateway.asked[-1].json()
        assert (body["tools"], body["calls"], body["task_description"]) == (["pay"], [], "Pay the invoice")
        gateway.level = "of a later version"
        assert service.calculate_task_risk_level("Anything") == "high"
        with pytest.raises(ValueError, match="a list of names"):
            service.calculate_task_risk_level("Pay", {"tools": "pay"})


async def test_awaited_service_answers_the_same() -> None:
    gateway = Gateway("low", pay=ASKED)
    async with (
        serving(gateway.scripted()) as script,
        AsyncPlacet(script.url, token="t", patience=QUICK) as client,
    ):
        service = AsyncAdaptiveApprovalService(client, agent="bot")
        assert not await service.should_require_approval({"tool": "note"})
        assert await service.should_require_approval({"function": "pay"})
        assert await service.calculate_agent_trust_score("bot") == 0.75
        assert await service.calculate_task_risk_level("Note it", {"calls": [{"tool": "note"}]}) == "low"
