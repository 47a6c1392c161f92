"""A conversation: messages open turns, one attempt at a time answers each, and a turn that waits resumes."""

from __future__ import annotations

from typing import Any

import pytest

from schemas import commands as k
from schemas import conversation_commands as t
from schemas.actor import Actor
from schemas.limits import REPLIES_MAX, TURN_LAPSES_MAX, TURN_LEASE_MS, TURNS_OPEN_MAX
from schemas.message import Message
from tests.domain.steps import code, decided, held, started
from tests.domain.world import BOT, CLARA, OLGA, OTHER_BOT, RITA, World, names, the

LEASE_S = TURN_LEASE_MS / 1000
SECOND_BOT = BOT.model_copy(update={"subject": "bot-b"})


def sent(world: World, turn_id: str = "m", text: str = "hello", by: Actor = BOT) -> list[Message]:
    return world.ask(t.SendMessage(turn_id=turn_id, text=text), by)


def claimed(world: World, turn_id: str = "m", attempt_id: str = "a", by: Actor = BOT) -> list[Message]:
    return world.ask(t.ClaimTurn(turn_id=turn_id, attempt_id=attempt_id), by)


def posted(world: World, number: int, text: str = "well", **more: Any) -> list[Message]:
    fields = {"turn_id": "m", "attempt_id": "a", **more}
    return world.ask(t.PostReply(number=number, text=text, **fields))


def yielded(world: World, hold_id: str = "", attempt_id: str = "a") -> list[Message]:
    return world.ask(t.YieldTurn(turn_id="m", attempt_id=attempt_id, hold_id=hold_id))


def ended(world: World, turn_id: str = "m", attempt_id: str = "a", **more: Any) -> list[Message]:
    return world.ask(t.EndTurn(turn_id=turn_id, attempt_id=attempt_id, **{"outcome": "completed", **more}))


def nudged(world: World) -> list[Message]:
    return world.ask(k.ExpireDue(subject_id="x", deadline_at_ms=world.now_ms, attempt=1))


def working() -> World:
    world = started()
    sent(world)
    claimed(world)
    return world


def test_turn_goes_from_the_message_to_the_answer() -> None:
    world = started()
    assert names(sent(world)) == ["MessageSent"]
    assert the(claimed(world), "TurnClaimed").lease_until_ms == world.now_ms + TURN_LEASE_MS
    assert names(posted(world, 1)) == ["ReplyPosted"]
    said = ended(world, reply="done")
    assert names(said) == ["ReplyPosted", "TurnEnded"]
    assert (the(said, "ReplyPosted").number, the(said, "ReplyPosted").text) == (2, "done")
    assert world.state().open_turns == ()
    assert code(claimed(world, attempt_id="b")) == "not_open"
    assert code(ended(world)) == "not_open"


@pytest.mark.parametrize("by", [BOT, RITA])
def test_agent_and_reviewers_may_send_messages(by: Actor) -> None:
    assert names(sent(started(), by=by)) == ["MessageSent"]


@pytest.mark.parametrize("by", [OTHER_BOT, CLARA])
def test_others_may_not_send_messages(by: Actor) -> None:
    assert code(sent(started(), by=by)) == "not_authorised"


@pytest.mark.parametrize("by", [OTHER_BOT, RITA, CLARA])
def test_only_the_agent_takes_its_turns_on(by: Actor) -> None:
    world = started()
    sent(world)
    assert code(claimed(world, by=by)) == "not_found"


def test_repeat_of_a_message_is_the_same_turn_and_another_text_is_refused() -> None:
    world = working()
    assert code(sent(world)) == "duplicate"
    assert code(sent(world, text="other")) == "id_reused"
    ended(world)
    assert code(sent(world)) == "duplicate"


def test_turns_are_worked_on_one_at_a_time_in_the_order_of_their_messages() -> None:
    world = working()
    sent(world, "n")
    assert code(claimed(world, "n", "b")) == "not_open"
    assert code(claimed(world, "m", "b")) == "already_consumed"
    assert code(claimed(world)) == "duplicate"
    ended(world)
    assert names(claimed(world, "n", "b")) == ["TurnClaimed"]


