"""The published documents as others' tools read them: linters, parsers and generators of clients and types."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway.docs_gen.asyncapi import asyncapi_document
from gateway.sockets.protocol import CLIENT_MESSAGES, SERVER_MESSAGES, type_of
from schemas.registry import builtin
from schemas.topics import DEFAULT_PARTITIONS, Topics
from tests.clients.documents import document
from tests.clients.late import late_proxy
from tests.clients.tools import ROOT, run_tool, start_tool, with_packages
from tests.gateway.conftest import Caller, Doors
from tests.servers.stack import running_stack, wait_for

PROGRAMS = Path(__file__).parent / "programs"
# The tools are started one after the other on a machine that may be busy.
# The shortest that a tool may have.
LEASE_S = 5


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the document and the packages of Node.js."""
    directory = with_packages(tmp_path_factory.mktemp("clients"))
    (directory / "openapi.json").write_text(json.dumps(document()))
    return directory


@pytest.fixture(scope="module")
def typescript(workplace: Path) -> Path:
    """The types that openapi-typescript makes, beside the program that uses them."""
    run_tool("openapi-typescript", "openapi.json", "-o", "openapi.ts", cwd=workplace)
    for name in ("drive.ts", "tsconfig.json"):
        shutil.copy(PROGRAMS / name, workplace / name)
    return workplace


@pytest.fixture(scope="module")
def python_client(workplace: Path) -> Path:
    """The client that openapi-python-client makes."""
    out = workplace / "python"
    command = ("openapi-python-client", "generate", "--path", "openapi.json", "--meta", "none")
    said = run_tool(*command, "--output-path", out / "placet_client", cwd=workplace)
    (out / "said.txt").write_text(said.stdout + said.stderr)
    return out


def test_redocly_finds_no_fault(workplace: Path) -> None:
    config = PROGRAMS / "redocly.yaml"
    found = run_tool("redocly", "lint", "openapi.json", "--config", config, "--format=json", cwd=workplace)
    totals = json.loads(found.stdout)["totals"]
    assert (totals["errors"], totals["warnings"]) == (0, 0), found.stdout


def test_openapi_typescript_makes_types_that_compile(typescript: Path) -> None:
    run_tool("tsc", "--project", typescript, cwd=typescript)


def test_openapi_python_client_makes_every_operation(python_client: Path) -> None:
    documented = [operation for methods in document()["paths"].values() for operation in methods.values()]
    operations = [operation["operationId"] for operation in documented]
    made = [path.stem for path in python_client.glob("placet_client/api/*/*.py") if path.stem != "__init__"]
    assert len(made) == len(operations) == len(set(operations))
    said = (python_client / "said.txt").read_text()
    # It knows JSON only; a policy may also be sent as YAML.
    in_yaml = sum("application/yaml" in one.get("requestBody", {}).get("content", {}) for one in documented)
    warned = said.count("Unsupported content type application/yaml")
    assert said.count("WARNING") == warned == in_yaml, said


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    with running_stack(tmp_path_factory.mktemp("doors")) as stack, httpx.Client(timeout=30) as client:
        yield Doors(stack, stack.status()["url"], client)


def _tokens(doors: Doors) -> dict[str, str]:
    return {
        "PLACET_URL": doors.url,
        "OPERATOR_TOKEN": doors.token("olga", "operator"),
        "AGENT_TOKEN": doors.token("bot", "agent", agent="billing"),
        "REVIEWER_TOKEN": doors.token("anna", "reviewer"),
    }


@pytest.mark.stack
def test_generated_typescript_client_drives_a_stack(doors: Doors, typescript: Path) -> None:
    said = run_tool("node", "--no-warnings", "drive.ts", cwd=typescript, **_tokens(doors))
    assert said.stdout.splitlines() == [
        "held",
        "resolved",
        "released",
        "consumed",
        "succeeded",
        "1 event page",
    ]


@pytest.mark.stack
def test_generated_python_client_drives_a_stack(doors: Doors, python_client: Path) -> None:
    drive = PROGRAMS / "drive_generated.py"
    said = run_tool("python", drive, cwd=python_client, PYTHONPATH=str(python_client), **_tokens(doors))
    assert said.stdout.splitlines() == [
        "held",
        "resolved",
        "released",
        "consumed",
        "succeeded",
        "1 event page",
    ]


