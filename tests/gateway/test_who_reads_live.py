"""Who may not read the project is shown nothing of it, by any documented GET: policies and their rules included."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator

import jwt
import pytest

from gateway.identity.keys import load_or_create
from schemas.token import ALGORITHM
from tests.gateway.conftest import Caller, Doors
from tests.gateway.sockets import open_socket

pytestmark = [pytest.mark.stack, pytest.mark.broker]

# In every name and text of what is there to be read.
MARK = "mark-of-what-is-hidden"
DEFINITIONS = (
    "/v1/policies",
    "/v1/policies?status=all",
    f"/v1/policies/{MARK}",
    f"/v1/policies/{MARK}?version=1",
    f"/v1/policies/{MARK}/versions",
    "/v1/policies/there-is-none",
    "/v1/rules",
    "/v1/standing-rules",
    f"/v1/standing-rules/{MARK}",
    "/v1/principals",
)
TOOLS = ("/v1/tools", f"/v1/tools/{MARK}")
# Endless, or not of the project.
LEFT_OUT = {"/v1/events/stream"}


@pytest.fixture(scope="module")
def hidden(doors: Doors) -> Iterator[None]:
    """A policy, a tool, a principal and a held call with the mark in them."""
    operator, admin = doors.caller("olga", "operator"), doors.caller("root", "admin")
    policy = {"policy": MARK, "scope": {"agent": MARK}, "rules": [{"id": MARK, "then": "hold"}]}
    person = {"principal": MARK, "subjects": [MARK], "roles": ["reviewer"]}
    for who, path, body in (
        (operator, f"/v1/policies/{MARK}", policy),
        (operator, f"/v1/tools/{MARK}", {"name": MARK}),
        (admin, f"/v1/principals/{MARK}", person),
    ):
        assert who.call("PUT", path, body).status_code == 200
    bot = doors.caller(f"{MARK}-bot", "agent", agent=MARK)
    assert bot.post("/v1/executions", {"execution_id": MARK, "request": MARK}).status_code == 201
    call = bot.propose(MARK, MARK, call_id=MARK, arguments={"to": MARK}, reason=MARK)
    assert call["status"] == "held"
    yield
    retired = operator.post(f"/v1/policies/{MARK}/retire", {})
    assert retired.status_code == 200, retired.text


def of_an_agent_and_a_reader(doors: Doors) -> Caller:
    """An agent with every role of a reader. No command issues such a token, but the issuer's key signs any."""
    now = int(time.time())
    who = {
        "iss": "placet",
        "aud": "placet",
        "tenant": "acme",
        "project": "books",
        "sub": "spy",
        "agent": "spy",
    }
    roles = ["agent", "reviewer", "analyst", "operator", "admin"]
    claims = {**who, "jti": "1", "roles": roles, "iat": now, "exp": now + 300}
    key = load_or_create(doors.stack.data_dir / "keys").issuer
    token = jwt.encode(claims, key.private_key, ALGORITHM, headers={"kid": key.kid})
    return Caller(doors.url, token, doors.client)


AGENTS = ("another agent", "an agent that is also a reader")
WHO = (*AGENTS, "a tool's server", "no known role")


def others(doors: Doors) -> dict[str, Caller]:
    return {
        "another agent": doors.caller("spy", "agent", agent="spy"),
        "an agent that is also a reader": of_an_agent_and_a_reader(doors),
        "a tool's server": doors.caller("bank", "tool:send_money"),
        "no known role": doors.caller("nobody", "nothing"),
    }


@pytest.mark.parametrize("who", WHO)
def test_definitions_are_refused_to_who_may_not_read_the_project(
    doors: Doors, hidden: None, who: str
) -> None:
    caller = others(doors)[who]
    for path in DEFINITIONS:
        answer = caller.get(path)
        assert (answer.status_code, answer.json()["code"]) == (403, "not_authorised"), path
    for path in TOOLS:
        expected = 200 if who in AGENTS else 403
        assert caller.get(path).status_code == expected, path
    document = {"policy": MARK, "rules": []}
    assert caller.post(f"/v1/policies/{MARK}/check", document).status_code == 403


def test_definitions_are_shown_to_who_may_read_the_project(doors: Doors, hidden: None) -> None:
    for role in ("reviewer", "operator", "analyst", "admin"):
        caller = doors.caller(f"reader-{role}", role)
        for path in (*DEFINITIONS, *TOOLS):
            wanted = 404 if "none" in path or path == f"/v1/standing-rules/{MARK}" else 200
            assert caller.get(path).status_code == wanted, (role, path)
        assert MARK in caller.get("/v1/rules").text


@pytest.mark.parametrize("who", WHO)
def test_no_documented_get_shows_anything_of_the_project_to_who_may_not_read_it(
    doors: Doors, hidden: None, who: str
) -> None:
    caller = others(doors)[who]
    document = doors.client.get(f"{doors.url}/openapi.json").json()
    paths = [path for path, methods in document["paths"].items() if "get" in methods and "/v1/" in path]
    assert len(paths) > 30
    for path in paths:
        filled = re.sub(r"\{[^}]*\}", MARK, path)
        if path in LEFT_OUT or (who in AGENTS and filled in TOOLS):
            continue
        answer = caller.get(filled)
        assert answer.status_code < 500, path
        shown = json.dumps(answer.json())
        assert MARK not in shown.replace(filled, ""), (path, answer.status_code)


@pytest.mark.parametrize("who", WHO)
async def test_channels_of_the_project_are_refused_to_who_may_not_read_it(
    doors: Doors, hidden: None, who: str
) -> None:
    async with open_socket(doors.url, others(doors)[who].token) as socket:
        for channel in ("events", f"executions:{MARK}", f"calls:{MARK}/{MARK}"):
            reply = await socket.ask("subscribe", channels=[channel])
            assert (reply["status"], reply["body"]["code"]) == (403, "not_authorised"), channel
    stream = others(doors)[who].get("/v1/events/stream?channels=events")
    assert stream.status_code == 403
