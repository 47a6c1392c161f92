"""The shipped ids in a schema registry, or no start."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from host.errors import EXIT_UNREACHABLE
from ops.ports import free_port
from ops.schema_registry import SchemaRegistryError, import_from_environment, import_schemas
from schemas.registry import Registry, SchemaEntry, builtin
from tests.servers.apicurio import running_apicurio

Handler = Callable[[httpx.Request], httpx.Response]


def entry(schema_id: int, name: str = "A", version: int = 1) -> SchemaEntry:
    schema = {"type": "record", "namespace": "x", "name": name, "fields": []}
    return SchemaEntry(f"x.{name}", version, schema_id, json.dumps(schema))


def book(*entries: SchemaEntry) -> Registry:
    return Registry({e.schema_id: e for e in entries}, {e.subject: (e,) for e in entries})


def answering(*routes: tuple[str, str, int, Any]) -> tuple[httpx.MockTransport, list[str]]:
    """A registry that answers these (method, path, status, body), and what it was asked."""
    asked: list[str] = []

    def handle(request: httpx.Request) -> httpx.Response:
        asked.append(f"{request.method} {request.url.path}")
        for method, path, status, body in routes:
            if (request.method, request.url.path) == (method, path):
                return httpx.Response(status, json=body)
        return httpx.Response(404, json={"error_code": 40403, "message": "not found"})

    return httpx.MockTransport(handle), asked


def test_import_from_environment_without_a_url_does_nothing() -> None:
    assert import_from_environment({}) == 0


def test_import_into_no_registry_says_what_to_do() -> None:
    url = f"http://ann:secret@127.0.0.1:{free_port()}"
    with pytest.raises(SchemaRegistryError, match="does not answer") as caught:
        import_from_environment({"SCHEMA_REGISTRY_URL": url})
    assert caught.value.exit_code == EXIT_UNREACHABLE
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("url", ["registry:8081", "not a url", "http://[", "ftp://x"])
def test_import_from_a_malformed_url_is_refused(url: str) -> None:
    with pytest.raises(SchemaRegistryError, match="SCHEMA_REGISTRY_URL"):
        import_schemas(url)


def test_import_when_an_id_is_another_schema_writes_nothing() -> None:
    transport, asked = answering(("GET", "/schemas/ids/2", 200, {"schema": '"string"'}))
    with pytest.raises(SchemaRegistryError, match=r"Schema id 2 .* is not x\.B version 1"):
        import_schemas("http://registry", book(entry(1), entry(2, "B")), transport)
    assert asked == ["GET /schemas/ids/1", "GET /schemas/ids/2"]


def test_import_when_the_registry_gives_another_id_is_refused_and_leaves_import_mode() -> None:
    transport, asked = answering(
        ("PUT", "/mode/x.A", 200, {"mode": "IMPORT"}), ("POST", "/subjects/x.A/versions", 200, {"id": 8})
    )
    with pytest.raises(SchemaRegistryError, match="the id 8 instead of 1"):
        import_schemas("http://registry", book(entry(1)), transport)
    assert asked[-2:] == ["POST /subjects/x.A/versions", "PUT /mode/x.A"]


def test_import_when_all_are_there_writes_nothing() -> None:
    spaced = json.dumps(entry(1).schema, indent=4)
    transport, asked = answering(("GET", "/schemas/ids/1", 200, {"schema": spaced}))
    assert import_schemas("http://registry", book(entry(1)), transport) == 0
    assert asked == ["GET /schemas/ids/1"]


@pytest.mark.parametrize(
    ("status", "body"),
    [(200, ["no", "object"]), (200, {"other": 1}), (200, {"schema": "not json"}), (401, {}), (500, {})],
)
def test_import_from_what_is_no_registry_is_refused(status: int, body: Any) -> None:
    transport, _ = answering(("GET", "/base/schemas/ids/1", status, body))
    with pytest.raises(SchemaRegistryError, match="Confluent-compatible"):
        import_schemas("http://ann:secret@registry/base", book(entry(1)), transport)


@pytest.fixture
def apicurio(tmp_path: Path) -> Iterator[str]:
    with running_apicurio(tmp_path) as url:
        yield url


@pytest.mark.long
def test_import_into_a_real_empty_registry_gives_the_shipped_ids(apicurio: str) -> None:
    entries = builtin().by_id
    assert import_schemas(apicurio) == len(entries)
    for schema_id, shipped in entries.items():
        found = httpx.get(f"{apicurio}/subjects/{shipped.subject}/versions/{shipped.version}").json()
        assert (found["id"], json.loads(found["schema"])) == (schema_id, shipped.schema)
    assert import_schemas(apicurio) == 0


@pytest.mark.long
def test_import_into_a_real_registry_of_somebody_else_is_refused(apicurio: str) -> None:
    theirs = {"schema": entry(1, "Theirs").text}
    assert httpx.post(f"{apicurio}/subjects/theirs/versions", json=theirs).json() == {"id": 1}
    with pytest.raises(SchemaRegistryError, match="Schema id 1 "):
        import_schemas(apicurio)
    assert httpx.get(f"{apicurio}/subjects").json() == ["theirs"]
