"""The OpenAPI document leaves nothing without a word: fields, items of lists, headers, what an answer holds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from gateway.live.cursor import EARLIEST, CursorKey, Vector
from gateway.rest.documented import bodies
from tests.clients.documents import document

OPENAPI = document()


def test_openapi_says_of_every_field_of_a_body_what_it_takes() -> None:
    """No field, and no item of a list, is any JSON without a word on which."""
    schemas = OPENAPI["components"]["schemas"]
    bare = [
        f"{body.__name__}.{name}"
        for body in bodies().values()
        for name, part in schemas[body.__name__]["properties"].items()
        if not part or (part.get("type") == "array" and not part["items"])
    ]
    assert bare == []


def test_openapi_arrays_say_what_their_items_are() -> None:
    assert list(_arrays_without_items(OPENAPI, "")) == []


def test_openapi_integers_that_need_64_bits_say_so() -> None:
    """A Go client made of it could not read a duration of 25 days."""
    schemas = OPENAPI["components"]["schemas"]

    assert "format" not in _integers(schemas["ClaimHold"]["properties"]["seconds"])
    assert _integers(schemas["ReportResult"]["properties"]["duration_ms"])["format"] == "int64"
    assert _integers(schemas["ToolCall"]["properties"]["duration_ms"])["format"] == "int64"


def _integers(field: dict[str, Any]) -> dict[str, Any]:
    return next((one for one in field.get("anyOf", ()) if one.get("type") == "integer"), field)


def _arrays_without_items(value: Any, where: str) -> Iterator[str]:
    if isinstance(value, dict):
        if value.get("type") == "array" and "items" not in value:
            yield where
        for name, part in value.items():
            yield from _arrays_without_items(part, f"{where}/{name}")
    elif isinstance(value, list):
        for part in value:
            yield from _arrays_without_items(part, where)


def test_openapi_has_no_constant_but_of_texts() -> None:
    """Generated clients compare a constant as a text, so that no boolean is ever `false` to them."""
    assert list(_other_constants(OPENAPI, "")) == []


def _other_constants(value: Any, where: str) -> Iterator[str]:
    if isinstance(value, dict):
        constants = [value["const"]] if "const" in value else value.get("enum", [])
        if any(not isinstance(one, str) for one in constants if isinstance(constants, list)):
            yield where
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, part in parts:
        yield from _other_constants(part, f"{where}/{name}")


def test_openapi_every_answer_says_its_headers_and_what_it_holds() -> None:
    wanted = {"401": "WWW-Authenticate", "415": "Accept-Encoding", "429": "Retry-After", "503": "Retry-After"}
    for path, operations in OPENAPI["paths"].items():
        for operation in operations.values():
            for status, answer in operation["responses"].items():
                assert bool(answer.get("content")) == (status != "204"), (path, status)
                if status in wanted and "application/problem+json" in answer["content"]:
                    assert set(answer["headers"]) == {wanted[status]}, (path, status)
    metrics = OPENAPI["paths"]["/metrics"]["get"]["responses"]["200"]["content"]
    assert metrics == {"text/plain": {"schema": {"type": "string"}}}


def test_openapi_says_how_long_a_proposal_waits_for_a_person() -> None:
    paths = OPENAPI["paths"]
    calls = "/v1/executions/{execution_id}/tool-calls"
    for operation, default in ((paths[calls]["post"], 5), (paths[f"{calls}/{{call_id}}"]["get"], 0)):
        wait = next(one for one in operation["parameters"] if one["name"] == "wait")
        assert wait["schema"]["default"] == default


def test_openapi_says_of_every_object_whether_it_has_further_members() -> None:
    """A client that is generated for an object without a word on it drops, or refuses, what is not named."""
    assert list(_objects_without_a_word(OPENAPI["components"]["schemas"], "")) == []


def _objects_without_a_word(value: Any, where: str) -> Iterator[str]:
    if isinstance(value, dict):
        if value.get("type") == "object" and "additionalProperties" not in value:
            yield where
        for name, part in value.items():
            yield from _objects_without_a_word(part, f"{where}/{name}")
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _objects_without_a_word(part, f"{where}/{index}")


def test_openapi_option_that_is_an_object_has_the_words_of_its_button() -> None:
    """In words: of a choice of types typescript-fetch makes one that sends every text as `{}`."""
    options = OPENAPI["components"]["schemas"]["RequestHumanInput"]["properties"]["options"]

    assert not options["items"].keys() & {"type", "anyOf", "oneOf", "properties"}
    for word in ("id", "label", "description", "recommended"):
        assert f"`{word}`" in options["items"]["description"]


def test_openapi_answers_of_one_operation_have_one_schema() -> None:
    """openapi-generator's clients read every 2xx by the schema of the first."""
    for path, operations in OPENAPI["paths"].items():
        for operation in operations.values():
            answers = [
                answer["content"]["application/json"]["schema"]
                for status, answer in operation["responses"].items()
                if status.startswith("2") and "application/json" in answer.get("content", {})
            ]
            assert all(schema == answers[0] for schema in answers), path


def test_openapi_task_without_an_answer_is_of_the_same_schema() -> None:
    task = OPENAPI["components"]["schemas"]["HumanInput"]

    assert "required" not in task
    (words,) = [one["enum"] for one in task["properties"]["status"]["anyOf"] if "enum" in one]
    assert words == ["waiting_for_human", "rejected", "expired", "cancelled"]


def test_openapi_declares_every_tag_that_an_operation_has() -> None:
    declared = [tag["name"] for tag in OPENAPI["tags"]]
    used = {
        tag
        for operations in OPENAPI["paths"].values()
        for operation in operations.values()
        for tag in operation["tags"]
    }

    assert set(declared) == used
    assert len(declared) == len(used)
    assert all(tag["description"] for tag in OPENAPI["tags"])


def test_openapi_says_what_a_cursor_and_a_version_of_a_schema_look_like() -> None:
    """The gateway refuses other texts, which a client can know before it sends them."""
    after = _parameter("/v1/requests/{request_id}", "after")["schema"]
    version = _parameter("/subjects/{subject}/versions/{version}", "version")["schema"]

    assert re.search(after["pattern"], CursorKey(b"key", 3).write(Vector((1, 2, 3), (1, 2, 3))))
    assert after["examples"] == [EARLIEST]
    assert re.search(after["pattern"], EARLIEST)
    assert re.search(after["pattern"], "a cursor") is None
    assert [bool(re.search(version["pattern"], one)) for one in ("latest", "1", "20", "0", "-1", "1.0")] == [
        *(True, True, True),
        *(False, False, False),
    ]


def test_openapi_says_that_a_person_who_is_not_known_is_an_empty_text() -> None:
    person = OPENAPI["components"]["schemas"]["ProbeAnswer"]["properties"]["person"]

    assert person["type"] == "string"
    assert "an empty text, and never null, if none was published" in person["description"]


def _parameter(path: str, name: str) -> dict[str, Any]:
    (found,) = [one for one in OPENAPI["paths"][path]["get"]["parameters"] if one["name"] == name]
    return dict(found)
