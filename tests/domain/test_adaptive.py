"""Release by earned trust: what a verdict makes of a hold, and what it records so that anybody can recompute it."""

import json
from typing import Any

import pytest
from msgspec.structs import replace as call_with

from schemas.adaptive import draw_of
from schemas.call_history import CallHistory
from schemas.events.holds import HoldOpened
from schemas.policy_document import policy_from_value
from schemas.trust import ClassFact
from schemas.trust_score import posterior
from services.domain.policy.cases import CallCase, TrustCase, facts_of
from services.domain.policy.compiled import policy_alone
from services.domain.policy.identifying import Value
from services.domain.policy.remembered import judge_with_memory
from tests.domain.steps import consumed, decided, held, proposed, reported
from tests.domain.test_secrets import LOGIN, SEALED, with_token
from tests.domain.trusting import ALWAYS, SEED, Known, facts, outcome, world_of
from tests.domain.world import (
    RITA,
    START_MS,
    names,
    published,
    rule,
    the,
    with_people,
)

NONE_COUNTS = "no approval of such a call counts: none is counted yet, or none counts any more"
CLASS_OF_PAY = "amount=1e0&risk=destructive,money,not_idempotent,open_world,writes"


def test_trust_that_is_enough_releases_a_held_call_and_the_verdict_says_by_what() -> None:
    world = world_of(Known(facts()), ALWAYS)

    bodies = proposed(world, "pay")

    assert names(bodies) == ["ToolCallProposed", "PolicyVerdictIssued", "ToolCallReleased"]
    verdict = the(bodies, "PolicyVerdictIssued")
    assert (verdict.effect, verdict.reason, verdict.trust_class) == ("allow", "trusted", CLASS_OF_PAY)
    assert the(bodies, "ToolCallReleased").released_by == "policy"
    cited = json.loads(verdict.trust)
    assert cited["lower_bound"] == posterior(facts(), START_MS).lower_bound == outcome(bodies).lower_bound
    assert (cited["trust_class"], cited["raising"], cited["through"]) == (CLASS_OF_PAY, 60, {"0": 10**6})
    assert outcome(bodies).required == verdict.risk_required <= cited["lower_bound"]


def test_draw_follows_from_the_recorded_seed() -> None:
    bodies = proposed(world_of(Known(facts()), {**ALWAYS, "sample_rate": 1}), "pay")

    found, call = outcome(bodies), the(bodies, "ToolCallProposed")
    assert (found.result, found.seed) == ("sampled", SEED)
    assert found.draw == draw_of(SEED, call.call_id, call.revision, call.digest)
    assert names(bodies)[-1] == "HoldOpened"


@pytest.mark.parametrize("rate", [0.0, 0.3, 1.0])
def test_share_of_the_calls_that_are_sampled_is_the_rate(rate: float) -> None:
    asked = sum(draw_of(f"{number:032x}", "c", 1, "d") < rate for number in range(4000)) / 4000

    assert asked == pytest.approx(rate, abs=0.03)


def test_draw_without_a_seed_is_not_made_and_people_are_asked() -> None:
    world = world_of(Known(facts()), ALWAYS)
    world.seed = ""

    assert (outcome(proposed(world, "pay")).result, world.state().calls["c"].by_trust) == ("asked", False)


