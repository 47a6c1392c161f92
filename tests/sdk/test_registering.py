"""Functions as tools: what a gated function is declared as, and when that is published."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from jsonschema import Draft202012Validator
from starlette.responses import JSONResponse, Response

import placet
from placet.errors import NotAuthorised
from placet.registering import declared, definition_of
from schemas import canonical
from schemas.tool_definition import tool_to_publish
from tests.sdk.desk import Desk
from tests.sdk.runs import running
from tests.sdk.scripted import Asked, Scripted
from tests.sdk.terminal import Terminal


@placet.gated(register=True, annotations={"destructiveHint": True}, sensitive=["pin"], idempotent=True)
def send_money(
    recipient: Annotated[str, "IBAN"],
    amount: float,
    pin: str,
    memo: str | None = None,
    tags: Sequence[str] = (),
    speed: Literal["now", "later"] = "later",
) -> str:
    """Send money
    to somebody.

    Not more than there is.
    """
    return f"{recipient} {amount} {pin} {memo} {tags} {speed}"


EXPECTED = {
    "name": "send_money",
    "description": "Send money to somebody.",
    "annotations": {"destructiveHint": True},
    "idempotent": True,
    "inputSchema": {
        "type": "object",
        "properties": {
            "recipient": {"type": "string", "description": "IBAN"},
            "amount": {"type": "number"},
            "pin": {"type": "string", "x-placet-sensitive": True},
            "memo": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
            "tags": {"type": "array", "items": {"type": "string"}, "default": []},
            "speed": {"enum": ["now", "later"], "default": "later"},
        },
        "required": ["recipient", "amount", "pin"],
        "additionalProperties": False,
    },
}


def test_definition_is_made_of_name_docstring_and_signature() -> None:
    found = definition_of(*declared(send_money))
    assert canonical.canonical(found) == canonical.canonical(EXPECTED)
    Draft202012Validator.check_schema(found["inputSchema"])
    assert tool_to_publish("send_money", found) == found


def test_definition_of_a_function_that_takes_more_is_open() -> None:
    @placet.gated(register=True, tool="note")
    def write(text: str, more: Mapping[str, list[int]], **rest: Any) -> None: ...

    schema = definition_of(*declared(write))["inputSchema"]
    assert schema["properties"]["more"]["additionalProperties"] == {
        "type": "array",
        "items": {"type": "integer"},
    }
    assert "additionalProperties" not in schema


def test_register_of_types_without_a_schema_is_refused_where_it_is_asked_for() -> None:
    def at(place: Path) -> None: ...

    with pytest.raises(TypeError, match=r"at: place: .*give input_schema"):
        placet.gated(register=True)(at)
    placet.gated(at)
    given = placet.gated(register=True, input_schema={"type": "object"})(at)
    assert definition_of(*declared(given))["inputSchema"] == {"type": "object"}


class Registry:
    """A gateway that has published tools, or refuses to."""

    def __init__(self, desk: Desk | None = None, *, may_publish: bool = True) -> None:
        self.desk = desk or Desk()
        self.may_publish = may_publish
        self.published: dict[str, dict[str, Any]] = {}
        self.asked: list[str] = []

    def scripted(self) -> Scripted:
        return Scripted(on_http=self, on_frame=self.desk.frame)

    async def __call__(self, asked: Asked) -> Response:
        if not asked.path.startswith("/v1/tools/"):
            return await self.desk.http(asked)
        self.asked.append(asked.method)
        name = asked.path.rpartition("/")[2]
        if asked.method == "PUT":
            if not self.may_publish:
                return JSONResponse({"code": "not_authorised", "detail": "this needs the role operator"}, 403)
            version = canonical.tool_version_of(asked.json())
            self.published[name] = {"name": name, "version": 1, "tool_version": version, "pending": []}
            return JSONResponse({**self.published[name], "cursor": "k"})
        if name not in self.published:
            return JSONResponse({"code": "not_found", "detail": "no such tool"}, 404)
        return JSONResponse(self.published[name])


async def test_gated_function_that_asks_for_it_is_published_before_its_first_call_and_once() -> None:
    registry = Registry()
    async with running(registry.desk, registry.scripted()) as run:

        @run.gated(register=True)
        async def note(text: str) -> str:
            return text

        for text in ("a", "b"):
            assert await note(text) == text
    assert registry.asked == ["GET", "PUT"]

    async with running(Desk(), registry.scripted()) as run:
        assert await run.gated(register=True)(inspect.unwrap(note))("c") == "c"
    assert registry.asked == ["GET", "PUT", "GET"], "what is published already is not published again"


async def test_gated_function_with_a_token_that_may_not_publish_proposes_nothing() -> None:
    registry = Registry(may_publish=False)
    async with running(registry.desk, registry.scripted()) as run:

        @run.gated(register=True)
        async def note(text: str) -> str:
            return text

        with pytest.raises(NotAuthorised, match="placet tool register"):
            await note("a")
    assert registry.desk.calls == {}


MODULE = """
from placet import gated

@gated(register=True)
def note(text: str) -> None:
    "Write it down."

@gated
def other(text: str) -> None: ...
"""


DATES = """
import datetime
from placet import gated

@gated(register=True)
def when(d: datetime.date): ...
"""


def test_tool_register_publishes_what_a_module_asks_for(
    terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = Registry()
    terminal.script.on_http = registry
    (tmp_path / "notes_for_a_test.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert terminal("tool", "register", "notes_for_a_test") == 0
    assert "note version 1 is published" in terminal.out
    assert terminal("tool", "register", "notes_for_a_test") == 0
    assert "was published already" in terminal.out
    assert list(registry.published) == ["note"]
    assert terminal("tool", "register", "json") == 2
    assert terminal("tool", "register", "no_such_module_here") == 2
    assert "cannot be imported" in terminal.err
    (tmp_path / "dates_for_a_test.py").write_text(DATES)
    assert terminal("tool", "register", "dates_for_a_test") == 2
    assert "when: d: <class 'datetime.date'> has no JSON Schema here" in terminal.err
    assert "cannot be imported" not in terminal.err
