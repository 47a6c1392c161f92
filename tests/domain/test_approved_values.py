"""`memory.approved` in a policy: a rule's values count only where the rule itself would stand in for people."""

from typing import Any

import pytest

from schemas import commands as k
from schemas.events.rules import RuleSuspended
from schemas.message import Message
from tests.domain.ruled import (
    decide,
    make,
    pay,
    plain,
    publish,
    ruled,
    settle,
    unlimited,
    world,
)
from tests.domain.test_remembering_together import people
from tests.domain.world import RULES, World, names, published, rule, the

# Another amount than the rule's: it is the policy that allows it, and not the rule.
KNOWN = {"amount": 7, "to": "GB29"}
READS = {**rule("known", "pay", "allow"), "when": "args.to in memory.approved('to')"}


def reading(made: World, rules: list[dict[str, Any]] | None = None) -> World:
    """The world under a policy that allows what was approved, before the rules that it has."""
    rules = plain(max_uses="unlimited") if rules is None else rules
    made.definitions = published(made.definitions, [READS, *rules])
    return made


def payments(**hold: Any) -> list[dict[str, Any]]:
    """The world's rules, with payments held so."""
    remember = {"four_eyes": False, "max_uses": "unlimited", **hold.pop("remember", {})}
    asks = rule("payments", "pay", "hold", remember=remember, **hold)
    return [asks if found["id"] == "payments" else found for found in RULES]


def approved(**hold: Any) -> World:
    """A world where a rule was made of a hold, under a policy that reads its values."""
    made = world(payments(**hold))
    ruled(made)
    return reading(made, payments(**hold))


def allows(made: World, call_id: str = "later", arguments: dict[str, Any] = KNOWN) -> bool:
    """Whether the policy itself lets a call run; else it waits for a person."""
    events = pay(made, call_id, arguments)
    if "HoldOpened" in names(events):
        return False
    assert the(events, "ToolCallReleased").released_by == "policy"
    return True


def in_run_of(made: World, user: str) -> list[Message]:
    made.ask(k.StartExecution(agent="bot", user=user), execution_id="theirs")
    command = k.ProposeToolCall(call_id="c", tool="pay", arguments='{"amount":7,"to":"GB29"}')
    return made.ask(command, execution_id="theirs")


def test_values_of_a_rule_with_a_limit_of_uses_never_count() -> None:
    made = world()
    rule_id = make(
        made, the(decide(made, pay(made, "first"), scope="rule", remember={"uses": 1}), "RuleAsked")
    )
    reading(made, plain())
    assert not allows(made, "before-its-use")
    asked = the(pay(made, "second", {"amount": 100, "to": "GB29"}), "ReservationAsked")
    assert asked.rule_id == rule_id
    assert "ToolCallReleased" in names(settle(made, asked, granted=True))
    assert not allows(made, "after-its-use")


@pytest.mark.parametrize(
    "today",
    [
        {"remember": {"four_eyes": True}},
        {"remember": {"scopes": []}},
        {"remember": {"scopes": ["execution"]}},
        {"quorum": 2},
        {"roles": ["cfo"]},
        {"excluded": ["zoe"]},
        {"exclude_requester": True},
    ],
    ids=["four-eyes", "nothing", "scope", "quorum", "roles", "excluded", "requester"],
)
def test_values_do_not_count_where_the_policy_asks_more_than_the_rule_was_made_of(
    today: dict[str, Any],
) -> None:
    made = approved()
    release = the(pay(made, "second", KNOWN), "ToolCallReleased")
    assert release.released_by == "policy"

    reading(made, payments(**today))

    assert not allows(made)
    consume = k.ConsumeGrant(call_id="second", digest=release.digest, attempt_id="a")
    said = names(made.ask(consume))
    assert said == ["PolicyVerdictIssued", "HoldOpened", "CommandRefused"], "what it released is judged again"


