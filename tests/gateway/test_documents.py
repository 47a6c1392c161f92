from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import httpx
import pytest
from fastapi import FastAPI
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate
from pydantic import BaseModel

from gateway import resources as r
from gateway.app import create_app
from gateway.docs_gen.asyncapi import asyncapi_document
from gateway.docs_gen.pages import DOCS, pages
from gateway.problems import Problem, message_of
from gateway.rest.parameters import PROJECT
from gateway.service.assembly import assemble
from gateway.settings import read_settings
from gateway.sockets import bridge_protocol
from gateway.sockets.bridge_messages import BridgeMessages
from gateway.sockets.protocol import CLIENT_MESSAGES, SERVER_MESSAGES, type_of
from gateway.sockets.verbs import VERBS
from projections.folds.audit import audit_json
from projections.folds.calls import call_json
from projections.folds.executions import execution_json
from projections.folds.holds import hold_json, request_json
from projections.folds.rows import Row
from projections.tables.audit import AUDIT_ENTRIES
from projections.tables.calls import TOOL_CALLS
from projections.tables.columns import Table
from projections.tables.executions import EXECUTIONS
from projections.tables.holds import HOLDS
from schemas.refusals import Refusal
from schemas.registry import builtin
from schemas.tool_definition import NOT_KEPT
from schemas.topics import DEFAULT_PARTITIONS, Topics
from schemas.trust import TrustRecord, class_key, part_key
from tests.gateway.sockets import check_named

ASYNCAPI = asyncapi_document(Topics(), DEFAULT_PARTITIONS)


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> FastAPI:
    directory = tmp_path_factory.mktemp("app")
    settings = {
        "data_dir": str(directory),
        "keys_dir": str(directory / "keys"),
        "bootstrap_servers": "127.0.0.1:9",
        "database_url": f"sqlite:///{directory}/views.db",
        "gateway_port": "0",
        "log_signatures": "off",
    }
    return create_app(assemble(read_settings(settings)))


def test_openapi_is_valid(app: FastAPI) -> None:
    validate(app.state.openapi)


# What needs a token.
DOORS = ("/v1/", "/agent/")


def test_openapi_every_write_takes_an_idempotency_key_and_says_what_it_refuses(app: FastAPI) -> None:
    for path, operations in app.state.openapi["paths"].items():
        for method, operation in operations.items():
            # What only looks at a document or at calls writes nothing; a claim is named by its attempt.
            is_exempt = path.endswith(("/check", "/assess", "/turns/claim"))
            if method not in ("post", "put") or not path.startswith(DOORS) or is_exempt:
                continue
            names = {parameter["name"] for parameter in operation["parameters"]}
            assert "Idempotency-Key" in names, (method, path)
            assert {"400", "401", "403", "413", "422", "503"} <= operation["responses"].keys(), (method, path)
            assert "application/problem+json" in operation["responses"]["401"]["content"], (method, path)


def test_openapi_every_door_of_the_api_asks_for_a_token(app: FastAPI) -> None:
    for path, operations in app.state.openapi["paths"].items():
        for operation in operations.values():
            assert operation["security"] == ([{"bearer": []}] if path.startswith(DOORS) else []), path


METHODS = ("GET", "PUT", "POST", "PATCH", "DELETE")


async def test_method_that_a_resource_has_not_is_refused_with_all_that_it_has(app: FastAPI) -> None:
    """Allow of RFC 9110, section 10.2.1; of two resources at one address, that of the one with fewer parameters."""
    paths = app.state.openapi["paths"]
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
        for path, operations in paths.items():
            known = {method.upper() for method in operations}
            for method in sorted({*METHODS} - known):
                answer = await client.request(method, path.replace("{", "").replace("}", ""))
                if answer.status_code == 405:
                    allowed = answer.headers["allow"].split(", ")
                    assert known <= {*allowed}, (method, path)
                    assert method not in allowed
                    assert len({*allowed}) == len(allowed)


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/v1/executions", "GET, HEAD, POST"),
        ("/v1/tools/pay", "GET, HEAD, PUT"),
        ("/v1/holds/h", "GET, HEAD"),
        ("/v1/holds/decisions", "POST"),
        ("/v1/holds/h/decision", "POST"),
        ("/holds/h", "GET, HEAD, POST"),
        ("/healthz", "GET, HEAD"),
    ],
)
async def test_allow_names_every_method_of_the_resource(app: FastAPI, path: str, allowed: str) -> None:
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
        answer = await client.patch(path)
    assert (answer.status_code, answer.headers["allow"]) == (405, allowed)
    assert answer.json()["code"] == "method_not_allowed"


