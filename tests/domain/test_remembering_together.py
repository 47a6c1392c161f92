"""What several people approve is remembered only as all of them asked: it never stands on fewer than they were."""

import json
from typing import Any

import pytest

from schemas.canonical import canonical
from schemas.commands import ConsumeGrant, DelegateHold, ProposeToolCall, StartExecution
from schemas.events.rules import RuleActivated, RuleSuspended
from schemas.message import Message
from tests.domain.ruled import (
    RUDI,
    decide,
    make,
    pay,
    publish,
    refusal,
    unlimited,
    world,
)
from tests.domain.world import OLGA, RITA, World, names, published, rule, the, with_people

ZOE = RITA.model_copy(update={"subject": "zoe"})
OTTO = RITA.model_copy(update={"subject": "otto"})
EDITED = {"amount": 120, "to": "GB29"}
WIDE: dict[str, Any] = {"arguments": {"to": {"any": True}, "amount": {"at_most": 500}}}
ELSEWHERE = {"amount": 500, "to": "EVIL"}


def asking(quorum: int, four_eyes: bool = False, **hold: Any) -> World:
    remember = {"four_eyes": four_eyes, "max_uses": "unlimited"}
    return world([rule("payments", "pay", "hold", quorum=quorum, remember=remember, **hold)])


def ask_for(scope: str, **more: Any) -> dict[str, Any]:
    uses = {"uses": None} if scope == "rule" else {}
    return {"scope": scope, "remember": {**WIDE, **uses, **more}}


def remembered(made: World, *actors: Any, scope: str = "rule", status: str = "active") -> str:
    """The rule that all of some people ask for."""
    waiting = pay(made, "first")
    events: list[Message] = []
    for actor in actors:
        events = decide(made, waiting, actor=actor, **ask_for(scope))
    return make(made, the(events, "RuleAsked"), status) if scope == "rule" else ""


def pays_elsewhere(made: World, call_id: str = "elsewhere") -> str:
    return names(pay(made, call_id, ELSEWHERE))[-1]


def people(made: World, subject: str, **changes: Any) -> None:
    principal = {"principal": f"{subject}-p", "subjects": [subject], "roles": ["reviewer"]}
    made.definitions = with_people(made.definitions, principal | changes)


@pytest.mark.parametrize("scope", ["execution", "rule"])
def test_case_07_last_voter_alone_has_nothing_remembered(scope: str) -> None:
    made = asking(2)
    waiting = pay(made, "first")
    assert names(decide(made, waiting)) == ["DecisionRecorded"]

    refused = refusal(decide(made, waiting, actor=RUDI, **ask_for(scope)))

    assert (refused.code, "rita approved this once" in refused.detail) == ("invalid", True)
    assert refused.detail.endswith("approve once")
    assert names(decide(made, waiting, actor=RUDI)) == ["DecisionRecorded", "ToolCallReleased"]
    assert pays_elsewhere(made) == "HoldOpened"


@pytest.mark.parametrize("scope", ["execution", "rule"])
def test_case_07_first_voter_alone_has_nothing_remembered_and_the_call_is_approved_once(scope: str) -> None:
    made = asking(2)
    waiting = pay(made, "first")
    assert names(decide(made, waiting, **ask_for(scope))) == ["DecisionRecorded"]
    assert names(decide(made, waiting, actor=RUDI)) == ["DecisionRecorded", "ToolCallReleased"]
    assert pays_elsewhere(made) == "HoldOpened"
    assert made.state().memory == ()


def test_case_07_other_tests_than_an_earlier_vote_asked_for_are_refused_and_those_are_named() -> None:
    made = asking(2)
    waiting = pay(made, "first")
    decide(made, waiting, scope="execution", remember={"arguments": {"amount": {"at_most": 500}}})

    for content in (ask_for("execution"), {"scope": "execution"}, ask_for("rule")):
        refused = refusal(decide(made, waiting, actor=RUDI, **content))
        assert refused.code == "invalid"
        assert "rita requested scope execution" in refused.detail
        assert '{"arguments":{"amount":{"at_most":500}}}' in refused.detail
        assert "approve once" in refused.detail

    same = {"arguments": {"amount": {"at_most": 500.0}}}
    events = decide(made, waiting, actor=RUDI, scope="execution", remember=same)
    assert names(events) == ["DecisionRecorded", "ToolCallReleased"]
    makers = json.loads(the(events, "DecisionRecorded").remember)["makers"]
    assert [maker["by"] for maker in makers] == ["rita", "rudi"]
    assert names(pay(made, "second", {"amount": 499, "to": "GB29"}))[-1] == "ToolCallReleased"


