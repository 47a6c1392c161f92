"""An execution that was started with an idle time is completed by itself once nothing is open in it for so long."""

from __future__ import annotations

from schemas import commands as k
from schemas import conversation_commands as t
from schemas.message import Message
from tests.domain.steps import code, consumed, decided, held, released, reported
from tests.domain.world import RITA, World, names, the

IDLE_S = 100


def idling() -> World:
    world = World()
    world.ask(k.StartExecution(agent="bot", idle_ms=IDLE_S * 1000))
    return world


def nudged(world: World) -> list[Message]:
    return world.ask(k.ExpireDue(subject_id="x", deadline_at_ms=world.now_ms, attempt=1))


def ends_after(world: World, seconds: float) -> None:
    world.later(seconds - 1)
    assert nudged(world) == []
    world.later(1)
    (ended,) = nudged(world)
    assert type(ended).__name__ == "ExecutionCompleted"


def test_execution_in_which_nothing_happens_is_completed() -> None:
    world = idling()
    assert world.state().next_due == (world.now_ms + IDLE_S * 1000, "idle/")
    ends_after(world, IDLE_S)
    assert code(world.ask(t.SendMessage(turn_id="m", text="late"))) == "execution_closed"


def test_command_that_comes_late_finds_it_ended() -> None:
    world = idling()
    world.later(IDLE_S)
    assert names(world.ask(t.SendMessage(turn_id="m", text="late"))) == [
        "ExecutionCompleted",
        "CommandRefused",
    ]


def test_execution_without_an_idle_time_stays() -> None:
    world = World()
    world.ask(k.StartExecution(agent="bot"))
    assert world.state().next_due is None


def test_open_question_keeps_it_and_the_time_begins_with_the_answer() -> None:
    world = idling()
    world.later(IDLE_S - 1)
    asked = k.RequestHumanInput(request_id="r", kind="clarification", question="?", timeout_ms=10**9)
    hold = the(world.ask(asked), "HoldOpened")
    world.later(5 * IDLE_S)
    assert nudged(world) == []
    decided(world, hold, "respond", value='"yes"')
    ends_after(world, IDLE_S)


def test_open_call_keeps_it() -> None:
    world = idling()
    hold = held(world)
    world.later(IDLE_S)
    assert nudged(world) == []
    decided(world, hold, "reject")
    ends_after(world, IDLE_S)

    world = idling()
    consumed(world, released(world))
    reported(world, "succeeded")
    ends_after(world, IDLE_S)


def test_turn_and_pause_keep_it() -> None:
    world = idling()
    world.ask(t.SendMessage(turn_id="m", text="hello"))
    world.later(IDLE_S)
    assert nudged(world) == []
    world.ask(t.ClaimTurn(turn_id="m", attempt_id="a"))
    world.ask(t.EndTurn(turn_id="m", attempt_id="a", outcome="completed"))
    world.ask(k.PauseExecution(), RITA)
    world.later(IDLE_S)
    assert nudged(world) == []
    world.ask(k.ResumeExecution(), RITA)
    ends_after(world, IDLE_S)


def test_idle_time_is_positive() -> None:
    for idle_ms in (0, -1, 10**15):
        world = World()
        assert code(world.ask(k.StartExecution(agent="bot", idle_ms=idle_ms))) == "invalid"


def test_same_start_with_another_idle_time_is_a_repeat() -> None:
    world = idling()
    assert code(world.ask(k.StartExecution(agent="bot", idle_ms=IDLE_S * 1000))) == "duplicate"
    assert code(world.ask(k.StartExecution(agent="bot"))) == "duplicate"
