"""The OpenAPI document is true: what it says of every route holds for whatever a generator makes of it."""

from __future__ import annotations

from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.generation.hypothesis.builder import HypothesisTestConfig, HypothesisTestMode, create_test
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from gateway.rest.parameters import WAIT_MAX_S
from tests.clients.documents import document
from tests.gateway.conftest import Doors

pytestmark = [pytest.mark.stack, pytest.mark.broker]
CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
)
ROUTES = [(method, path) for path, operations in document()["paths"].items() for method in operations]
STREAM = "text/event-stream"
# A wait that is permitted is as long as this, whatever is made of it.
WAIT_S = 0.1
READS = [route for route in ROUTES if route[0] == "get"]


@pytest.fixture(scope="module")
def schema() -> Any:
    return schemathesis.openapi.from_dict(document())


def hold(schema: Any, route: tuple[str, str], url: str, headers: dict[str, str], examples: int) -> None:
    """Hold a route to what the document says of it.

    The library's own parametrisation would make the cases of all routes wherever this module is collected.
    """
    method, path = route
    answers = schema.raw_schema["paths"][path][method]["responses"]

    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    def holds(case: Any) -> None:
        if is_number(wait := case.query.get("wait")) and WAIT_S < float(wait) <= WAIT_MAX_S:
            case.query["wait"] = WAIT_S
        sent = case.as_transport_kwargs(url, headers)
        with requests.Session() as session, session.request(**sent, stream=True, timeout=30) as answer:
            if answer.ok and answer.headers["Content-Type"].startswith(STREAM):
                # It ends with what it tells of, if at all.
                assert STREAM in answers["200"]["content"]
                return
            case.validate_response(answer, checks=CHECKS, headers=headers)

    config = HypothesisTestConfig(project=schema.config, modes=list(HypothesisTestMode))
    create_test(operation=schema[path][method], test_func=holds, config=config)()


def is_number(text: Any) -> bool:
    """True if a parameter is read as a number."""
    try:
        float(text)
    except (TypeError, ValueError):
        return False
    return True


def test_the_document_served_is_the_one_checked(doors: Doors, schema: Any) -> None:
    assert doors.client.get(f"{doors.url}/openapi.json").json() == schema.raw_schema


@pytest.fixture(scope="module")
def busy(doors: Doors) -> None:
    """A project in which something of everything has happened."""
    bot, anna = doors.caller("bot", "agent", agent="billing"), doors.caller("anna", "reviewer")
    execution_id = bot.execution()
    for tool in ("read_file", "shell", "send_money", "send_money", "send_money"):
        call = bot.propose(execution_id, tool)
        if call["hold_id"]:
            decision = {"decision": "approve", "digest": call["digest"]}
            anna.post(f"/v1/holds/{call['hold_id']}/claim")
            anna.post(f"/v1/holds/{call['hold_id']}/decision", decision)
            anna.post(f"/v1/holds/{call['hold_id']}/decision", {**decision, "decision": "reject"})
            where = f"/v1/executions/{execution_id}/tool-calls/{call['call_id']}"
            bot.post(f"{where}/consume", {"digest": call["digest"], "attempt_id": "a"})
            bot.post(f"{where}/result", {"attempt_id": "a", "outcome": "failed", "error": "no"})
    bot.propose(bot.execution())
    bot.post("/v1/requests", {"question": "Which?", "options": ["a"], "default": "a"})
    anna.post(f"/v1/executions/{execution_id}/pause")


@pytest.mark.parametrize("route", ROUTES, ids=" ".join)
def test_every_route_answers_as_documented(route: tuple[str, str], schema: Any, doors: Doors) -> None:
    # Of the whole tenant: it may name any project.
    token = doors.token("root", "admin", tenant="fuzz", project="*")
    hold(schema, route, doors.url, {"Authorization": f"Bearer {token}"}, examples=6)


@pytest.mark.parametrize("route", READS, ids=" ".join)
def test_every_read_of_a_busy_project_answers_as_documented(
    route: tuple[str, str], schema: Any, doors: Doors, busy: None
) -> None:
    token = doors.token("root", "admin", project="*")
    hold(
        schema, route, doors.url, {"Authorization": f"Bearer {token}", "Placet-Project": "books"}, examples=3
    )