async def test_head_answers_as_get_without_a_body_on_every_address(app: FastAPI) -> None:
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
        for path, operations in app.state.openapi["paths"].items():
            if path == "/metrics":
                # It counts the requests that ask for it, and needs a gateway that runs.
                continue
            address = path.replace("{", "").replace("}", "")
            got, head = await client.get(address), await client.head(address)
            assert head.status_code == got.status_code, path
            assert head.headers == got.headers, path
            assert head.content == b"", path
            assert "get" not in operations or head.status_code != 405, path


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "identity, gzip", "GZIP"])
async def test_compressed_body_is_415_and_says_what_is_taken(app: FastAPI, coding: str) -> None:
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
        for path, operations in app.state.openapi["paths"].items():
            for method in {*operations} & {"post", "put"}:
                address = path.replace("{", "").replace("}", "")
                answer = await client.request(
                    method, address, content=gzip.compress(b"{}"), headers={"Content-Encoding": coding}
                )
                assert (answer.status_code, answer.headers["accept-encoding"]) == (415, "identity")
                assert answer.json()["code"] == "unsupported_media_type"
                assert "Content-Encoding" in answer.json()["detail"]
                assert "415" in operations[method]["responses"] or "requestBody" not in operations[method]


async def test_body_that_is_not_coded_is_read_whatever_says_so(app: FastAPI) -> None:
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
        for headers, content in (
            ({"Content-Encoding": "identity"}, b"{}"),
            ({"Content-Encoding": "gzip"}, b""),
        ):
            answer = await client.post("/v1/executions", content=content, headers=headers)
            assert answer.status_code == 401