def test_approve_of_three_who_ask_for_the_same_makes_a_rule_that_stands_on_three() -> None:
    made = asking(3)
    waiting = pay(made, "first")
    for actor in (RITA, RUDI):
        assert names(decide(made, waiting, actor=actor, **ask_for("rule"))) == ["DecisionRecorded"]
    asked = the(decide(made, waiting, actor=ZOE, **ask_for("rule")), "RuleAsked")
    document = json.loads(asked.document)
    assert [maker["by"] for maker in document["makers"]] == ["rita", "rudi", "zoe"]
    assert document["made_by"] == "zoe"
    make(made, asked)
    assert pays_elsewhere(made) == "ToolCallReleased"


def test_approve_of_one_person_writes_the_document_of_before() -> None:
    made = unlimited()
    asked = the(decide(made, pay(made, "first"), **ask_for("rule")), "RuleAsked")
    assert "makers" not in json.loads(asked.document)


def test_approve_asks_for_nothing_that_a_vote_of_a_disabled_account_asked_for() -> None:
    made = asking(2)
    people(made, "rita")
    waiting = pay(made, "first")
    decide(made, waiting)
    people(made, "rita", disabled=True)
    assert names(decide(made, waiting, actor=RUDI, **ask_for("execution"))) == ["DecisionRecorded"]
    assert names(decide(made, waiting, actor=ZOE, **ask_for("execution")))[-1] == "ToolCallReleased"
    assert pays_elsewhere(made) == "ToolCallReleased"


@pytest.mark.parametrize("scope", ["execution", "rule"])
@pytest.mark.parametrize("who", ["rita", "rudi"])
@pytest.mark.parametrize("change", [{"disabled": True}, {"roles": ["analyst"]}], ids=["disabled", "role"])
def test_propose_what_one_of_its_makers_may_decide_no_more_is_held(
    scope: str, who: str, change: dict[str, Any]
) -> None:
    made = asking(2)
    people(made, who)
    remembered(made, RITA, RUDI, scope=scope)
    assert pays_elsewhere(made) == "ToolCallReleased"
    people(made, who, **change)
    assert pays_elsewhere(made, "later") == "HoldOpened"


def test_propose_after_two_makers_were_told_to_be_one_person_is_held() -> None:
    made = asking(2)
    remembered(made, RITA, RUDI)
    assert pays_elsewhere(made) == "ToolCallReleased"
    people(made, "rita", subjects=["rita", "rudi"])
    assert pays_elsewhere(made, "later") == "HoldOpened"


@pytest.mark.parametrize("who", ["rita", "rudi", "zoe"])
def test_case_06_run_of_anybody_who_stands_behind_a_rule_is_held(who: str) -> None:
    made = asking(2, four_eyes=True, exclude_requester=True)
    rule_id = remembered(made, RITA, RUDI, status="proposed")
    publish(made, RuleActivated(rule_id=rule_id, reason="", by="zoe"))
    assert pays_elsewhere(made) == "ToolCallReleased"

    made.ask(StartExecution(agent="bot", user=who), execution_id="y")

    assert names(pay_in(made, "y"))[-1] == "HoldOpened"


def pay_in(made: World, execution_id: str) -> list[Message]:
    command = ProposeToolCall(call_id="theirs", tool="pay", arguments=canonical(ELSEWHERE))
    return made.ask(command, execution_id=execution_id)


@pytest.mark.parametrize("change", [{"disabled": True}, {"roles": ["analyst"]}], ids=["disabled", "role"])
def test_case_08_rule_whose_activator_may_no_more_releases_nothing_and_what_waits_is_held(
    change: dict[str, Any],
) -> None:
    made = asking(1, four_eyes=True)
    people(made, "zoe")
    rule_id = remembered(made, RITA, status="proposed")
    publish(made, RuleActivated(rule_id=rule_id, reason="", by="zoe"))
    release = the(pay(made, "elsewhere", ELSEWHERE), "ToolCallReleased")

    people(made, "zoe", **change)

    assert pays_elsewhere(made, "later") == "HoldOpened"
    consume = ConsumeGrant(call_id="elsewhere", digest=release.digest, attempt_id="a")
    assert names(made.ask(consume))[1:] == ["HoldOpened", "CommandRefused"]


def test_propose_after_another_activator_took_over_counts_that_one() -> None:
    made = asking(1, four_eyes=True)
    people(made, "zoe")
    rule_id = remembered(made, RITA, status="proposed")
    publish(made, RuleActivated(rule_id=rule_id, reason="", by="zoe"))
    publish(made, RuleSuspended(rule_id=rule_id, reason="", evidence="{}", by="olga"))
    publish(made, RuleActivated(rule_id=rule_id, reason="", by="rudi"))
    people(made, "zoe", disabled=True)
    assert pays_elsewhere(made) == "ToolCallReleased"


