"""The user of an agent's token: what is said, proposed or asked with it is that person's own request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from schemas import commands as k
from schemas import conversation_commands as v
from schemas.actor import Actor
from schemas.commands import Decision
from schemas.limits import SENDERS_MAX
from tests.domain.steps import TESSA, code, decided, held, started
from tests.domain.test_authority import asking
from tests.domain.test_senders import asked, granted
from tests.domain.test_turns import claimed, sent
from tests.domain.world import BOT, OLGA, PROJECT, RITA, TENANT, World, names, the, with_people

FOR_RITA = BOT.model_copy(update={"user": "rita"})
# An operator, who may work on any agent's turns, and decides as well.
RITA_OPERATES = RITA.model_copy(update={"roles": (*RITA.roles, "operator")})
PERMISSION = k.RequestHumanInput(request_id="r", kind="permission", question="rm -rf /prod?")


def test_message_by_a_token_for_a_user_is_that_users_own() -> None:
    world = started()
    said = sent(world, "m", by=FOR_RITA)
    assert names(said) == ["UserJoined", "MessageSent"]
    joined: Any = the(said, "UserJoined")
    assert (joined.user, joined.by) == ("rita", BOT.subject)
    hold = asked(world)
    assert code(granted(world, hold, RITA)) == "own_request"
    assert "HumanInputProvided" in names(granted(world, hold, TESSA))


def test_question_by_a_token_for_a_user_is_that_users_own() -> None:
    world = started()
    hold = the(world.ask(PERMISSION, FOR_RITA), "HoldOpened")
    assert code(decided(world, hold, "approve", RITA)) == "own_request"
    assert "HumanInputProvided" in names(decided(world, hold, "approve", TESSA))


def test_call_by_a_token_for_a_user_is_that_users_own() -> None:
    world = asking(exclude_requester=True)
    said = world.ask(k.ProposeToolCall(call_id="c", tool="pay", arguments='{"amount":5}'), FOR_RITA)
    assert names(said)[:2] == ["UserJoined", "ToolCallProposed"]
    hold: Any = the(said, "HoldOpened")
    assert code(decided(world, hold, "approve", RITA)) == "own_request"


def replied(world: World, by: Actor, *, at_the_end: bool) -> list[Any]:
    """A reply to a message by somebody who has taken the turn on in the agent's place."""
    sent(world, by=OLGA)
    claimed(world, by=by)
    if at_the_end:
        return world.ask(v.EndTurn(turn_id="m", attempt_id="a", outcome="completed", reply="Send it."), by)
    said = world.ask(v.PostReply(turn_id="m", attempt_id="a", number=1, text="Send it."), by)
    world.ask(v.YieldTurn(turn_id="m", attempt_id="a"), by)
    return said


@pytest.mark.parametrize("at_the_end", [False, True])
@pytest.mark.parametrize(("by", "person"), [(RITA_OPERATES, RITA), (FOR_RITA, RITA)])
def test_reply_of_a_person_in_the_agents_place_is_their_own_request(
    by: Actor, person: Actor, at_the_end: bool
) -> None:
    world = started()
    assert names(replied(world, by, at_the_end=at_the_end))[:2] == ["UserJoined", "ReplyPosted"]
    hold = the(world.ask(PERMISSION, BOT), "HoldOpened")
    assert code(decided(world, hold, "approve", person)) == "own_request"
    assert "HumanInputProvided" in names(decided(world, hold, "approve", TESSA))


def test_reply_of_the_agent_itself_and_an_end_without_one_make_nobody_join() -> None:
    world = started()
    assert "UserJoined" not in names(replied(world, BOT, at_the_end=True))
    sent(world, "m2", by=TESSA)
    claimed(world, "m2", by=RITA_OPERATES)
    assert "UserJoined" not in names(
        world.ask(v.EndTurn(turn_id="m2", attempt_id="a", outcome="failed", error="away"), RITA_OPERATES)
    )


@pytest.mark.parametrize("user", ["rita", "tessa", "nobody"])
@pytest.mark.parametrize("decision", ["approve", "reject", "respond"])
def test_token_for_another_user_decides_nothing(user: str, decision: Decision) -> None:
    world = started()
    hold = the(world.ask(PERMISSION, FOR_RITA), "HoldOpened")
    portal = RITA.model_copy(update={"subject": "portal", "user": user})
    assert code(decided(world, hold, decision, portal, value="true")) == "not_authorised"
    delegation = k.DelegateHold(hold_id=hold.hold_id, to="tessa")
    assert code(world.ask(delegation, portal)) == "not_authorised"


