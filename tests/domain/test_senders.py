"""Who writes to an agent asks for what it asks for: none of them grants it, where another person is wanted."""

from __future__ import annotations

from typing import Any

import pytest

from schemas import commands as k
from schemas.actor import Actor
from schemas.limits import SENDERS_MAX
from tests.domain import ruled
from tests.domain.steps import TESSA, code, consumed, decided, held, refusal, released, reported, started
from tests.domain.test_authority import asking
from tests.domain.test_turns import claimed, ended, sent
from tests.domain.world import BOT, OLGA, PROJECT, RITA, TENANT, World, names, rule, the, with_people


def asked(world: World, kind: Any = "permission", request_id: str = "r") -> Any:
    command = k.RequestHumanInput(request_id=request_id, kind=kind, question="rm -rf /prod?")
    return the(world.ask(command), "HoldOpened")


def granted(world: World, hold: Any, by: Actor) -> list[Any]:
    return decided(world, hold, "approve", by)


def conversing(*senders: Actor, world: World | None = None, text: str = "please") -> World:
    """A conversation in which each of these has sent a message; the agent answers the last one."""
    world = world or started()
    for number, by in enumerate(senders):
        sent(world, f"m{number}", text, by)
        claimed(world, f"m{number}", f"a{number}")
        if number < len(senders) - 1:
            ended(world, f"m{number}", f"a{number}")
    return world


def test_sender_of_the_message_cannot_grant_what_the_agent_asks_in_its_turn() -> None:
    world = conversing(OLGA, RITA)
    hold = asked(world)
    assert code(granted(world, hold, RITA)) == "own_request"
    assert code(decided(world, hold, "reject", RITA)) == "own_request"
    assert "HumanInputProvided" in names(granted(world, hold, TESSA))


def test_senders_of_earlier_messages_cannot_grant_it_either() -> None:
    world = conversing(OLGA, RITA)
    assert code(granted(world, asked(world), OLGA)) == "own_request"


def test_sender_cannot_grant_it_after_the_turn_either() -> None:
    world = conversing(RITA)
    ended(world, "m0", "a0")
    assert code(granted(world, asked(world), RITA)) == "own_request"


def test_sender_by_another_account_of_the_person_cannot_grant_it() -> None:
    world = conversing(RITA)
    hold = asked(world)
    people = {"principal": "rita-r", "subjects": ["rita", "rita2"], "roles": ["reviewer"]}
    world.definitions = with_people(world.definitions, people)
    rita2 = RITA.model_copy(update={"subject": "rita2"})
    assert code(granted(world, hold, rita2)) == "own_request"


def test_message_about_an_open_hold_changes_nothing_of_who_may_decide_it() -> None:
    world = conversing(OLGA)
    hold = asked(world)
    sent(world, "why", "why?", RITA)
    assert "HumanInputProvided" in names(granted(world, hold, RITA))
    assert code(granted(world, asked(world, request_id="next"), RITA)) == "own_request"


@pytest.mark.parametrize("kind", ["clarification", "decision"])
def test_sender_can_answer_what_is_no_permission(kind: Any) -> None:
    world = conversing(RITA)
    assert "HumanInputProvided" in names(decided(world, asked(world, kind), "respond", RITA, value='"x"'))


def test_sender_cannot_approve_a_call_whose_rule_excludes_the_requester() -> None:
    world = conversing(RITA, world=asking(exclude_requester=True))
    hold = held(world)
    assert code(granted(world, hold, RITA)) == "own_request"
    assert "ToolCallReleased" in names(granted(world, hold, TESSA))


def test_sender_can_approve_a_call_whose_rule_does_not() -> None:
    world = conversing(RITA)
    assert "ToolCallReleased" in names(granted(world, held(world), RITA))


def test_edit_of_a_call_makes_nobody_its_requester_who_wrote_meanwhile() -> None:
    world = conversing(OLGA, world=asking(exclude_requester=True))
    hold = held(world)
    sent(world, "why", "why?", RITA)
    edited = the(decided(world, hold, "edit", TESSA, edited_arguments='{"amount":7}'), "HoldOpened")
    assert code(granted(world, edited, OLGA)) == "own_request"
    assert "ToolCallReleased" in names(granted(world, edited, RITA))


def test_second_run_of_a_call_is_for_those_who_did_not_ask_for_the_first() -> None:
    world = conversing(OLGA, world=asking(exclude_requester=True))
    consumed(world, released(world))
    sent(world, "how", "how is it?", RITA)
    hold = the(reported(world, "unknown"), "HoldOpened")
    assert code(granted(world, hold, OLGA)) == "own_request"
    assert "ToolCallReleased" in names(granted(world, hold, RITA))


def test_call_that_waited_for_the_end_of_a_pause_is_of_those_who_wrote_before_it() -> None:
    world = conversing(OLGA, world=asking(exclude_requester=True))
    world.ask(k.PauseExecution(), RITA)
    world.ask(k.ProposeToolCall(call_id="c", tool="pay", arguments='{"amount":5}'))
    hold = the(world.ask(k.ResumeExecution(), RITA), "HoldOpened")
    assert code(granted(world, hold, OLGA)) == "own_request"
    assert "ToolCallReleased" in names(granted(world, hold, RITA))


def test_remembered_decision_of_a_sender_does_not_stand_in_for_another_person() -> None:
    mild = ruled.world([rule("payments", "pay", "hold", exclude_requester=True, remember={"max_uses": 9})])
    ruled.decide(mild, ruled.pay(mild, "first"), scope="execution")
    assert "ToolCallReleased" in names(ruled.pay(mild, "same"))
    conversing(RITA, world=mild)
    waiting = ruled.pay(mild, "asked")
    assert code(ruled.decide(mild, waiting)) == "own_request"
    assert "ToolCallReleased" in names(ruled.decide(mild, waiting, actor=ruled.RUDI))


def test_conversation_has_as_many_senders_as_are_kept_and_no_more() -> None:
    world = started()
    people = [
        Actor(subject=f"p{number}", tenant=TENANT, project=PROJECT, roles=("reviewer",))
        for number in range(SENDERS_MAX + 1)
    ]
    for number, by in enumerate(people[:-1]):
        sent(world, f"m{number}", by=by)
        claimed(world, f"m{number}", f"a{number}")
        ended(world, f"m{number}", f"a{number}")
    refused = sent(world, "more", by=people[-1])
    assert code(refused) == "quota"
    assert f"{SENDERS_MAX} subjects" in refusal(refused).detail
    assert names(sent(world, "more", by=people[0])) == ["MessageSent"]
    assert len(world.state().senders) == SENDERS_MAX
    assert code(granted(world, asked(world), people[SENDERS_MAX - 1])) == "own_request"


def test_agent_that_writes_to_itself_bars_no_person() -> None:
    world = conversing(BOT)
    assert "HumanInputProvided" in names(granted(world, asked(world), RITA))