@pytest.mark.parametrize(
    ("trust", "adaptive", "why"),
    [
        (Known(None), ALWAYS, "trust is not complete"),
        (Known(()), ALWAYS, "no approval of such a call is counted yet"),
        (
            Known(()),
            {**ALWAYS, "floor": {"low": 0, "medium": 0, "high": 0}},
            "no approval of such a call is counted yet",
        ),
        (Known(facts(3)), ALWAYS, "trust is at least 0.4728, and 0.9314 is needed"),
        (
            Known(facts()),
            {"sample_rate": 0},
            "at high risk (destructive, money, not_idempotent, open_world, writes) people are always asked",
        ),
        (
            Known(facts()),
            {**ALWAYS, "floor": {"high": 0.99}},
            "trust is at least 0.9520, and 0.9900 is needed",
        ),
        (Known(facts()), {**ALWAYS, "allow_when": "args.amount < 2.0"}, "allow_when is not met"),
        (Known(facts()), {**ALWAYS, "allow_when": "args.missing == 1.0"}, "allow_when failed: "),
    ],
)
def test_trust_that_is_not_enough_or_not_known_asks_and_says_why(
    trust: Known, adaptive: dict[str, Any], why: str
) -> None:
    bodies = proposed(world_of(trust, adaptive), "pay")

    assert names(bodies)[-1] == "HoldOpened"
    assert outcome(bodies).result == "asked"
    assert outcome(bodies).why.startswith(why)
    assert (outcome(bodies).seed, outcome(bodies).draw) == ("", None)


def test_condition_that_asks_for_less_than_the_risk_changes_nothing() -> None:
    world = world_of(Known(facts(3)), {**ALWAYS, "allow_when": "true || trust.lower_bound > 0.0"})

    assert outcome(proposed(world, "pay")).why.startswith("trust is at least")


@pytest.mark.parametrize(("tool", "arguments"), [("drop", "{}"), ("pay", '{"amount":5000}')])
def test_what_the_policy_denies_stays_denied(tool: str, arguments: str) -> None:
    bodies = proposed(world_of(Known(facts(120)), ALWAYS), tool, arguments=arguments)

    assert names(bodies)[-1] == "ToolCallDenied"
    assert the(bodies, "PolicyVerdictIssued").adaptive is None


@pytest.mark.parametrize(
    ("hold", "result"),
    [
        ({}, "released"),
        ({"adaptive": True}, "released"),
        ({"adaptive": False}, "asked"),
        ({"roles": ["cfo"]}, "asked"),
        ({"quorum": 2}, "asked"),
        ({"reviewers": ["rita"]}, "asked"),
        ({"exclude_requester": True}, "asked"),
        ({"excluded": ["rita"]}, "asked"),
        ({"escalate": {"after_seconds": 30, "roles": ["cfo"]}}, "asked"),
        ({"roles": ["cfo"], "adaptive": True}, "asked"),
    ],
)
def test_hold_that_asks_certain_people_is_never_released(hold: dict[str, Any], result: str) -> None:
    rules = [
        {"id": "one", "match": {"tools": ["pay"]}, "then": "hold", "hold": {"timeout_seconds": 60, **hold}}
    ]

    assert outcome(proposed(world_of(Known(facts()), ALWAYS, rules), "pay")).result == result


def test_call_that_no_rule_holds_or_that_is_unknown_is_asked() -> None:
    world = world_of(Known(facts(120)), ALWAYS)

    for tool in ("again", "nobody_published_it"):
        assert outcome(proposed(world, tool, tool)).why == "it is not a rule alone that holds this call"


def test_policy_of_the_tenant_that_cannot_be_read_stops_every_release() -> None:
    world = world_of(Known(facts(120)), ALWAYS)
    policies = world.definitions.policies.with_unreadable("acme", "other", 3, "it is torn")
    world.definitions = type(world.definitions)(
        **{name: getattr(world.definitions, name) for name in world.definitions.__struct_fields__}
        | {"policies": policies}
    )

    assert outcome(proposed(world, "pay")).why == "the policy other@3 cannot be read"


def test_policy_without_the_block_says_nothing_of_trust() -> None:
    bodies = proposed(world_of(Known(facts(120))), "pay")

    assert the(bodies, "PolicyVerdictIssued").adaptive is None
    assert json.loads(the(bodies, "PolicyVerdictIssued").trust)["lower_bound"] > 0.9