def test_values_do_not_count_for_the_agent_of_their_maker() -> None:
    made = approved(exclude_requester=True)
    people(made, "rita")
    release = the(pay(made, "second", KNOWN), "ToolCallReleased")

    people(made, "rita", agents=["bot"])

    assert not allows(made)
    consume = k.ConsumeGrant(call_id="second", digest=release.digest, attempt_id="a")
    assert names(made.ask(consume))[1:] == ["HoldOpened", "CommandRefused"]


def test_values_do_not_count_in_the_run_of_their_maker() -> None:
    made = approved(exclude_requester=True)
    assert names(in_run_of(made, "otto"))[-1] == "ToolCallReleased"
    made = approved(exclude_requester=True)
    assert names(in_run_of(made, "rita"))[-1] == "HoldOpened"


def test_values_do_not_count_for_a_call_that_another_rule_of_the_policy_holds() -> None:
    """Those who approve payments say nothing of what asks the cfo."""
    large = {**rule("large", "pay", "hold", roles=["cfo"]), "when": "args.amount > 500.0"}
    made = unlimited()
    ruled(made)
    reading(made, [large, *plain(max_uses="unlimited")])
    assert allows(made)
    assert not allows(made, "large", {"amount": 900, "to": "GB29"})


def test_values_do_not_count_for_a_call_that_the_policy_denies_or_fails_on() -> None:
    made = approved()
    assert "ToolCallDenied" in names(pay(made, "denied", {"amount": 2000, "to": "GB29"}))
    fails = {**rule("fails", "pay", "hold"), "when": "args.nothing > 1.0"}
    made.definitions = published(made.definitions, [READS, fails, *payments()])
    assert not allows(made)


def test_values_do_not_count_with_a_sensitive_argument() -> None:
    made = approved()
    assert not allows(made, "sealed", {**KNOWN, "key": {"handle": "sec_1", "commitment": "00"}})


def test_release_by_values_of_a_rule_that_rests_since_is_taken_back() -> None:
    made = unlimited()
    rule_id = ruled(made)
    reading(made)
    release = the(pay(made, "second", KNOWN), "ToolCallReleased")
    publish(made, RuleSuspended(rule_id=rule_id, reason="", evidence="{}", by="olga"))
    consume = k.ConsumeGrant(call_id="second", digest=release.digest, attempt_id="a")
    assert names(made.ask(consume))[1:] == ["HoldOpened", "CommandRefused"]


def test_verdict_is_asked_for_once_where_no_condition_reads_what_is_remembered() -> None:
    asked: list[str] = []
    made = unlimited()
    ruled(made)
    evaluate = made.definitions.evaluate

    def counted(expression: Any, bindings: Any) -> Any:
        asked.append(expression.source)
        return evaluate(expression, bindings)

    test = {**rule("small", "pay", "deny"), "when": "args.amount < 0.0"}
    made.definitions = published(made.definitions, [test, *plain(max_uses="unlimited")])
    made.definitions = type(made.definitions)(
        **{name: getattr(made.definitions, name) for name in made.definitions.__struct_fields__}
        | {"evaluate": counted}
    )
    pay(made, "second")
    assert asked.count("args.amount < 0.0") == 1


@pytest.mark.parametrize(("then", "event"), [("deny", "ToolCallDenied"), ("hold", "HoldOpened")])
def test_condition_that_negates_what_is_remembered_is_not_passed_by(then: str, event: str) -> None:
    when = "size(memory.approved('to')) > 0 && !(args.to in memory.approved('to'))"
    strange = {**rule("only-known", "pay", then), "when": when}
    made = unlimited()
    ruled(made)
    made.definitions = published(made.definitions, [strange, rule("rest", "pay", "allow")])
    assert allows(made)
    assert event in names(pay(made, "strange", {"amount": 7, "to": "EVIL"}))


def test_values_do_not_count_once_the_policy_takes_limits_only() -> None:
    made = approved()
    assert allows(made)
    reading(made, payments(remember={"max_uses": 1000}))
    assert not allows(made, "after")