def test_propose_what_a_rule_of_one_maker_and_their_own_other_account_covers_is_held() -> None:
    made = asking(1, four_eyes=True)
    rule_id = remembered(made, RITA, status="proposed")
    publish(made, RuleActivated(rule_id=rule_id, reason="", by="zoe"))
    assert pays_elsewhere(made) == "ToolCallReleased"
    people(made, "rita", subjects=["rita", "zoe"])
    assert pays_elsewhere(made, "later") == "HoldOpened"


def test_delegate_and_who_they_speak_for_both_stand_behind_what_is_remembered() -> None:
    made = asking(1, exclude_requester=True)
    people(made, "rudi")
    waiting = pay(made, "first")
    made.ask(DelegateHold(hold_id=the(waiting, "HoldOpened").hold_id, to="zoe"), RUDI)
    delegate = ZOE.model_copy(update={"roles": ()})
    make(made, the(decide(made, waiting, actor=delegate, **ask_for("rule")), "RuleAsked"))
    assert pays_elsewhere(made) == "ToolCallReleased"
    for number, user in enumerate(("rudi", "zoe")):
        made.ask(StartExecution(agent="bot", user=user), execution_id=f"y{number}")
        assert names(pay_in(made, f"y{number}"))[-1] == "HoldOpened"
    people(made, "rudi", roles=["analyst"])
    assert pays_elsewhere(made, "later") == "HoldOpened"


def test_rule_of_before_stands_on_the_people_known_then() -> None:
    """A document without makers knows its last voter: with an activator those are two, and never three."""
    for quorum, outcome in ((2, "ToolCallReleased"), (3, "HoldOpened")):
        made = asking(quorum, four_eyes=True)
        waiting = pay(made, "first")
        actors = (RITA, RUDI, ZOE)[:quorum]
        asked = [decide(made, waiting, actor=actor, **ask_for("rule")) for actor in actors][-1]
        document = json.loads(the(asked, "RuleAsked").document)
        del document["makers"]
        old = the(asked, "RuleAsked").model_copy(update={"document": canonical(document)})
        rule_id = make(made, old, "proposed")
        publish(made, RuleActivated(rule_id=rule_id, reason="", by=OLGA.subject))
        assert pays_elsewhere(made) == outcome


def test_policy_that_reads_memory_forgets_a_rule_whose_activator_may_no_more() -> None:
    made = asking(1, four_eyes=True)
    people(made, "zoe")
    events = decide(made, pay(made, "first"), scope="rule", remember={"uses": None})
    rule_id = make(made, the(events, "RuleAsked"), "proposed")
    publish(made, RuleActivated(rule_id=rule_id, reason="", by="zoe"))
    reads = {**rule("known", "pay", "allow"), "when": "args.to in memory.approved('to')"}
    holds = rule("payments", "pay", "hold", remember={"max_uses": "unlimited"})
    made.definitions = published(made.definitions, [reads, holds])
    allowed = pay(made, "second", {"amount": 7, "to": "GB29"})
    assert the(allowed, "ToolCallReleased").released_by == "policy"
    people(made, "zoe", disabled=True)
    assert names(pay(made, "third", {"amount": 7, "to": "GB29"}))[-1] == "HoldOpened"


@pytest.mark.parametrize("scope", ["execution", "rule"])
@pytest.mark.parametrize("who", ["rita", "rudi"])
def test_case_06_propose_what_somebody_excluded_made_is_held_once_that_is_known(scope: str, who: str) -> None:
    made = asking(2, excluded=["carol"])
    remembered(made, RITA, RUDI, scope=scope)
    assert pays_elsewhere(made) == "ToolCallReleased"
    people(made, who, principal="carol")
    assert pays_elsewhere(made, "later") == "HoldOpened"


@pytest.mark.parametrize("scope", ["execution", "rule"])
@pytest.mark.parametrize("who", ["rita", "rudi"])
def test_case_06_propose_what_was_made_of_an_own_edit_is_held_once_that_is_known(
    scope: str, who: str
) -> None:
    made = asking(2, exclude_requester=True)
    edited = decide(made, pay(made, "first"), "edit", OTTO, edited_arguments=canonical(EDITED))
    events: list[Message] = []
    for actor in (RITA, RUDI):
        events = decide(made, edited, actor=actor, **ask_for(scope))
    if scope == "rule":
        make(made, the(events, "RuleAsked"))
    assert pays_elsewhere(made) == "ToolCallReleased"
    people(made, who, subjects=[who, "otto"])
    assert pays_elsewhere(made, "later") == "HoldOpened"