def test_second_run_of_a_call_that_trust_released_needs_its_approver() -> None:
    rules = [rule("pay", "pay", "hold", timeout_seconds=600)]
    world = world_of(Known(facts()), ALWAYS, rules)
    person = {"principal": "rita", "subjects": ["rita"], "roles": ["reviewer"]}
    world.definitions = with_people(world.definitions, person)
    digest = the(proposed(world, "pay"), "ToolCallReleased").digest
    consumed(world, digest)
    (again,) = [one for one in reported(world, "unknown", error="?") if isinstance(one, HoldOpened)]
    decided(world, again, "approve")
    world.definitions = with_people(world.definitions, {**person, "disabled": True})

    assert names(consumed(world, digest, "b"))[-1] == "CommandRefused"


def test_withdrawn_reviewer_and_the_requester_raise_nothing() -> None:
    trust = Known(facts())
    world = world_of(trust, ALWAYS)
    person = {"principal": "rita", "subjects": ["rita"], "roles": ["reviewer"]}
    world.definitions = with_people(world.definitions, person)
    assert outcome(proposed(world, "pay", "first")).result == "released"

    world.definitions = with_people(world.definitions, {**person, "disabled": True})
    assert outcome(proposed(world, "pay", "second")).why == NONE_COUNTS

    world.definitions = with_people(world.definitions, {**person, "subjects": ["rita", "bot"]})
    assert outcome(proposed(world, "pay", "third")).why == NONE_COUNTS


def test_people_who_were_against_such_a_call_or_a_failure_are_the_reason_where_nothing_raises() -> None:
    against = ClassFact(offset=99, at_ms=START_MS, kind="rejection", by=("rita",))
    failed = ClassFact(offset=99, at_ms=START_MS, kind="failure", by=())
    said = "people were against such a call, or it failed, and no approval since then counts"

    for found in (facts(60, against), facts(0, failed)):
        assert outcome(proposed(world_of(Known(found), ALWAYS), "pay")).why == said


def test_new_value_raises_the_risk_and_the_reason_says_by_how_much() -> None:
    known = CallHistory(numbers=(("amount", 0.0, 1.0),))
    risk = "from high 0.7291 to high 0.8104 (destructive, money, not_idempotent, novel, open_world, writes)"
    raised = f"new values raise the risk {risk}: trust is at least 0.9520, and 0.9900 is needed"

    found = outcome(
        proposed(world_of(Known(facts(history=known)), {**ALWAYS, "floor": {"high": 0.99}}), "pay")
    )

    assert found.why == raised


def test_condition_of_the_block_sees_the_parts_that_the_values_of_the_call_add() -> None:
    known = CallHistory(numbers=(("count", 0.0, 1.0),))
    rules = [rule("notes", "write", "hold", timeout_seconds=60)]
    hints = {"destructiveHint": False, "openWorldHint": False, "idempotentHint": True}
    adaptive = {"allow_when": "!('novel' in risk.parts)", "sample_rate": 0, "floor": {"medium": 0.1}}

    def result(number: int) -> str:
        world = world_of(Known(facts(history=known)), adaptive, rules)
        world.definitions = published(world.definitions, None, [{"name": "write", "annotations": hints}])
        return outcome(proposed(world, "write", arguments=f'{{"count":{number}}}')).result

    assert (result(1), result(2)) == ("released", "asked")


def test_call_of_high_risk_by_its_new_values_alone_is_not_said_to_be_always_asked() -> None:
    known = CallHistory(numbers=(("count", 0.0, 1.0),))
    rules = [rule("notes", "write", "hold", timeout_seconds=60)]
    hints = {"destructiveHint": False, "openWorldHint": False, "idempotentHint": True}
    adaptive = {"sample_rate": 0, "floor": {"low": 0.5, "medium": "ask"}}

    def why(number: int) -> str:
        world = world_of(Known(facts(history=known)), adaptive, rules)
        world.definitions = published(world.definitions, None, [{"name": "write", "annotations": hints}])
        return outcome(proposed(world, "write", arguments=f'{{"count":{number}}}')).why

    assert why(1) == "trust is enough"
    assert why(2) == (
        "people are asked while these values are new: they raise the risk from low 0.2500 to medium 0.4750 "
        "(novel, writes)"
    )