@pytest.mark.parametrize("user", ["tessa", "tessa-t"], ids=["the subject", "the principal of the subject"])
def test_token_for_its_own_subject_decides(user: str) -> None:
    world = started()
    person = {"principal": "tessa-t", "subjects": ["tessa"], "roles": ["reviewer"]}
    if user != "tessa":
        world.definitions = with_people(world.definitions, person)
    hold = the(world.ask(PERMISSION, FOR_RITA), "HoldOpened")
    own = TESSA.model_copy(update={"user": user})
    assert "HumanInputProvided" in names(decided(world, hold, "approve", own))


def test_token_for_a_name_that_is_also_another_persons_account_decides_nothing() -> None:
    world = started()
    hold = the(world.ask(PERMISSION, FOR_RITA), "HoldOpened")
    tessa = {"principal": "tt", "subjects": ["tessa"], "roles": ["reviewer"]}
    other = {"principal": "olga", "subjects": ["tt"], "roles": ["reviewer"]}
    world.definitions = with_people(world.definitions, tessa, other)
    own = TESSA.model_copy(update={"user": "tt"})
    assert code(decided(world, hold, "approve", own)) == "not_authorised"


def test_second_voice_of_one_person_by_a_token_for_them_completes_no_quorum() -> None:
    world = asking(quorum=2)
    hold = held(world)
    portal = RITA.model_copy(update={"subject": "portal", "user": "rita"})
    assert code(decided(world, hold, "approve", portal)) == "not_authorised"
    assert "ToolCallReleased" not in names(decided(world, hold, "approve", RITA))
    assert "ToolCallReleased" in names(decided(world, hold, "approve", TESSA))


def test_user_joins_once_and_the_one_of_the_run_not_at_all() -> None:
    world = started()
    sent(world, "m0", by=FOR_RITA)
    assert names(sent(world, "m1", by=FOR_RITA)) == ["MessageSent"]
    assert world.state().senders == ("rita", BOT.subject)
    own = World()
    own.ask(k.StartExecution(agent="bot", user="rita"))
    assert names(sent(own, "m", by=FOR_RITA)) == ["MessageSent"]


def test_user_that_is_named_as_policies_name_people_is_that_person() -> None:
    world = started()
    person = {"principal": "rita-r", "subjects": ["rita"], "roles": ["reviewer"]}
    world.definitions = with_people(world.definitions, person)
    sent(world, "m", by=BOT.model_copy(update={"user": "rita-r"}))
    assert code(granted(world, asked(world), RITA)) == "own_request"


def test_what_is_refused_makes_nobody_join() -> None:
    world = started()
    sent(world, "m", by=BOT)
    assert code(sent(world, "m", "another text", FOR_RITA)) == "id_reused"
    assert "rita" not in world.state().senders


def test_user_who_joins_later_can_decide_what_was_asked_before() -> None:
    world = started()
    hold = asked(world)
    sent(world, "m", by=FOR_RITA)
    assert "HumanInputProvided" in names(granted(world, hold, RITA))


@pytest.mark.parametrize(
    "command",
    [
        lambda: v.SendMessage(turn_id="more", text="please"),
        lambda: PERMISSION,
        lambda: k.ProposeToolCall(call_id="c", tool="unknown", arguments="{}"),
    ],
)
def test_nobody_joins_where_as_many_are_kept_as_can_be(command: Callable[[], Any]) -> None:
    world: World = started()
    for number in range(SENDERS_MAX):
        by = Actor(subject=f"p{number}", tenant=TENANT, project=PROJECT, roles=("reviewer",))
        sent(world, f"m{number}", by=by)
        world.ask(v.ClaimTurn(turn_id=f"m{number}", attempt_id=f"a{number}"), BOT)
        world.ask(v.EndTurn(turn_id=f"m{number}", attempt_id=f"a{number}", outcome="completed"), BOT)
    refused = world.ask(command(), FOR_RITA)
    assert code(refused) == "quota"
    assert len(world.state().senders) == SENDERS_MAX
    assert OLGA.subject not in world.state().senders
