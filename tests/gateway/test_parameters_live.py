"""What the OpenAPI document says of the parameters of a route, its door holds them to; and no more than that."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from gateway.idempotency import KEY_MAX_CHARS
from gateway.rest.parameters import IDEMPOTENCY_KEY, LAST_EVENT_ID, PROJECT
from placet.cli.app import run
from tests.clients.documents import document
from tests.gateway.conftest import Caller, Doors

pytestmark = [pytest.mark.stack, pytest.mark.broker]
DOCUMENT = document()
# Waiting would be waited for, and a stream that follows has no end: the value that is answered at once.
LONG = {"wait": "0", "follow": "false"}
# What else a route wants to know.
NEEDED = {"/v1/audit/impact": {"grant": "g"}, "/v1/audit/records": {"topic": "executions"}}


class Case(NamedTuple):
    """A parameter with a value."""

    method: str
    path: str
    name: str
    value: str
    is_taken: bool


def _bounded() -> Iterator[Case]:
    """Each bounded query parameter at its bounds and just outside of them."""
    for route, operations in DOCUMENT["paths"].items():
        for method, operation in operations.items():
            for parameter in operation.get("parameters", ()):
                if parameter["in"] == "query":
                    for value, is_taken in _values(parameter["schema"]):
                        yield Case(method.upper(), route, parameter["name"], value, is_taken)


def _values(schema: dict[str, Any]) -> Iterator[tuple[str, bool]]:
    for word in schema.get("enum", ()):
        yield word, True
        yield f"{word}x", False
    if "minimum" in schema:
        yield str(schema["minimum"]), True
        yield str(schema["minimum"] - 1), False
        yield str(schema["maximum"] + 1), False
        yield "x", False
    if schema.get("type") == "integer":
        yield str(schema["maximum"]), True
        yield "1.5", False
    if schema.get("format") == "date-time":
        yield "2026-01-05T12:00:00Z", True
        yield "yesterday", False


CASES = list(_bounded())


def _refuses(answer: Any, name: str) -> bool:
    return bool(answer.status_code == 422 and answer.json()["detail"].startswith(f"{name} "))


def test_cases_are_of_every_kind_of_parameter() -> None:
    assert {case.name for case in CASES} >= {
        *(
            "limit",
            "wait",
            "status",
            "state",
            "kind",
            "topic",
            "partition",
            "from",
            "version",
            "since",
            "part",
        ),
        *("at", "scope", "decidable"),
    }


@pytest.fixture
def names(bot: Caller) -> dict[str, str]:
    """One of everything that a path names: a resource that is not there is 404 before anything is refused."""
    execution_id = bot.execution()
    call = bot.propose(execution_id)
    asked = bot.post("/v1/requests", {"question": "Which?"}).json()
    return {
        "execution_id": execution_id,
        "call_id": call["call_id"],
        "hold_id": call["hold_id"],
        "request_id": asked["request_id"],
        "task_id": asked["request_id"],
        "name": "doors",
        "agent": "billing",
    }


def test_every_bound_of_a_parameter_is_held_and_nothing_within_it_refused(
    admin: Caller, names: dict[str, str]
) -> None:
    for case in CASES:
        if case.is_taken and case.value != LONG.get(case.name, case.value):
            continue
        needed = NEEDED.get(case.path, {})
        answer = admin.call(case.method, case.path.format(**names), params=needed | {case.name: case.value})
        assert answer.status_code < 500 or case.path == "/readyz", case
        assert _refuses(answer, case.name) is not case.is_taken, (case, answer.text)


@pytest.mark.parametrize(
    ("length", "status"), [(0, 422), (1, 201), (KEY_MAX_CHARS, 201), (KEY_MAX_CHARS + 1, 422)]
)
def test_key_is_as_long_as_documented(bot: Caller, length: int, status: int) -> None:
    assert (IDEMPOTENCY_KEY.schema["minLength"], IDEMPOTENCY_KEY.schema["maxLength"]) == (1, KEY_MAX_CHARS)
    answer = bot.post("/v1/executions", {"request": "x"}, key="k" * length)
    assert answer.status_code == status, answer.text


@pytest.mark.parametrize("key", ["zahlung-märz", "日本"])
@pytest.mark.parametrize("coding", ["utf-8", "latin-1"])
def test_key_beyond_ascii_is_refused_whatever_its_bytes(bot: Caller, key: str, coding: str) -> None:
    named = {IDEMPOTENCY_KEY.name: key.encode(coding, "replace") + b"\xe9"}
    answer = bot.post("/v1/executions", {"request": "x"}, headers=named)
    assert answer.status_code == 422
    assert "printable ASCII" in answer.json()["detail"]


PROJECTS = [("books", 200), ("*", 200), ("a.b:c-d", 200), ("a b", 422), ("é", 422)]


@pytest.mark.parametrize(("project", "status"), PROJECTS)
def test_project_in_the_header_is_as_documented(doors: Doors, project: str, status: int) -> None:
    wide = doors.caller("root", "admin", project="*")
    answer = wide.get("/v1/rules", headers={PROJECT.name: project.encode()})
    assert answer.status_code == status, answer.text
    assert bool(re.fullmatch(str(PROJECT.pattern), project)) is (status == 200)


def test_project_of_another_token_is_refused_as_documented(admin: Caller) -> None:
    answer = admin.get("/v1/rules", headers={PROJECT.name: "other"})
    assert (answer.status_code, answer.json()["code"]) == (403, "not_authorised")


def test_last_event_id_that_is_no_cursor_is_refused(admin: Caller) -> None:
    answer = admin.get("/v1/events/stream", headers={LAST_EVENT_ID.name: "nonsense"})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")


def test_policy_check_answers_what_is_no_policy_with_its_problems(admin: Caller) -> None:
    for content, media_type in (
        ("null", "application/json"),
        ("5", "application/json"),
        ("", "application/yaml"),
    ):
        answer = admin.post("/v1/policies/p/check", content=content, headers={"Content-Type": media_type})
        assert answer.status_code == 200, answer.text
        assert [problem["code"] for problem in answer.json()["problems"]] == ["malformed"]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/v1/holds?project=payments", "project: unknown parameter; this route takes only status, kind, "),
        ("/v1/executions?tenant=other&limit=5", "tenant: unknown parameter; this route takes only "),
        ("/v1/agents?_=1", "_: unknown parameter; this route takes no parameters"),
    ],
)
def test_parameter_that_a_route_does_not_take_is_refused(admin: Caller, path: str, said: str) -> None:
    answer = admin.get(path)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
    assert answer.json()["detail"].startswith(said)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/v1/holds?status=", "status is empty: "),
        ("/v1/holds?status=open&agent=", "agent is empty: "),
        ("/v1/holds?decidable=", "decidable is empty: "),
        ("/v1/holds?limit", "limit is empty: "),
        ("/v1/executions?cursor=", "cursor is empty: "),
        ("/v1/executions?after=", "after is empty: "),
        ("/v1/holds/groups?agent=", "agent is empty: "),
        ("/v1/audit?subject=", "subject is empty: "),
        ("/v1/events/stream?channels=", "channels is empty: "),
        ("/v1/holds?status=open&status=resolved", "status is given 2 times: "),
        ("/v1/executions?agent=nobody&agent=bot", "agent is given 2 times: "),
        ("/v1/executions?limit=1&limit=1&limit=1", "limit is given 3 times: "),
        ("/v1/events/stream?channels=events&channels=holds", "channels is given 2 times: "),
        ("/readyz?part=", "part is empty: "),
        ("/readyz?part=gateway&part=gateway", "part is given 2 times: "),
    ],
)
def test_parameter_that_is_empty_or_given_twice_is_refused_and_named(
    admin: Caller, path: str, said: str
) -> None:
    answer = admin.get(path)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
    assert answer.json()["detail"].startswith(said)


def test_every_query_parameter_of_every_route_is_refused_empty_and_twice(admin: Caller) -> None:
    asked = 0
    for path, operations in DOCUMENT["paths"].items():
        for method, operation in operations.items():
            for parameter in operation.get("parameters", ()):
                if parameter["in"] != "query":
                    continue
                asked += 1
                name = parameter["name"]
                for query in (f"{name}=", f"{name}=1&{name}=2"):
                    answer = admin.call(method.upper(), re.sub(r"{[^}]*}", "x", path) + f"?{query}")
                    assert answer.status_code == 422, (path, query, answer.text)
                    assert answer.json()["detail"].startswith(f"{name} is "), (path, query, answer.text)
    assert asked > 30


def test_command_with_an_empty_filter_is_refused(anna: Caller, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--url", anna.url, "--token", anna.token, "inbox", "--agent", ""]) == 2
    assert "--agent': it is empty" in capsys.readouterr().err