def test_call_with_sealed_arguments_is_asked() -> None:
    world = world_of(Known(facts()), ALWAYS)
    world.definitions = published(world.definitions, None, [LOGIN])

    assert outcome(proposed(world, "pay", "plain")).result == "released"
    assert outcome(proposed(world, "pay", arguments=with_token(SEALED))).why == "arguments are sealed"


def test_call_that_is_in_no_class_is_asked() -> None:
    arguments = f'{{"amount":5,"to":"{"x" * 3_000}"}}'
    bodies = proposed(world_of(Known(facts()), ALWAYS), "pay", arguments=arguments)

    assert (the(bodies, "PolicyVerdictIssued").trust_class, outcome(bodies).why) == (
        "",
        "it has values that are not looked at",
    )


def test_default_floor_wants_some_approvals_even_where_nothing_is_at_risk() -> None:
    rules = [rule("reads", "look", "hold", timeout_seconds=60)]
    hints = {"readOnlyHint": True, "openWorldHint": False}
    tool = {"name": "look", "annotations": hints}

    for approvals, result in ((1, "asked"), (4, "released")):
        world = world_of(Known(facts(approvals)), {"sample_rate": 0}, rules)
        world.definitions = published(world.definitions, None, [tool])
        bodies = proposed(world, "look", arguments="{}")
        assert (the(bodies, "PolicyVerdictIssued").risk_required, outcome(bodies).result) == (0, result)


def test_any_values_of_memory_that_forbid_a_release_forbid_it() -> None:
    rules = [
        {
            "id": "new",
            "match": {"tools": ["pay"]},
            "when": 'args.to in memory.approved("to")',
            "then": "hold",
            "hold": {"adaptive": False, "remember": {"max_uses": "unlimited"}},
        },
        rule("pay", "pay", "hold", timeout_seconds=600),
    ]
    call = facts_of(
        CallCase(tool="pay", arguments={"to": "x"}, trust=TrustCase(lower_bound=0.99)), {"pay": {}}
    )
    document = policy_from_value(
        {
            "policy": "p",
            "rules": rules,
            "adaptive": {"floor": {"high": 0}, "allow_when": "true || args.to == ''"},
        }
    )

    def verdict(memory: dict[str, list[str]]) -> bool:
        remembered = call_with(call, memory=memory)
        found = judge_with_memory(
            policy_alone(document, "test"), remembered, START_MS, lambda: remembered.memory, lambda *_: {}
        )
        assert found.adaptive is not None
        return found.adaptive.is_eligible

    assert [verdict({"to": ["y"]}), verdict({"to": ["x"]})] == [True, False]


def test_reviewer_decides_a_sampled_call_like_any_other() -> None:
    world = world_of(Known(facts()), {**ALWAYS, "sample_rate": 1})

    bodies = decided(world, held(world, "pay"), "approve", RITA)

    assert the(bodies, "ToolCallReleased").released_by == "decision"
    assert world.state().calls["c"].is_sampled


def test_value_that_people_were_against_is_asked_in_whatever_class_the_call_now_is() -> None:
    eve = Value("to", "Eve").digest
    against = ClassFact(offset=-1, at_ms=START_MS, kind="rejection", by=("rita",), values=(eve,))
    world = world_of(Known(facts(120, against)), {**ALWAYS, "floor": {"low": 0, "medium": 0, "high": 0}})

    found = outcome(proposed(world, "pay", "eve", '{"amount":5,"to":"Eve"}'))
    other = outcome(proposed(world, "pay", "bob", '{"amount":5,"to":"Bob"}'))

    assert (found.result, found.why) == ("asked", "people were against calls with the same value at to")
    assert other.result == "released"
