"""Calls assessed before they are proposed: the verdict that they would get, and the risk of a task."""

from typing import Any

import pytest

from schemas.canonical import canonical
from schemas.risk_score import HISTORY_WEIGHTS
from services.domain.assessing import AskedCall, Assessed, assess, risk_of_task
from services.domain.execution.adaptive import ENOUGH, SEALED
from services.domain.input_schema import MISFITS_MAX
from services.domain.policy.risk import Risk, of_task
from services.domain.trust.reading import Contrary
from tests.domain.steps import proposed, started
from tests.domain.test_secrets import LOGIN
from tests.domain.trusting import ALWAYS, Known, facts, outcome, world_of
from tests.domain.world import World, published, the

NOTHING: dict[str, Any] = {}


def assessed(
    world: World, trust: Known, tool: str, arguments: dict[str, Any], sample: Contrary | None = None
) -> Assessed:
    run = world.state()
    place = (run.tenant, run.project, run.agent)
    return assess(
        world.definitions,
        run,
        AskedCall(tool, canonical(arguments), "{}"),
        world.now_ms,
        lambda tool, trust_class: trust(*place, tool, trust_class),
        lambda tool, trust_class: sample,
    )


@pytest.mark.parametrize(
    ("tool", "arguments", "trust", "requires"),
    [
        ("read", {}, Known(()), False),
        ("drop", {}, Known(facts()), True),
        ("pay", {"amount": 5}, Known(facts()), False),
        ("pay", {"amount": 5}, Known(()), True),
        ("pay", {"amount": 5}, Known(None), True),
        ("pay", {"amount": 999_999}, Known(facts()), True),
        ("nobody-knows", {}, Known(facts()), True),
    ],
    ids=["allowed", "denied", "trusted", "new agent", "trust unread", "denied amount", "unknown tool"],
)
def test_assessment_is_the_verdict_that_the_proposal_then_gets(
    tool: str, arguments: dict[str, Any], trust: Known, requires: bool
) -> None:
    world = world_of(trust, ALWAYS)

    found = assessed(world, trust, tool, arguments)
    bodies = proposed(world, tool, arguments=canonical(arguments))

    verdict = the(bodies, "PolicyVerdictIssued")
    released = any(type(body).__name__ == "ToolCallReleased" for body in bodies)
    assert (found.requires_approval, released) == (requires, not requires)
    assert found.verdict.trust_class == verdict.trust_class
    if (weighed := found.verdict.adaptive) is not None:
        recorded = outcome(bodies)
        assert (weighed.why or ENOUGH) == recorded.why
        assert (weighed.lower_bound, weighed.floor) == (recorded.lower_bound, recorded.floor)
        assert weighed.required == recorded.required


def test_call_whose_arguments_do_not_fit_its_tool_needs_more_than_trust() -> None:
    trust = Known(facts())
    found = assessed(world_of(trust, ALWAYS), trust, "pay", {"to": "GB29"})

    assert found.misfits == ("$: 'amount' is a required property",)
    assert found.requires_approval


def test_every_misfit_is_named_up_to_a_bound() -> None:
    world, trust = world_of(Known(facts()), ALWAYS), Known(facts())
    names = [f"n{number:02}" for number in range(MISFITS_MAX + 5)]
    many = {"name": "many", "inputSchema": {"type": "object", "required": names}}
    world.definitions = published(world.definitions, tools=[many])

    two = assessed(world, trust, "pay", {"amount": "5", "to": 7}).misfits
    bounded = assessed(world, trust, "many", {}).misfits

    assert set(two) == {"$.amount: '5' is not of type 'number'", "$.to: 7 is not of type 'string'"}
    assert (len(bounded), len(set(bounded))) == (MISFITS_MAX, MISFITS_MAX)


def test_misfits_of_a_tool_with_sensitive_values_quote_none() -> None:
    world, trust = world_of(Known(facts()), ALWAYS), Known(facts())
    world.definitions = published(world.definitions, tools=[LOGIN])

    found = assessed(world, trust, "pay", {"amount": ["s3cret"]}).misfits

    assert found
    assert "s3cret" not in "".join(found)


def test_sample_of_every_call_leaves_none_to_be_released_without_people() -> None:
    trust = Known(facts())

    found = assessed(world_of(trust, {**ALWAYS, "sample_rate": 1}), trust, "pay", {"amount": 5})

    assert found.verdict.adaptive is not None
    assert (found.verdict.adaptive.is_eligible, found.requires_approval) == (True, True)
    assert not assessed(
        world_of(trust, {**ALWAYS, "sample_rate": 0.99}), trust, "pay", {"amount": 5}
    ).requires_approval


def test_call_with_a_value_that_is_sealed_is_not_released_by_trust() -> None:
    trust = Known(facts())
    world = world_of(trust, ALWAYS)
    world.definitions = published(world.definitions, tools=[LOGIN])

    assert assessed(world, trust, "pay", {"amount": 5}).requires_approval is False
    found = assessed(world, trust, "pay", {"amount": 5, "token": "a-secret"})

    assert found.verdict.adaptive is not None
    assert (found.requires_approval, found.verdict.adaptive.why) == (True, SEALED)


def test_sample_that_waits_keeps_trust_from_releasing_such_calls() -> None:
    trust = Known(facts())
    found = assessed(world_of(trust, ALWAYS), trust, "pay", {"amount": 5}, Contrary(0, 7, is_open=True))

    assert found.requires_approval
    assert found.verdict.adaptive is not None
    assert "0@7" in found.verdict.adaptive.why


def test_risk_of_a_task_has_each_part_of_its_calls_tools_and_words_once() -> None:
    world, trust = world_of(Known(facts()), ALWAYS), Known(facts())
    read, pay = (assessed(world, trust, tool, {"amount": 5}) for tool in ("read", "pay"))

    alone = risk_of_task(world.definitions, world.state(), [read], (), "")
    both = risk_of_task(world.definitions, world.state(), [read, pay], ("pay",), "")
    said = risk_of_task(world.definitions, world.state(), [read], (), "Refund the fee and delete the account")

    assert alone == read.risk
    assert both.score >= max(read.risk.score, pay.risk.score)
    assert set(both.parts) == {*read.risk.parts, *pay.risk.parts}
    assert set(said.parts) == {*read.risk.parts, "money", "destructive"}


def test_task_of_nothing_known_has_no_trust_that_is_enough() -> None:
    found = of_task([])

    assert (found.parts, found.required) == (("unknown_tool",), 1.0)
    assert risk_of_task(started().definitions, started().state(), [], ["nobody-knows"], "").required == 1.0


def test_task_with_a_call_that_could_not_be_judged_has_the_highest_risk() -> None:
    unread = Risk(1.0, "high", ("unreadable",), 1.0)

    assert of_task([Risk(0.25, "low", ("writes",), 0.8), unread]) == unread


def test_history_of_a_value_adds_to_the_risk_of_a_task() -> None:
    new = of_task([Risk(0.25, "low", ("novel",), 0.0)])

    assert new.score == HISTORY_WEIGHTS["novel"]