@pytest.fixture(scope="module")
def asyncapi(workplace: Path) -> dict[str, Any]:
    """What the parser finds wrong with the AsyncAPI document, and the types that Modelina makes of it."""
    (workplace / "asyncapi.json").write_text(json.dumps(asyncapi_document(Topics(), DEFAULT_PARTITIONS)))
    shutil.copy(PROGRAMS / "check_asyncapi.mjs", workplace)
    said = run_tool("node", "--no-warnings", "check_asyncapi.mjs", "asyncapi.json", cwd=workplace)
    found: dict[str, Any] = json.loads(said.stdout)
    return found


def test_asyncapi_parser_finds_no_fault(asyncapi: dict[str, Any]) -> None:
    assert asyncapi["faults"] == []


def test_modelina_makes_a_type_of_each_message_with_the_names_of_the_wire(asyncapi: dict[str, Any]) -> None:
    models = asyncapi["models"]
    assert [name for name in models if "Anonymous" in name] == []
    wanted = {
        _type_name(name): list(schema["properties"])
        for name, schema in asyncapi_document(Topics(), DEFAULT_PARTITIONS)["components"]["schemas"].items()
        if "properties" in schema
    }
    for subject, versions in builtin().by_subject.items():
        wanted[_type_name(subject)] = [field["name"] for field in versions[-1].schema["fields"]]
    # A body that a message carries is inlined in it, or stands by itself.
    assert {
        _type_name(type_of(model) + "_message") for model in (*CLIENT_MESSAGES, *SERVER_MESSAGES)
    } <= models.keys()
    for name, fields in wanted.items():
        lost = [field for field in fields if f"'{field}'" not in models[name]]
        assert lost == [], name


def _type_name(name: str) -> str:
    """How Modelina writes a name: words joined, dots spelled out."""
    return "".join(word[:1].upper() + word[1:] for word in name.replace(".", "_dot_").split("_"))


@pytest.mark.stack
def test_confluents_client_looks_schemas_up_and_writes_records_with_them(
    doors: Doors, workplace: Path
) -> None:
    said = run_tool("python", PROGRAMS / "confluent_registry.py", cwd=workplace, PLACET_URL=doors.url)
    assert said.stdout.splitlines() == [
        "FULL_TRANSITIVE FULL_TRANSITIVE READONLY READONLY",
        "True",
        "404 40403",
        "422 42205",
        "True True",
    ]


AGENT = ROOT / "examples" / "node-agent" / "agent.mjs"


def _approved(reviewer: Caller) -> dict[str, Any]:
    """The hold of the agent's call, once a person has approved it."""
    holds = wait_for(lambda: reviewer.get("/v1/holds?status=open&agent=billing").json()["items"], bool)
    hold: dict[str, Any] = holds[0]
    view = reviewer.get(f"/v1/holds/{hold['hold_id']}/view").json()
    word = {"decision": "approve", "digest": hold["digest"], "view_digest": view["view_digest"]}
    assert reviewer.post(f"/v1/holds/{hold['hold_id']}/decision", word).status_code == 200
    return hold


@pytest.mark.stack
def test_node_agent_of_the_documents_pays_once_it_is_approved(doors: Doors) -> None:
    agent, reviewer = doors.caller("bot", "agent", agent="billing"), doors.caller("anna", "reviewer")
    with start_tool("node", AGENT, PLACET_URL=doors.url, PLACET_TOKEN=agent.token) as running:
        hold = _approved(reviewer)
        said, wrong = running.communicate(timeout=60)
    assert (running.returncode, wrong) == (0, "")
    assert said.splitlines()[-1] == 'pay {"amount":98.7,"recipient":"GB29…"}'
    call = agent.get(f"/v1/executions/{hold['execution_id']}/tool-calls/{hold['call_id']}").json()
    assert (call["status"], call["output"]) == ("succeeded", {"paid": True})


@pytest.mark.stack
def test_node_agent_of_the_documents_pays_nothing_after_its_lease_has_ended(doors: Doors) -> None:
    agent, reviewer = doors.caller("bot", "agent", agent="billing"), doors.caller("anna", "reviewer")
    operator = doors.caller("olga", "operator")
    assert operator.call("PUT", "/v1/tools/send_money", {"lease_seconds": LEASE_S}).status_code == 200
    with (
        late_proxy(doors.url, LEASE_S + 5) as (proxy, url),
        start_tool("node", AGENT, PLACET_URL=url, PLACET_TOKEN=agent.token) as running,
    ):
        hold = _approved(reviewer)
        said, wrong = running.communicate(timeout=60)
    assert "pay" not in said
    assert (running.returncode, proxy.asked[-2:]) == (1, ["consume", "heartbeat"])
    assert "not_released" in wrong
    call = agent.get(f"/v1/executions/{hold['execution_id']}/tool-calls/{hold['call_id']}").json()
    assert call["status"] == "outcome_unknown"
