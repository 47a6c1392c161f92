"""Every number of a body has the bounds that the decider has for its command: clients are made of the document."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from gateway.actions.verb import Verb
from gateway.rest.documented import bodies
from schemas import commands as k
from schemas import conversation_commands as t
from schemas.command_rules import range_of
from schemas.events.executions import CommandRefused
from schemas.limits import DEADLINE_MAX_S
from schemas.message import Message
from tests.actions.handling import HANDLING
from tests.actions.planting import plant
from tests.clients.documents import document
from tests.domain.steps import held, started
from tests.domain.world import OLGA, RITA, World

# Documents are read by one model at the gateway and in the decider.
DOCUMENTS = ("PolicyDocument", "PrincipalDocument", "ToolDefinition")
OUT_OF_BOUNDS = {"invalid", "quota"}


def _numbers() -> Iterator[tuple[str, dict[str, Any]]]:
    """The schemas of the numbers in bodies, by body and field."""
    schemas = document()["components"]["schemas"]
    for body in bodies().keys() - set(DOCUMENTS):
        for field, schema in schemas[body]["properties"].items():
            for part in (schema, *schema.get("anyOf", ())):
                if part.get("type") in ("integer", "number"):
                    yield f"{body}.{field}", part


NUMBERS = dict(_numbers())


def _of_hold(verb: Verb[Any], field: str, number: float) -> list[Message]:
    world = started()
    # As no door would take it: unread by the model.
    body = verb.body.model_construct(**{field: int(number)})
    return world.ask(verb.command(held(world).hold_id, body), RITA)


def _of_holds() -> Iterator[tuple[str, Callable[[float], list[Message]]]]:
    for verb in HANDLING.values():
        for field in verb.body.model_fields:
            if (name := f"{verb.body.__name__}.{field}") in NUMBERS:
                yield name, partial(_of_hold, verb, field)


def _asked(**ms: int) -> list[Message]:
    return started().ask(k.RequestHumanInput(request_id="r", question="?", kind="clarification", **ms))


def _replied(number: float) -> list[Message]:
    world = started()
    world.ask(t.SendMessage(turn_id="m", text="hello"))
    world.ask(t.ClaimTurn(turn_id="m", attempt_id="a"))

    def posted(each: int) -> list[Message]:
        return world.ask(t.PostReply(turn_id="m", attempt_id="a", number=each, text="well"))

    # A reply comes only after those before it.
    for earlier in range(1, int(number)):
        posted(earlier)
    return posted(int(number))


def _ms(seconds: float) -> int:
    return int(seconds * 1000)


# What the decider makes of a number in the unit of the body.
SAID: dict[str, Callable[[float], list[Message]]] = {
    **dict(_of_holds()),
    "PlantProbe.idle_seconds": lambda seconds: World().ask(plant(idle_ms=_ms(seconds)), OLGA),
    "PostReply.number": _replied,
    "RequestHumanInput.remind_after_seconds": lambda seconds: _asked(
        timeout_ms=_ms(DEADLINE_MAX_S), remind_after_ms=_ms(seconds)
    ),
    "RequestHumanInput.timeout_seconds": lambda seconds: _asked(timeout_ms=_ms(seconds)),
    "StartExecution.idle_seconds": lambda seconds: World().ask(
        k.StartExecution(agent="bot", idle_ms=_ms(seconds))
    ),
}
# The numbers whose bounds are in the command's model itself.
RANGES: dict[str, type[Message]] = {
    "ReportResult.duration_ms": k.ReportResult,
    "RetirePolicy.version": k.RetirePolicy,
}


def _is_in_bounds(events: list[Message]) -> bool:
    return not any(isinstance(event, CommandRefused) and event.code in OUT_OF_BOUNDS for event in events)


def test_every_number_of_a_body_is_compared_with_the_deciders_bounds() -> None:
    assert NUMBERS.keys() == SAID.keys() | RANGES.keys()


@pytest.mark.parametrize("field", SAID)
def test_decider_takes_the_bounds_of_a_number_and_no_more(field: str) -> None:
    schema, said = NUMBERS[field], SAID[field]
    # A tenth of a second within a bound that is excluded.
    least = schema.get("minimum", schema.get("exclusiveMinimum", 0) + 0.1)
    most = schema.get("maximum", schema.get("exclusiveMaximum", 0) - 0.1)

    assert _is_in_bounds(said(least))
    assert _is_in_bounds(said(most))
    assert not _is_in_bounds(said(schema.get("exclusiveMaximum", most + 1)))
    assert not _is_in_bounds(said(0))


@pytest.mark.parametrize("field", RANGES)
def test_bounds_of_a_number_are_those_of_its_command(field: str) -> None:
    rule = range_of(RANGES[field], field.partition(".")[2])

    assert rule.least <= NUMBERS[field]["minimum"]
    assert rule.most == NUMBERS[field]["maximum"]


@pytest.mark.parametrize("number", [2**63 - 1, -(2**63)])
@pytest.mark.parametrize("field", dict(_of_holds()))
def test_number_of_a_command_that_is_no_time_is_refused(field: str, number: int) -> None:
    assert not _is_in_bounds(SAID[field](number))
