"""Where a fork stops, what it does not repeat, and what cannot be forked."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from ops.config import DataDir
from ops.fork import definitions
from ops.fork.access import Issued
from ops.fork.command import Question, _forked
from ops.fork.errors import ForkError
from ops.fork.point import Instead
from tests.integration.doors import PROJECT, Tenant
from tests.integration.forking import IBAN, answer, forked, forking_tenant, paid, ran, reader, rows
from tests.integration.site import Site
from tests.servers.stack import PLACET, run_placet

pytestmark = [pytest.mark.stack, pytest.mark.broker]


@pytest.fixture(scope="module")
def tenant(site: Site) -> Iterator[Tenant]:
    with forking_tenant(site) as found:
        yield found


def test_hold_that_asks_two_people_stops_the_branch(tenant: Tenant) -> None:
    run = tenant.execution()
    call = tenant.propose(run, "send_money", {"to": IBAN, "amount": 1.5}, "first")
    assert tenant.decide(call, "reject").status_code == 200
    call = tenant.propose(run, "wire", {"to": IBAN}, "second")
    assert tenant.decide(call).status_code == 200
    assert tenant.decide(call, by=tenant.otto).status_code == 200
    ran(tenant, run, "second", "wired")

    found = answer(tenant, run, "--at", "first", "--with", "reject")

    assert (found["stopped"]["call_id"], "more than one person" in found["stopped"]["why"]) == (
        "second",
        True,
    )
    assert found["calls"][1]["original"]["decisions"] == ["approve of rita and otto"]
    assert reader(tenant, found["fork"]["project"]).get("/holds?status=open").json()["items"] == []


def test_rejection_that_halts_the_run_leaves_the_rest_unreached(tenant: Tenant) -> None:
    run = tenant.execution()
    call = tenant.propose(run, "halt", {}, "stop")
    assert tenant.decide(call).status_code == 200
    ran(tenant, run, "stop", "gone on")
    tenant.propose(run, "read_file", {"path": "a"}, "read")
    ran(tenant, run, "read", "text")

    found = answer(tenant, run, "--at", "stop", "--with", "reject")

    assert found["stopped"]["call_id"] == "read"
    assert rows(found)["read"] == ("not_reached", [])


def test_approval_that_the_run_remembered_is_remembered_in_the_fork(tenant: Tenant) -> None:
    run = tenant.execution()
    call = tenant.propose(run, "note", {"text": "a"}, "first")
    remember = {"arguments": {"text": {"any": True}}}
    assert tenant.decide(call, scope="execution", remember=remember).status_code == 200
    ran(tenant, run, "first", "noted")
    assert tenant.propose(run, "note", {"text": "b"}, "second")["status"] == "released"
    ran(tenant, run, "second", "noted")
    call = tenant.propose(run, "send_money", {"to": IBAN, "amount": 1.5}, "pay")
    assert tenant.decide(call, "reject").status_code == 200

    kept = answer(tenant, run, "--at", "pay", "--with", "reject")
    lost = answer(tenant, run, "--at", "first", "--with", "approve")

    assert (kept["stopped"], kept["is_same"]) == (None, True)
    assert kept["calls"][1]["fork"]["effect"] == "allow"
    # Approved once, it is remembered for nothing: the second note is held, and approved as it was released.
    assert (lost["stopped"], rows(lost)["second"]) == (None, ("different", ["verdict", "decision"]))


def test_sealed_values_stop_the_branch_before_the_call(tenant: Tenant) -> None:
    run = tenant.execution()
    call = tenant.propose(run, "send_money", {"to": IBAN, "amount": 1.5}, "first")
    assert tenant.decide(call, "reject").status_code == 200
    tenant.propose(run, "seal", {"key": "s3cret"}, "secret")

    found = answer(tenant, run, "--at", "first", "--with", "reject")

    assert (found["stopped"]["call_id"], found["stopped"]["status"]) == ("secret", "not_proposed")
    assert "/key are sealed" in found["stopped"]["why"]


def test_questions_are_answered_as_recorded_and_variables_are_not_asked_again(tenant: Tenant) -> None:
    run = tenant.execution()
    asked: dict[str, dict[str, Any]] = {
        "which": {"kind": "decision", "question": "Which?", "options": ["travel", "rent"]},
        "key": {"kind": "env_var", "question": "The key?", "fields": [{"name": "KEY"}]},
    }
    values: dict[str, Any] = {"which": "rent", "key": {"KEY": "s3cret"}}
    for name, body in asked.items():
        request = tenant.bot.post("/requests", {"request_id": name, "execution_id": run, **body}).json()
        decision = {"decision": "respond", "value": values[name]}
        assert tenant.rita.post(f"/holds/{request['hold_id']}/decision", decision).status_code == 200
    call = tenant.propose(run, "send_money", {"to": IBAN, "amount": 1.5}, "pay")
    assert tenant.decide(call, "reject").status_code == 200

    found = answer(tenant, run, "--at", "pay", "--with", "reject")

    assert found["questions_not_repeated"] == {"key": "its variables are not in the log"}
    fork = reader(tenant, found["fork"]["project"])
    request = fork.get(f"/requests/which?execution_id={run}").json()
    assert (request["status"], request["response"], request["by"]) == ("resolved", "rent", "leo")


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)]
)
def test_fork_that_a_signal_ends_leaves_no_run_open_and_no_policy_in_force(
    tenant: Tenant, number: signal.Signals, code: int
) -> None:
    run = tenant.execution()
    for call_id in ("pay", *(f"pay{n}" for n in range(12))):
        call = tenant.propose(run, "send_money", {"to": IBAN, "amount": 1.5}, call_id)
        assert tenant.decide(call).status_code == 200
        ran(tenant, run, call_id, "paid")

    where = ("--data-dir", str(tenant.site.stack.data_dir), "--tenant", tenant.name, "--as", "leo")
    # The suite itself may run under nohup, or in the background of a script.
    heard = ("env", "--default-signal=HUP,INT,TERM")
    command = (
        *heard,
        PLACET,
        "--project",
        PROJECT,
        "fork",
        run,
        "--at",
        "pay11",
        "--with",
        "approve",
        *where,
    )
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as fork:
        assert fork.stderr is not None
        first, second = fork.stderr.readline(), fork.stderr.readline()
        # In the middle of the branch.
        fork.send_signal(number)
        told = fork.communicate(timeout=60)[1]

    assert (fork.returncode, second[:16]) == (code, "pay send_money: "), first + second + told
    project = first.split()[-1]
    left = reader(tenant, project)
    assert left.get(f"/executions/{run}").json()["state"] == "cancelled"
    assert left.get("/holds?status=open").json()["items"] == []
    policy = left.get("/policies/own").json()
    assert (policy["project"], policy["retired_reason"]) == (project, "the fork has ended")


def test_fork_whose_policy_is_not_taken_over_in_time_leaves_none_in_force(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tenant.execution()
    call = tenant.propose(run, "send_money", {"to": IBAN, "amount": 1.5}, "pay")
    assert tenant.decide(call).status_code == 200
    ran(tenant, run, "pay", "paid")
    adopted = definitions._check_adopted

    def late(published: Any) -> None:
        # As a decider that stands still makes the gateway answer.
        adopted(replace(published, raw={**published.raw, "adopted": published.name != "own"}))

    monkeypatch.setattr(definitions, "_check_adopted", late)
    issued = Issued(DataDir(tenant.site.stack.data_dir), tenant.name, "leo")
    question = Question(run, PROJECT, "pay", Instead("reject"))
    with pytest.raises(ForkError, match="have not taken it over yet"):
        asyncio.run(_forked(issued.reading(), issued, question))

    project = capsys.readouterr().err.split()[-1]
    policy = reader(tenant, project).get("/policies/own").json()
    assert (policy["project"], policy["retired_reason"]) == (project, "the fork has ended")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--at", "read", "--with", "reject"), 1, "the policy said allow"),
        (("--at", "nothing", "--with", "reject"), 1, "has no decision, call or hold nothing"),
        (("--at", "pay", "--with", "edit"), 2, "--arguments JSON belongs to --with edit"),
        (("--at", "pay", "--with", "allow"), 2, "approve, edit or reject"),
        (("--at", "pay", "--with", "approve", "--result", "{"), 2, "--result"),
        (("--at", "pay", "--with", "reject", "--result", "1"), 2, "returns nothing"),
    ],
)
def test_what_cannot_be_forked_is_refused(
    tenant: Tenant, refusing: str, arguments: tuple[str, ...], code: int, said: str
) -> None:
    done = forked(tenant, refusing, *arguments)

    assert (done.returncode, said in done.stderr, done.stdout) == (code, True, ""), done.stderr


@pytest.fixture(scope="module")
def refusing(tenant: Tenant) -> str:
    return paid(tenant)


def test_unknown_execution_is_not_found(tenant: Tenant) -> None:
    done = forked(tenant, "nobodys", "--at", "pay", "--with", "reject")

    assert (done.returncode, "no execution begins with nobodys in the project default" in done.stderr) == (
        1,
        True,
    )


def test_one_token_of_the_whole_tenant_forks_and_one_of_a_project_is_refused(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tenant.execution()
    call = tenant.propose(run, "halt", {}, "stop")
    assert tenant.decide(call).status_code == 200
    ran(tenant, run, "stop", "gone on")
    monkeypatch.setenv("PLACET_URL", tenant.site.url)
    monkeypatch.setenv("PLACET_TOKEN", tenant.admin.token)

    done = run_placet("fork", run, "--at", "stop", "--with", "approve", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["is_same"], found["fork"]["by"]) == (True, "ada")

    # Who proposes for the agent is the requester, who may not decide on what excludes the requester.
    excluding = paid(tenant)
    done = run_placet("fork", excluding, "--at", "pay", "--with", "approve", "--json")
    assert "own_request" in json.loads(done.stdout)["stopped"]["why"]

    monkeypatch.setenv("PLACET_TOKEN", tenant.rita.token)
    done = run_placet("fork", run, "--at", "stop", "--with", "approve")
    assert (done.returncode, "is only for the project default" in done.stderr) == (2, True)
