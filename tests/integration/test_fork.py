"""A fork on the running stack: a real run of its own project, of which nothing counts for the original's agent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from ops.config import DataDir
from ops.fork.access import Issued
from ops.fork.definitions import copy_definitions
from ops.fork.drive import Branch
from ops.fork.naming import fork_project
from ops.fork.point import Instead, find_point
from ops.fork.recorded import read_run
from ops.fork.saying import Sayings
from ops.fork.stubs import Stubs
from tests.integration.doors import PROJECT, Caller, Tenant, fresh, refused
from tests.integration.forking import IBAN, POLICY, answer, forking_tenant, paid, reader, rows
from tests.integration.site import Site
from tests.servers.stack import run_placet, wait_for

pytestmark = [pytest.mark.stack, pytest.mark.broker]


@pytest.fixture(scope="module")
def tenant(site: Site) -> Iterator[Tenant]:
    with forking_tenant(site) as found:
        yield found


@pytest.fixture
def alone(site: Site) -> Iterator[Tenant]:
    """A tenant whose agent nobody else teaches anything."""
    with forking_tenant(site) as found:
        yield found


def trusted(person: Caller, approvals: int, rejections: int) -> Any:
    """What is known of the agent, once the decisions on its payments are counted."""

    def counted(tools: Any) -> bool:
        of = {one["tool"]: one for one in tools}.get("send_money", {})
        return (of.get("approvals"), of.get("rejections")) == (approvals, rejections)

    return wait_for(lambda: person.get("/agents/bot/trust").json()["tools"], counted)


def test_rejected_payment_is_told_with_the_calls_that_used_what_it_returned(alone: Tenant) -> None:
    tenant, run = alone, paid(alone)
    before = tenant.events(run)
    trust = trusted(tenant.rita, 1, 1)

    found = answer(tenant, run, "--at", "pay", "--with", "reject", "--reason", "not due yet")

    assert rows(found) == {
        "read": ("same", []),
        "pay": ("different", ["decision", "outcome"]),
        "file": ("same", []),
        "again": ("same", []),
    }
    assert (found["stopped"], found["is_same"]) == (None, False)
    used = {row["call_id"]: row["used"] for row in found["calls"] if row["used"]}
    assert used == {"file": [{"path": "receipt_id", "value": "R-7731", "of_call": "pay"}]}
    # Nothing of it is the original's: not its events, not its agent's trust, not what waits for its people.
    assert tenant.events(run) == before
    trusted(reader(tenant, found["fork"]["project"]), 0, 2)
    assert trusted(tenant.rita, 1, 1) == trust
    assert tenant.rita.get("/holds?status=open").json()["items"] == []
    assert tenant.bot.get("/executions").json()["items"][0]["project"] == PROJECT


def test_every_decision_of_the_fork_is_by_its_person_and_says_whose_it_was(tenant: Tenant) -> None:
    run = paid(tenant)
    found = answer(tenant, run, "--at", "again", "--with", "reject", "--reason", "still paid")
    fork = found["fork"]["project"]
    decision = found["at"]["decision_id"]

    events = reader(tenant, fork).get(f"/executions/{run}/events?limit=200").json()["items"]

    said = [event["data"] for event in events if event["type"] == "DecisionRecorded"]
    prefix = f"fork of {run} at {decision}: "
    assert [(one["by"], one["decision"], one["feedback"]) for one in said] == [
        ("leo", "approve", f"{prefix}recorded approve of rita"),
        ("leo", "reject", f"{prefix}reject in place of the recorded reject of rita: still paid"),
    ]
    assert found["is_same"] is True
    assert reader(tenant, fork).get("/holds?status=open").json()["items"] == []
    assert reader(tenant, fork).get(f"/executions/{run}").json()["state"] == "completed"


def test_call_that_never_ran_stops_the_branch_unless_its_result_is_assumed(tenant: Tenant) -> None:
    run = paid(tenant)

    found = answer(tenant, run, "--at", "again", "--with", "approve")

    assert found["stopped"]["status"] == "no_recorded_result"
    assert found["calls"][3]["fork"]["status"] == "no_recorded_result"
    fork = reader(tenant, found["fork"]["project"])
    call = fork.get(f"/executions/{run}/tool-calls/again").json()
    assert (call["status"], fork.get(f"/executions/{run}").json()["state"]) == ("cancelled", "cancelled")

    assumed = answer(tenant, run, "--at", "again", "--with", "approve", "--result", '{"receipt": "R-2"}')
    assert assumed["stopped"] is None
    assert assumed["calls"][3]["fork"]["result"] == '{"receipt":"R-2"}'
    assert assumed["calls"][3]["is_assumed"] is True


def test_edited_payment_has_no_recorded_result(tenant: Tenant) -> None:
    run = paid(tenant)
    edited = json.dumps({"to": IBAN, "amount": 9.5})

    found = answer(tenant, run, "--at", "pay", "--with", "edit", "--arguments", edited)

    assert found["stopped"]["call_id"] == "pay"
    assert rows(found)["pay"] == ("different", ["decision", "arguments", "outcome"])
    assert rows(found)["file"] == ("not_reached", [])


def test_agent_of_the_original_can_neither_see_nor_take_a_call_of_the_fork(tenant: Tenant) -> None:
    run = paid(tenant)
    found = answer(tenant, run, "--at", "again", "--with", "approve")
    fork = found["fork"]["project"]
    call = reader(tenant, fork).get(f"/executions/{run}/tool-calls/again").json()
    elsewhere = {"Placet-Project": fork}

    # The same execution and call in its own project: not the fork's, and rejected there.
    body = {"digest": call["digest"], "attempt_id": fresh("attempt")}
    path = f"/executions/{run}/tool-calls/again/consume"
    own = tenant.bot.post(path, body)
    there = tenant.bot.post(path, body, headers=elsewhere)

    assert (own.status_code, own.json()["code"]) == (409, "execution_closed")
    assert (there.status_code, there.json()["code"]) == (403, "not_authorised")
    assert tenant.bot.get(f"/executions/{run}", headers=elsewhere).status_code == 403


def test_release_of_the_fork_cannot_be_taken_while_it_stands(tenant: Tenant) -> None:
    run = paid(tenant)
    taken: list[tuple[int, str]] = []

    async def fork() -> None:
        issued = Issued(DataDir(tenant.site.stack.data_dir), tenant.name, "leo")
        reading, project = issued.reading(), fork_project(run)
        async with reading.of_reader(PROJECT) as reader:
            original = read_run(run, (await reader.executions.events(run)).items)
        point, instead = find_point(run, original, "pay"), Instead("approve")

        def say(told: str) -> None:
            if told == "pay send_money: released":
                body = {"digest": tenant.call(run, "pay")["digest"], "attempt_id": fresh("attempt")}
                path = f"/executions/{run}/tool-calls/pay/consume"
                for headers in ({}, {"Placet-Project": project}):
                    taken.append(refused(tenant.bot.post(path, body, headers=headers)))

        access = issued.forking(reading, project, "bot", "", "")
        async with access.of_person(project) as person, access.of_agent(project, "bot") as agent:
            label = point.call.verdict.policy_version if point.call.verdict else ""
            await copy_definitions(access, PROJECT, person, original, label)
            sayings, stubs = Sayings(run, point, instead), Stubs(original, point, instead)
            branch = Branch(agent, person, run, sayings, stubs, say)
            await branch.replay(original)
            assert branch.stopped is None

    asyncio.run(fork())

    assert taken == [(409, "execution_closed"), (403, "not_authorised")]


def test_each_fork_has_a_project_of_its_own_and_can_be_forked_again(tenant: Tenant) -> None:
    run = paid(tenant)

    first, second = (answer(tenant, run, "--at", "pay", "--with", "approve") for _ in range(2))

    projects = [found["fork"]["project"] for found in (first, second)]
    assert len({PROJECT, *projects}) == 3
    assert all(project.startswith(f"fork-{run}-") for project in projects)
    where = ("--data-dir", str(tenant.site.stack.data_dir), "--tenant", tenant.name, "--as", "mia")
    third = run_placet(
        "--project", projects[0], "fork", run, "--at", "pay", "--with", "reject", *where, "--json"
    )
    assert third.returncode == 0, third.stderr
    assert json.loads(third.stdout)["at"]["by"] == ["leo"]


def test_policy_that_judged_the_original_judges_the_fork_though_it_has_changed_since(tenant: Tenant) -> None:
    run = paid(tenant)
    version = tenant.admin.get("/policies/own").json()["version"]
    tenant.publish(
        POLICY.replace("tools: [send_money]}, then: hold", "tools: [send_money]}, then: deny").replace(
            "then: deny, hold: {exclude_requester: true}", "then: deny"
        )
    )
    try:
        found = answer(tenant, run, "--at", "pay", "--with", "approve")
    finally:
        tenant.publish(POLICY)

    assert found["is_same"] is True
    assert found["definitions"]["policy"] == f"own@{version}"
    judged = {row["fork"]["policy"] for row in found["calls"]}
    assert judged == {f"{found['fork']['project']}/own@1"}