def test_so_many_messages_wait_at_most() -> None:
    world = started()
    for number in range(TURNS_OPEN_MAX // 2):
        sent(world, f"m{number}")
    assert code(sent(world, "one-more")) == "quota"


def test_messages_of_one_sender_leave_places_for_others() -> None:
    world = started()

    def fill(by: Actor) -> int:
        before = len(world.state().open_turns)
        for number in range(TURNS_OPEN_MAX):
            sent(world, f"{by.subject}-{number}", by=by)
        return len(world.state().open_turns) - before

    assert [fill(by) for by in (BOT, RITA, OLGA, RITA)] == [20, 10, 5, 0]


def test_only_the_attempt_of_its_own_subject_acts_on_a_turn() -> None:
    world = working()
    for body in (
        t.RenewTurn(turn_id="m", attempt_id="a"),
        t.PostReply(turn_id="m", attempt_id="a", number=1, text="x"),
        t.YieldTurn(turn_id="m", attempt_id="a"),
        t.EndTurn(turn_id="m", attempt_id="a", outcome="completed"),
    ):
        assert code(world.ask(body, SECOND_BOT)) == "already_consumed"
        assert code(world.ask(body.model_copy(update={"attempt_id": "b"}))) == "already_consumed"
        assert code(world.ask(body.model_copy(update={"turn_id": "n"}))) == "not_found"


def test_reply_numbers_follow_each_other() -> None:
    world = working()
    assert code(posted(world, 2)) == "invalid"
    assert code(posted(world, 1, "")) == "invalid"
    assert code(posted(world, 0)) == "invalid"
    posted(world, 1)
    assert code(posted(world, 1)) == "duplicate"
    assert code(posted(world, 1, "other")) == "id_reused"
    assert code(posted(world, 2, details="[]")) == "malformed"
    assert code(posted(world, 2, details="{")) == "malformed"
    for number in range(2, REPLIES_MAX + 1):
        posted(world, number)
    assert code(posted(world, REPLIES_MAX + 1)) == "quota"


def test_turn_whose_lease_has_ended_can_be_taken_on_by_another_attempt() -> None:
    world = working()
    posted(world, 1)
    world.later(LEASE_S - 1)
    assert nudged(world) == []
    world.later(1)
    assert the(nudged(world), "TurnYielded").cause == "lease"
    assert code(posted(world, 2)) == "not_released"
    assert code(claimed(world)) == "already_consumed"
    assert names(claimed(world, attempt_id="b")) == ["TurnClaimed"]
    assert code(posted(world, 2)) == "already_consumed"
    assert names(posted(world, 2, attempt_id="b")) == ["ReplyPosted"]


def test_lease_is_renewed_in_its_second_half() -> None:
    world = working()
    renew = t.RenewTurn(turn_id="m", attempt_id="a")
    assert code(world.ask(renew)) == "duplicate"
    world.later(LEASE_S / 2)
    assert the(world.ask(renew), "TurnRenewed").lease_until_ms == world.now_ms + TURN_LEASE_MS
    world.later(LEASE_S - 1)
    assert nudged(world) == []


def test_turn_whose_workers_are_lost_again_and_again_is_given_up() -> None:
    world = working()
    for number in range(TURN_LAPSES_MAX - 1):
        world.later(LEASE_S)
        assert names(nudged(world)) == ["TurnYielded"]
        claimed(world, attempt_id=f"b{number}")
    world.later(LEASE_S)
    said = nudged(world)
    assert names(said) == ["TurnYielded", "TurnEnded"]
    assert the(said, "TurnEnded").outcome == "failed"


def test_renewals_of_lost_workers_do_not_keep_a_turn_from_being_given_up() -> None:
    world = working()
    for number in range(TURN_LAPSES_MAX):
        assert world.state().turns["m"].lapses == number
        world.later(LEASE_S / 2)
        attempt = "a" if not number else f"b{number - 1}"
        assert names(world.ask(t.RenewTurn(turn_id="m", attempt_id=attempt))) == ["TurnRenewed"]
        world.later(LEASE_S)
        said = nudged(world)
        claimed(world, attempt_id=f"b{number}")
    assert names(said) == ["TurnYielded", "TurnEnded"]


def test_turn_that_says_something_new_has_got_on() -> None:
    world = working()
    for number in range(TURN_LAPSES_MAX - 1):
        world.later(LEASE_S)
        nudged(world)
        claimed(world, attempt_id=f"b{number}")
    assert names(posted(world, 1, attempt_id=f"b{TURN_LAPSES_MAX - 2}")) == ["ReplyPosted"]
    world.later(LEASE_S)
    assert names(nudged(world)) == ["TurnYielded"]


def asked(world: World) -> Any:
    return the(
        world.ask(k.RequestHumanInput(request_id="r", kind="clarification", question="?")), "HoldOpened"
    )


def test_suspended_turn_resumes_with_the_answer() -> None:
    world = working()
    hold = asked(world)
    assert the(yielded(world, hold.hold_id), "TurnYielded").cause == "waiting"
    assert code(claimed(world, attempt_id="b")) == "not_released"
    said = decided(world, hold, "respond", value='"yes"')
    assert names(said) == ["DecisionRecorded", "HumanInputProvided", "TurnResumed"]
    assert names(claimed(world, attempt_id="b")) == ["TurnClaimed"]


def test_answer_that_comes_before_the_turn_waits_resumes_it_at_once() -> None:
    world = working()
    hold = asked(world)
    decided(world, hold, "respond", value='"yes"')
    assert names(yielded(world, hold.hold_id)) == ["TurnYielded", "TurnResumed"]
    assert names(claimed(world, attempt_id="b")) == ["TurnClaimed"]


def test_turn_resumes_when_its_hold_expires_or_its_call_is_rejected() -> None:
    world = working()
    hold = asked(world)
    yielded(world, hold.hold_id)
    world.later(300)
    assert names(nudged(world)) == ["HoldExpired", "HumanInputProvided", "TurnResumed"]

    world = working()
    opened = held(world)
    yielded(world, opened.hold_id)
    assert names(decided(world, opened, "reject", feedback="no"))[-1] == "TurnResumed"


def test_turn_does_not_wait_for_a_hold_that_there_is_not() -> None:
    assert code(yielded(working(), "nowhere")) == "invalid"


def test_turn_that_was_given_back_can_be_taken_on_at_once() -> None:
    world = working()
    assert the(yielded(world), "TurnYielded").cause == "stopped"
    assert code(yielded(world)) == "not_released"
    assert names(claimed(world, attempt_id="b")) == ["TurnClaimed"]


def test_no_turn_is_taken_on_in_a_pause() -> None:
    world = started()
    world.ask(k.PauseExecution(), RITA)
    assert names(sent(world)) == ["MessageSent"]
    assert code(claimed(world)) == "not_released"
    world.ask(k.ResumeExecution(), RITA)
    assert names(claimed(world)) == ["TurnClaimed"]


def test_turns_end_with_their_execution() -> None:
    world = working()
    sent(world, "n")
    hold = asked(world)
    yielded(world, hold.hold_id)
    said = world.ask(k.CancelExecution(), RITA)
    assert names(said) == ["HoldCancelled", "TurnEnded", "TurnEnded", "ExecutionCancelled"]
    assert code(sent(world, "o")) == "execution_closed"
    assert code(claimed(world, attempt_id="b")) == "not_open"


def test_turns_end_with_an_execution_that_a_hold_halts() -> None:
    world = working()
    opened = held(world, "halt")
    yielded(world, opened.hold_id)
    said = decided(world, opened, "reject", feedback="stop")
    assert names(said)[-2:] == ["TurnEnded", "ExecutionFailed"]
    assert "TurnResumed" not in names(said)
