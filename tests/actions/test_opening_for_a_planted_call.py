"""PlantProbe in two steps: a run is opened for a call, which is planted in it later, and in no other run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from projections.folds.executions import execution_json
from projections.folds.holds import told_fields
from projections.queries.history import fold_all
from schemas import commands as k
from schemas.conversation_commands import SendMessage
from schemas.message import Message
from schemas.probe_commands import PlantProbe
from tests.actions.planting import NOTE, plant
from tests.domain.steps import code, decided
from tests.domain.world import BOT, OLGA, RITA, World, names


def opened(**changes: Any) -> World:
    """A world with a run that is open for a planted call."""
    world = World()
    assert names(world.ask(plant(only_opens=True, **changes), OLGA)) == ["ExecutionStarted"]
    return world


def test_run_of_a_planted_call_can_be_opened_before_it_by_a_command_of_its_own() -> None:
    seems: dict[str, Any] = {
        "requester": "bot-7",
        "user": "ada",
        "request": "pay the rent",
        "run_context": '{"a":1}',
        "idle_ms": 60_000,
        "claims": '{"destructiveHint":true}',
    }
    world = opened(**seems)
    world.later(8)

    bodies = world.ask(plant(**seems), OLGA)

    assert names(bodies) == ["ToolCallProposed", "PolicyVerdictIssued", "HoldOpened"]
    start, call, _, hold = world.events
    assert (start.body.by, start.body.context, start.body.idle_ms) == ("bot-7", '{"a":1}', 60_000)  # type: ignore[attr-defined]
    assert (call.body.by, call.body.claims) == ("bot-7", '{"destructiveHint":true}')  # type: ignore[attr-defined]
    assert call.meta.at_ms - start.meta.at_ms == 8_000
    assert call.meta.command_id != start.meta.command_id
    assert hold.body.view_digest != ""  # type: ignore[attr-defined]
    mark = {"by": "olga", "note": NOTE, "wrong": []}
    assert [json.loads(one.body.probe) for one in (start, call)] == [mark, mark]  # type: ignore[attr-defined]
    bodies = decided(world, hold.body, "approve")
    assert names(bodies) == ["DecisionRecorded", "ProbeEnded", "ToolCallDenied", "ExecutionCompleted"]


@pytest.mark.parametrize(
    "changes",
    [
        {"note": "another"},
        {"wrong": '["/to"]'},
        {"agent": "bot-2"},
        {"requester": "bot-7"},
        {"user": "ada"},
        {"workspace": "books"},
        {"request": "pay the rent"},
        {"run_context": '{"a":1}'},
        {"idle_ms": 60_000},
        {"only_opens": True},
    ],
)
def test_only_the_call_that_a_run_was_opened_for_is_planted_in_it(changes: dict[str, Any]) -> None:
    world = opened()
    assert code(world.ask(plant(**changes), OLGA)) == "id_reused"
    assert names(world.ask(plant(), OLGA))[-1] == "HoldOpened"


def test_only_who_opened_a_run_plants_in_it() -> None:
    world = opened()
    assert code(world.ask(plant(), OLGA.model_copy(update={"subject": "otto"}))) == "id_reused"
    assert code(world.ask(plant(), RITA)) == "not_found"


@pytest.mark.parametrize(
    "meanwhile",
    [
        k.ProposeToolCall(call_id="d", tool="pay", arguments='{"amount":1}'),
        k.ProposeToolCall(call_id="d", tool="read", arguments="{}"),
        k.RequestHumanInput(request_id="r", kind="clarification", question="who?"),
        SendMessage(turn_id="m", text="hello"),
        plant(),
    ],
)
def test_nothing_is_planted_in_a_run_in_which_something_was_done(meanwhile: Message) -> None:
    world = opened()
    world.ask(meanwhile, OLGA if isinstance(meanwhile, PlantProbe) else BOT)
    assert code(world.ask(plant(), OLGA)) == "id_reused"


@pytest.mark.parametrize(
    ("meanwhile", "refused"),
    [(k.CompleteExecution(), "execution_closed"), (k.PauseExecution(), "invalid")],
)
def test_nothing_is_planted_in_a_run_that_does_not_go_on(meanwhile: Message, refused: str) -> None:
    world = opened()
    world.ask(meanwhile, OLGA)
    assert code(world.ask(plant(), OLGA)) == refused


@pytest.mark.parametrize("changes", [{"tool": "read"}, {"arguments": '{"to":"x"}'}, {"idle_ms": 0}])
def test_no_run_is_opened_for_what_cannot_be_planted(changes: dict[str, Any]) -> None:
    bodies = World().ask(plant(only_opens=True, **changes), OLGA)
    assert names(bodies) == ["CommandRefused"]


def test_run_that_was_opened_says_to_nobody_what_for() -> None:
    world = opened()
    (start,) = world.events
    assert "probe" not in told_fields(start.body.model_dump())
    state = fold_all(world.events).execution
    assert state is not None
    assert NOTE not in json.dumps(execution_json(state))
    assert "olga" not in json.dumps(execution_json(state))
