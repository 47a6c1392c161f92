"""The agent of examples/node-kafka: a user of Kafka with a service's rights alone, and the contract's golden log."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.clients.tools import ROOT, run_tool, start_tool, with_packages
from tests.gateway.conftest import Caller, Doors
from tests.gateway.people import decide, event_types, open_hold
from tests.golden.test_signed_log import GOLDEN
from tests.servers.stack import running_stack

EXAMPLE = ROOT / "examples" / "node-kafka"
PROGRAMS = Path(__file__).parent / "programs"
CLAIM = "placet.events.WriterClaimed"
pytestmark = [pytest.mark.stack, pytest.mark.broker]


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    directory = tmp_path_factory.mktemp("doors")
    with running_stack(directory, "--partitions", "3") as stack, httpx.Client(timeout=30) as client:
        yield Doors(stack, stack.status()["url"], client)


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example beside its packages, and the program that reads the golden log with it."""
    directory = with_packages(tmp_path_factory.mktemp("node-kafka"))
    for module in (*EXAMPLE.glob("*.mjs"), PROGRAMS / "count_golden.mjs"):
        shutil.copy(module, directory)
    return directory


@pytest.fixture(scope="module")
def service(doors: Doors, workplace: Path) -> Path:
    """The settings of a Kafka user with no more rights than a service needs."""
    out = workplace / "service.json"
    owner = doors.stack.data_dir / "kafka" / "clients" / "installation.json"
    brokers = doors.stack.status()["bootstrap_servers"]
    made = ("billing-service", "node-agent-", out)
    run_tool("python", PROGRAMS / "kafka_user.py", brokers, owner, *made, cwd=workplace)
    return out


@contextmanager
def running(
    doors: Doors, workplace: Path, service: Path, agent: str
) -> Iterator[tuple[Caller, subprocess.Popen[str]]]:
    own = doors.caller("billing-bot", "agent", agent=agent)
    access = {
        "PLACET_URL": doors.url,
        "PLACET_TOKEN": own.token,
        "PLACET_KAFKA": doors.stack.status()["bootstrap_servers"],
        "PLACET_KAFKA_SETTINGS": str(service),
        "PLACET_KEYS": str(doors.stack.data_dir / "keys"),
    }
    with start_tool("node", workplace / "agent.mjs", **access) as process:
        try:
            yield own, process
        finally:
            process.kill()


def ended(process: subprocess.Popen[str]) -> tuple[int, list[str]]:
    said, wrong = process.communicate(timeout=60)
    assert process.returncode is not None
    assert "Error" not in wrong, wrong
    return process.returncode, said.splitlines()


def test_agent_over_kafka_pays_once_what_a_person_approved(
    doors: Doors, workplace: Path, service: Path
) -> None:
    anna = doors.caller("anna", "reviewer")
    with running(doors, workplace, service, "payer") as (own, process):
        hold = open_hold(anna, "payer", tool="send_money")
        decide(
            anna,
            hold,
            decision="edit",
            edited_arguments={"amount": 9.87, "recipient": hold["arguments"]["recipient"]},
        )
        again = anna.get("/v1/holds?status=open&agent=payer").json()["items"]
        for one in again:
            decide(anna, one, decision="approve")
        code, said = ended(process)
    assert code == 0, said
    assert said == [
        f"held {hold['hold_id']}",
        'pay {"amount":9.87,"recipient":"GB29NWBK60161331926819"}',
        "reported",
    ]
    (execution,) = own.get("/v1/executions").json()["items"]
    assert execution["state"] == "completed"
    types = event_types(anna, execution["execution_id"])
    assert types.count("GrantConsumed") == types.count("ToolCallSucceeded") == 1
    assert types[-1] == "ExecutionCompleted"


def test_agent_over_kafka_that_is_rejected_pays_nothing(doors: Doors, workplace: Path, service: Path) -> None:
    anna = doors.caller("anna", "reviewer")
    with running(doors, workplace, service, "refused") as (_, process):
        hold = open_hold(anna, "refused", tool="send_money")
        decide(anna, hold, decision="reject", feedback="wrong account")
        code, said = ended(process)
    assert code == 1
    assert [line.split()[0] for line in said] == ["held", "ToolCallDenied"]


def test_reader_of_the_agent_counts_what_the_golden_log_says(doors: Doors, workplace: Path) -> None:
    keys = workplace / "keys"
    keys.mkdir()
    public: dict[str, Any] = {
        kid: base64.b64encode(bytes.fromhex(raw)).decode() for kid, raw in GOLDEN["public_keys"].items()
    }
    (keys / "deciders.json").write_text(json.dumps(public), encoding="utf-8")
    (keys / "signed-from.json").write_text("{}", encoding="utf-8")
    log = ROOT / "tests" / "golden" / "signed_log.json"
    counted = run_tool("node", "count_golden.mjs", log, keys, cwd=workplace, PLACET_URL=doors.url)
    assert counted.stdout.splitlines() == [
        dict(line["headers"])["ce_id"]
        for line in GOLDEN["records"]
        if line["counts"] and dict(line["headers"])["ce_type"] != CLAIM
    ]


def test_example_has_the_versions_that_are_tested() -> None:
    own = json.loads((EXAMPLE / "package.json").read_text(encoding="utf-8"))["dependencies"]
    tested = json.loads((ROOT / "tests/clients/package.json").read_text(encoding="utf-8"))["devDependencies"]
    assert own.items() <= tested.items()
    lock = json.loads((EXAMPLE / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    assert {name: lock[f"node_modules/{name}"]["version"] for name in own} == own
    assert not [name for name, package in lock.items() if "resolved" in package]