def _refs(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for part in value.values():
            yield from _refs(part)
    elif isinstance(value, list):
        for part in value:
            yield from _refs(part)


def _resolve(ref: str, document: Any = ASYNCAPI) -> Any:
    found: Any = document
    for part in ref.removeprefix("#/").split("/"):
        found = found[part.replace("~1", "/").replace("~0", "~")]
    return found


def test_openapi_every_reference_leads_somewhere(app: FastAPI) -> None:
    refs = set(_refs(app.state.openapi))
    assert "#/components/schemas/ClaimHold" in refs
    for ref in refs:
        assert _resolve(ref, app.state.openapi), ref


def test_openapi_every_door_of_the_api_takes_the_project_in_a_header(app: FastAPI) -> None:
    for path, operations in app.state.openapi["paths"].items():
        for operation in operations.values():
            named = {(parameter["in"], parameter["name"]) for parameter in operation.get("parameters", ())}
            assert (("header", PROJECT.name) in named) is path.startswith(DOORS), path
            # Another project than the token's.
            assert ("403" in operation["responses"]) is path.startswith(DOORS), path


def test_openapi_stream_takes_the_cursor_in_a_header(app: FastAPI) -> None:
    stream = app.state.openapi["paths"]["/v1/events/stream"]["get"]["parameters"]
    assert {"Last-Event-ID", "cursor", "channels"} <= {parameter["name"] for parameter in stream}


def test_openapi_check_of_a_policy_promises_an_answer_to_every_document(app: FastAPI) -> None:
    check = app.state.openapi["paths"]["/v1/policies/{name}/check"]["post"]["requestBody"]["content"]
    for content in check.values():
        assert Draft202012Validator(content["schema"] | app.state.openapi).is_valid(None)


def test_openapi_says_of_a_definition_what_is_checked(app: FastAPI) -> None:
    schemas = app.state.openapi["components"]["schemas"]
    given, served = schemas["ToolDefinition"], schemas["Tool"]
    assert not given["additionalProperties"]
    assert Draft202012Validator(given["properties"]["name"]).is_valid("a.b:c-d")
    assert not Draft202012Validator(given["properties"]["name"]).is_valid("a b")
    assert given["properties"].keys() - NOT_KEPT <= served["properties"].keys()


@pytest.mark.parametrize(
    ("path", "model", "field"),
    [
        ("/v1/tools/{name}", "ToolDefinition", "name"),
        ("/v1/principals/{name}", "PrincipalDocument", "principal"),
    ],
)
def test_openapi_asks_for_no_name_that_the_path_gives(
    app: FastAPI, path: str, model: str, field: str
) -> None:
    body = app.state.openapi["paths"][path]["put"]["requestBody"]
    schema = app.state.openapi["components"]["schemas"][model]
    assert field not in schema["required"]
    assert body["required"] is bool(schema["required"])


@pytest.mark.parametrize(
    ("table", "shown", "resource"),
    [
        (EXECUTIONS, execution_json, r.Execution),
        (TOOL_CALLS, call_json, r.ToolCall),
        (HOLDS, hold_json, r.Hold),
        (HOLDS, request_json, r.HumanRequest),
        (AUDIT_ENTRIES, lambda row: audit_json(row | {"result": None}), r.AuditRow),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_openapi_has_every_field_that_is_served(
    table: Table, shown: Callable[[Row], dict[str, Any]], resource: type[BaseModel]
) -> None:
    """What a row is shown as has the fields of its resource; those with a default come with some answers only."""
    row = {column.name: None if column.null else _BLANK[column.type] for column in table.columns}
    row |= {"votes": "[]"} if "votes" in row else {}
    always = {name for name, field in resource.model_fields.items() if field.is_required()}
    assert shown(row).keys() == always


# JSON stands in texts; 0 is any.
_BLANK: dict[str, Any] = {"text": "0", "int": 0, "real": 0.0, "bytes": b""}


def test_asyncapi_has_what_version_3_asks_for() -> None:
    assert ASYNCAPI["asyncapi"] == "3.0.0"
    assert ASYNCAPI["info"].keys() >= {"title", "version"}
    for server in ASYNCAPI["servers"].values():
        assert server.keys() >= {"host", "protocol"}
    for channel in ASYNCAPI["channels"].values():
        assert channel["address"].startswith(("/", "placet."))
        assert all(ref["$ref"].startswith("#/components/messages/") for ref in channel["messages"].values())
    for operation in ASYNCAPI["operations"].values():
        assert operation["action"] in ("send", "receive")
        assert operation["channel"]["$ref"].startswith("#/channels/")
        channel = operation["channel"]["$ref"]
        # Version 3: an operation's messages are those of its channel, by reference into the channel.
        assert all(ref["$ref"].startswith(f"{channel}/messages/") for ref in operation["messages"])


def test_asyncapi_every_reference_leads_somewhere() -> None:
    refs = set(_refs(ASYNCAPI))
    assert refs
    for ref in refs:
        assert _resolve(ref), ref


def test_asyncapi_payloads_are_json_schema() -> None:
    for message in ASYNCAPI["components"]["messages"].values():
        if "$ref" in message["payload"]:
            Draft202012Validator.check_schema(_resolve(message["payload"]["$ref"]))
        else:
            assert message["payload"]["schema"] == builtin().latest(message["name"]).schema
    for schema in ASYNCAPI["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)


def test_asyncapi_names_every_message_once() -> None:
    names = [type_of(model) for model in (*CLIENT_MESSAGES, *SERVER_MESSAGES)]
    assert len(set(names)) == len(names)
    names += bridge_protocol.CLIENT.keys() | bridge_protocol.SERVER.keys()
    on_the_log = {*builtin().by_subject, "TrustPart", "ClassPart", "TrustCheckpoint"}
    assert set(ASYNCAPI["components"]["messages"]) == set(names) | on_the_log


@pytest.mark.parametrize("model", [r.ExplainedTrust, r.ApprovalMetrics])
def test_every_figure_about_trust_is_described(model: type[BaseModel]) -> None:
    whole = model.model_json_schema()
    for schema in (whole, *whole["$defs"].values()):
        for name, one in schema["properties"].items():
            # What refers to a model is described there.
            assert {"description", "$ref", "items"} & one.keys(), (schema["title"], name)


def test_asyncapi_has_every_record_of_trust_with_its_key_and_an_account_of_its_counts() -> None:
    channel = ASYNCAPI["channels"]["trust"]
    names = {model.__name__ for model in get_args(TrustRecord)}
    assert set(channel["messages"]) == names == {"TrustPart", "ClassPart", "TrustCheckpoint"}
    for key in (part_key, class_key):
        form = (key.__doc__ or "").split("`")[1]
        assert f"{form} of a" in channel["description"]
    meaning = ASYNCAPI["components"]["schemas"]["TrustCheckpoint"]["description"]
    assert "six counts of each" in meaning


def test_asyncapi_every_message_of_the_log_is_on_a_topic_and_commands_say_who_may_send_them() -> None:
    placed = {
        name
        for channel in ASYNCAPI["channels"].values()
        if channel["address"].startswith("placet.")
        for name in channel["messages"]
    }
    assert placed == {*builtin().by_subject, "TrustPart", "ClassPart", "TrustCheckpoint"}
    messages = ASYNCAPI["components"]["messages"]
    assert messages["placet.commands.ProposeToolCall"]["x-sent-by"] == ["gateway", "agent token"]
    assert messages["placet.commands.ReserveRuleUse"]["x-sent-by"] == ["decider"]
    assert messages["placet.commands.DecideHold"]["x-sent-by"] == ["gateway"]
    kafka = ASYNCAPI["channels"]["commands"]["bindings"]["kafka"]
    assert kafka["topicConfiguration"] == {"cleanup.policy": ["delete"], "retention.ms": 7 * 86_400_000}


@pytest.mark.parametrize(
    "message",
    [
        Problem(Refusal.INVALID, "no", errors=[{"path": "a", "code": "b", "message": "c", "severity": "d"}]),
        Problem(Refusal.ALREADY_DECIDED, "no", winning_decision_id="d"),
        Problem(Refusal.QUOTA, "no", retry_after=1),
    ],
)
def test_asyncapi_names_every_field_of_a_refusal(message: Problem) -> None:
    check_named(message_of(message))
    schema = ASYNCAPI["components"]["schemas"]["error_message"]
    assert message_of(message).keys() <= schema["properties"].keys()
    always = message_of(Problem(Refusal.NOT_FOUND, "no")).keys()
    assert set(schema["required"]) == always


def test_asyncapi_first_message_may_name_a_project() -> None:
    schema = ASYNCAPI["components"]["schemas"]["authenticate_message"] | {
        "components": ASYNCAPI["components"]
    }
    first = {"type": "authenticate", "token": "t", "project": "books"}
    assert Draft202012Validator(schema).is_valid(first)
    assert not Draft202012Validator(schema).is_valid(first | {"surprise": 1})


def test_client_messages_are_those_that_the_socket_takes() -> None:
    beside_verbs = {"authenticate", "subscribe", "unsubscribe", "ping", "request"}
    assert {type_of(model) for model in CLIENT_MESSAGES} == set(VERBS) | beside_verbs


@pytest.mark.parametrize("name", sorted(pages()))
def test_page_is_up_to_date(name: str) -> None:
    assert (DOCS / name).read_text(encoding="utf-8") == pages()[name], "run python -m gateway.docs_gen.pages"


def test_page_names_every_message() -> None:
    people, agents = pages()["websocket-protocol.md"], pages()["agent_extended_protocol.md"]
    for model in (*CLIENT_MESSAGES, *SERVER_MESSAGES):
        assert f"`{type_of(model)}`" in people + agents


def test_page_of_the_bridge_names_every_message() -> None:
    page = (DOCS / "hitl/api-reference.md").read_text(encoding="utf-8").partition("### Human Bridge")[2]
    for model in (*bridge_protocol.CLIENT.values(), *bridge_protocol.SERVER.values()):
        assert f'`{{"type": "{type_of(model)}"' in page, model


def test_bridge_takes_what_the_asyncapi_document_says() -> None:
    with pytest.raises(Problem) as refused:
        BridgeMessages().from_client({"type": "sing"})
    accepted = set(refused.value.detail.partition("accepts ")[2].split(", "))
    assert accepted == {type_of(model) for model in bridge_protocol.CLIENT.values()}


def test_docs_directory_is_the_projects() -> None:
    assert Path(__file__).resolve().parents[2] / "docs" == DOCS
