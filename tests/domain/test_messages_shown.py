"""What a person is shown of a conversation: the message that the agent was answering when it asked."""

from __future__ import annotations

from typing import Any

from schemas import commands as k
from schemas.events.holds import HoldOpened
from schemas.limits import TURN_LEASE_MS
from services.domain.execution.evolve import evolve
from tests.domain.steps import TESSA, ask_two, code, consumed, decided, held, released, reported
from tests.domain.test_senders import asked
from tests.domain.test_turns import claimed, ended, nudged, sent, yielded
from tests.domain.world import OLGA, RITA, World, names, the


def begun(request: str = "hi") -> World:
    world = World()
    world.ask(k.StartExecution(agent="bot", request=request))
    return world


def answering(text: str = "rm -rf /prod", request: str = "hi") -> World:
    """A conversation that began with a greeting, in whose second turn the agent is."""
    world = begun(request)
    sent(world, "m0", "hi", OLGA)
    claimed(world, "m0", "a0")
    ended(world, "m0", "a0")
    sent(world, "m", text, RITA)
    claimed(world, "m")
    return world


def shown(world: World, hold: HoldOpened) -> Any:
    """Version and message by which the hold is shown."""
    state = world.state()
    return hold.view_version, state.calls[hold.call_id].message if hold.call_id else ""


def test_holds_of_a_turn_show_its_message_and_others_are_what_they_were() -> None:
    world = answering()
    call, question = held(world), asked(world)
    assert shown(world, call) == (12, "rm -rf /prod")
    assert question.view_version == 12
    other = answering("ls")
    assert asked(other).view_digest != question.view_digest
    assert held(other).view_digest != call.view_digest
    ended(other, "m")
    assert asked(other, request_id="after").view_version == 11
    assert held(other, call_id="after").view_version == 11


def test_message_that_no_worker_has_taken_on_is_not_shown() -> None:
    world = begun()
    plain = asked(begun())
    sent(world, text="rm -rf /prod")
    assert (asked(world).view_digest, asked(world, request_id="s").view_version) == (plain.view_digest, 11)


def test_message_that_is_the_runs_request_is_shown_as_that() -> None:
    world = begun("rm -rf /prod")
    sent(world, text="rm -rf /prod")
    claimed(world)
    assert held(world).view_version == 11


def test_message_stays_that_of_the_call_when_its_hold_opens_later() -> None:
    world = answering()
    consumed(world, released(world))
    ended(world, "m")
    sent(world, "next", "what time is it?", OLGA)
    claimed(world, "next", "b")
    assert shown(world, the(reported(world, "unknown"), "HoldOpened")) == (12, "rm -rf /prod")


def test_message_is_shown_with_what_an_edit_asks_again_while_the_turn_waits() -> None:
    world = answering()
    ask_two(world)
    first = held(world)
    yielded(world, first.hold_id)
    edited = the(decided(world, first, "edit", RITA, edited_arguments='{"amount":7}'), "HoldOpened")
    assert shown(world, edited) == (12, "rm -rf /prod")


def test_message_is_shown_with_what_the_next_worker_asks_after_one_was_lost() -> None:
    world = answering()
    world.later(TURN_LEASE_MS / 1000)
    nudged(world)
    assert asked(world).view_version == 12


def test_long_message_makes_its_hold_one_that_must_be_read() -> None:
    world = answering("x" * 2_001)
    hold = held(world)
    assert world.state().holds[hold.hold_id].must_read
    assert code(decided(world, hold, "approve", TESSA)) == "invalid"
    assert "ToolCallReleased" in names(decided(world, hold, "approve", TESSA, view_digest=hold.view_digest))


def test_hold_that_version_5_opened_in_a_turn_is_decided_as_then() -> None:
    world = answering("x" * 2_001)
    hold = held(world)
    old = hold.model_copy(update={"view_version": 5})
    assert not evolve(world.state(), old, world.now_ms).holds[hold.hold_id].must_read


def test_texts_of_messages_are_kept_no_longer_than_they_are_needed() -> None:
    world = answering()
    decided(world, held(world), "reject", TESSA)
    ended(world, "m")
    state = world.state()
    assert [turn.text for turn in state.turns.values()] == ["", ""]
    assert [call.message for call in state.calls.values()] == [""]
