"""A person who answers the questions of one agent, as they come."""

from __future__ import annotations

from typing import Any

from tests.gateway.conftest import Caller
from tests.servers.stack import wait_for


def open_hold(person: Caller, agent: str, **wanted: Any) -> dict[str, Any]:
    """The one open hold of an agent with these fields, as soon as it is there."""

    def found() -> list[dict[str, Any]]:
        answer = person.get(f"/v1/holds?status=open&agent={agent}")
        assert answer.status_code == 200, answer.text
        return [hold for hold in answer.json()["items"] if wanted.items() <= hold.items()]

    (hold,) = wait_for(found, lambda holds: len(holds) == 1)
    return hold


def decide(person: Caller, hold: dict[str, Any], **word: Any) -> None:
    """Decide a hold on what it shows."""
    body = {"digest": hold["digest"], "view_digest": hold["view_digest"] or "", **word}
    answer = person.post(f"/v1/holds/{hold['hold_id']}/decision", body)
    assert answer.status_code == 200, answer.text


def answer_next(person: Caller, agent: str, value: Any, **wanted: Any) -> dict[str, Any]:
    """Answer the one open question of an agent."""
    hold = open_hold(person, agent, **wanted)
    decide(person, hold, decision="respond", value=value)
    return hold


def event_types(person: Caller, execution_id: str) -> list[str]:
    """The types of an execution's events, in order."""
    answer = person.get(f"/v1/executions/{execution_id}/events?limit=200")
    assert answer.status_code == 200, answer.text
    return [event["type"] for event in answer.json()["items"]]
