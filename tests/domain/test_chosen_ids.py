"""Ids that addresses have for other places: not for anything new, and what has one can still be stopped."""

import json

import pytest

from schemas import commands as k
from schemas.actor import Actor
from schemas.events import executions as x
from schemas.ids import definition_key
from schemas.message import Message
from schemas.record import Event, EventMeta
from services.domain.definitions import Definitions
from services.domain.policy import PolicySet
from services.domain.publishing import decide
from tests.domain.steps import code, started
from tests.domain.world import BOT, OLGA, PROJECT, TENANT, World, names, the

ROOT = Actor(subject="root", tenant=TENANT, project=PROJECT, roles=("admin",))
STARTED = x.ExecutionStarted(agent="bot", user="", workspace="", request="", context="{}", by="bot")
dots = pytest.mark.parametrize("name", [".", ".."])


@dots
def test_case_37_execution_call_or_request_of_dots_alone_is_refused(name: str) -> None:
    world = started()
    commands = [
        (k.StartExecution(agent="bot"), name),
        (k.ProposeToolCall(call_id=name, tool="pay", arguments="{}"), "x"),
        (k.RequestHumanInput(request_id=name, kind="clarification", question="Which?"), "x"),
    ]
    for command, execution_id in commands:
        said = world.ask(command, BOT, execution_id=execution_id)
        assert code(said) == "invalid"
        assert "neither . nor .." in the(said, "CommandRefused").detail


@dots
def test_execution_of_dots_alone_that_an_earlier_version_started_is_stopped(name: str) -> None:
    world = World()
    key = world.key(name)
    meta = EventMeta("e", world.now_ms, 0, 0, "c", "", TENANT, 0)
    world.partition.apply(Event(STARTED, meta, key, 0, 0))

    assert names(world.ask(k.PauseExecution(), OLGA, execution_id=name)) == ["ExecutionPaused"]
    assert names(world.ask(k.CancelExecution(), OLGA, execution_id=name)) == ["ExecutionCancelled"]


@dots
@pytest.mark.parametrize("kind", ["policy", "tool", "principal"])
def test_case_37_definition_of_dots_alone_is_refused(name: str, kind: str) -> None:
    rules = [{"id": "r", "match": {"tools": ["pay"]}, "then": "hold"}]
    command: Message = {
        "policy": k.PublishPolicy(name=name, document=json.dumps({"policy": name, "rules": rules})),
        "tool": k.PublishTool(name=name, definition=json.dumps({"name": name})),
        "principal": k.PublishPrincipal(
            name=name, document=json.dumps({"principal": name, "subjects": ["mia"]})
        ),
    }[kind]
    by = ROOT if kind == "principal" else OLGA

    said = decide(Definitions(policies=PolicySet()), definition_key(TENANT, kind, name, PROJECT), command, by)

    assert code(said) == "invalid"
    assert "neither . nor .." in the(said, "CommandRefused").detail
