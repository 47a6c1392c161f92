"""Policies on a running stack: what publishing warns of, and what is listed, fetched, checked, diffed and retired."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

from tests.gateway.conftest import Caller, Doors
from tests.servers.stack import wait_for

pytestmark = [pytest.mark.stack, pytest.mark.broker]

YAML = {"Content-Type": "application/yaml"}
INTERNS = """
policy: interns
scope: {agent: "intern-*"}
rules:
  - {id: reads, match: {tools: [read_file]}, then: allow}
  - {id: deny-writes, match: {tools: ["write_*"]}, then: deny}
"""
SUPPORT = """
policy: support
scope: {agent: intern-joe}
rules:
  - {id: reads, match: {tools: [read_file]}, then: allow}
  - {id: everything, then: allow}
"""
SHADOWED = (
    "`support` names the agent and wins as a whole: rule deny-writes of `interns` never applies to intern-joe"
)


@pytest.fixture
def olga(doors: Doors) -> Caller:
    """An operator of a tenant of her own."""
    return doors.caller("olga", "operator", tenant=f"t-{uuid4().hex[:8]}", project="*")


def put(by: Caller, text: str) -> httpx.Response:
    return by.call("PUT", f"/v1/policies/{text.split()[1]}", content=text, headers=YAML)


def messages(answer: httpx.Response, field: str = "warnings") -> list[str]:
    return [problem["message"] for problem in answer.json()[field]]


def test_publishing_warns_of_what_is_shadowed_and_of_everything_doubtful(olga: Caller) -> None:
    assert olga.call("PUT", "/v1/tools/read_file", {}).status_code == 200
    assert messages(put(olga, INTERNS)) == [
        "the pattern 'write_*' matches no known tool; look for a typo, or publish the tool"
    ]

    answer = put(olga, SUPPORT)

    assert answer.status_code == 200
    assert messages(answer) == [
        "this rule allows every call that reaches it; narrow it by match or when",
        SHADOWED,
    ]


def test_check_says_all_and_what_would_change_and_publishes_nothing(olga: Caller) -> None:
    put(olga, INTERNS)
    wanted = INTERNS.replace("then: deny", "then: hold")
    checked = olga.call("POST", "/v1/policies/interns/check", content=wanted, headers=YAML)
    broken = olga.call(
        "POST",
        "/v1/policies/interns/check",
        {"policy": "interns", "rules": [{"id": "a", "then": "maybe", "when": "args.x >"}]},
    )

    assert checked.json()["in_force"] == 1
    assert checked.json()["difference"]["changed"] == [{"rule": "deny-writes", "fields": ["then"]}]
    assert [problem["path"] for problem in broken.json()["problems"]] == ["rules[0].then", "rules[0].when"]
    assert olga.get("/v1/policies/interns").json()["version"] == 1


def test_publishing_names_every_error_at_once(olga: Caller) -> None:
    refused = put(olga, "policy: p\nrules: [{id: a, then: maybe}, {id: b, then: deny, when: args.x >}]")

    assert refused.status_code == 422
    assert [problem["path"] for problem in refused.json()["errors"]] == ["rules[0].then", "rules[1].when"]


def test_retired_policy_is_in_force_nowhere_and_is_still_told_of(doors: Doors, olga: Caller) -> None:
    put(olga, SUPPORT)
    refused = olga.post("/v1/policies/support/retire", {"version": 7})
    retired = olga.post("/v1/policies/support/retire", {"version": 1, "reason": "too wide"}, key="once")
    again = olga.post("/v1/policies/support/retire", {"version": 1, "reason": "too wide"}, key="once")

    assert (refused.status_code, refused.json()["code"]) == (422, "invalid")
    assert (retired.status_code, retired.json()["retired_by"]) == (200, "olga")
    assert (again.status_code, again.json()["retired_at"]) == (200, retired.json()["retired_at"])
    assert olga.get("/v1/policies").json()["items"] == []
    assert [one["name"] for one in olga.get("/v1/policies?status=retired").json()["items"]] == ["support"]
    assert olga.get("/v1/policies/support?version=1").json()["retired_reason"] == "too wide"
    assert olga.get("/v1/rules").json()["items"] == []
    assert olga.post("/v1/policies/unheard-of/retire", {}).status_code == 404
    tenant = doors_tenant(olga)
    bot = doors.caller("bot", "agent", agent="intern-joe", tenant=tenant)
    verdict = bot.propose(bot.execution(), "read_file")["verdict"]
    assert (verdict["effect"], verdict["reason"]) == ("hold", "no_policy")
    audits = wait_for(lambda: olga.get("/v1/audit?subject=olga").json()["items"], lambda rows: len(rows) >= 3)
    assert {"retire_policy", "retire_policy_refused"} <= {row["action"] for row in audits}


def test_retire_is_for_operators_of_the_very_project(doors: Doors, olga: Caller) -> None:
    put(olga, SUPPORT)
    tenant = doors_tenant(olga)
    rita = doors.caller("rita", "reviewer", tenant=tenant)
    local = doors.caller("otto", "operator", tenant=tenant)

    assert rita.post("/v1/policies/support/retire", {}).status_code == 403
    # Only the tenant's is there, which is no project's to retire.
    assert local.post("/v1/policies/support/retire", {}).status_code == 404


def doors_tenant(caller: Caller) -> str:
    from jwt import decode

    claims = decode(caller.token, options={"verify_signature": False})
    return str(claims["tenant"])


def test_command_checks_and_compares_with_what_is_in_force(
    doors: Doors, olga: Caller, tmp_path: Path
) -> None:
    put(olga, INTERNS)
    (tmp_path / "support.yaml").write_text(SUPPORT)
    (tmp_path / "interns.yaml").write_text(INTERNS.replace("then: deny", "then: hold"))

    def placet(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(Path(".venv/bin/placet").resolve()), "--token", olga.token, "policy", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, timeout=60)

    checked = placet("check", "support.yaml", "--against", doors.url)
    compared = placet("diff", "interns.yaml", "--against", doors.url, "--json")

    assert (checked.returncode, compared.returncode) == (0, 0), checked.stderr + compared.stderr
    assert f"warning: scope: {SHADOWED}" in checked.stdout
    assert json.loads(compared.stdout)["changed"] == [{"rule": "deny-writes", "fields": ["then"]}]

    first = placet("diff", "support.yaml", "--against", doors.url, "--json")
    assert first.returncode == 0, first.stderr
    assert json.loads(first.stdout)["added"] != []
    assert "no policy support is in force: every rule counts as added" in first.stderr
    assert "no such policy unheard-of: placet policy list --all" in olga.get("/v1/policies/unheard-of").text
    assert "no such version 9 of the policy interns" in olga.get("/v1/policies/interns?version=9").text


def test_policy_of_a_project_is_named_to_who_sees_the_whole_tenant(doors: Doors) -> None:
    tenant = f"t-{uuid4().hex[:8]}"
    olga = doors.caller("olga", "operator", tenant=tenant, project="*")
    own = doors.caller("otto", "operator", tenant=tenant, project="books")
    put(own, INTERNS)

    for method, end in (("GET", ""), ("GET", "/versions")):
        answer = olga.call(method, f"/v1/policies/interns{end}")
        assert answer.status_code == 404
        assert "it exists in project books: --project books" in answer.json()["detail"]
    named = olga.get("/v1/policies/interns", headers={"Placet-Project": "books"})
    assert (named.status_code, named.json()["version"]) == (200, 1)
    other = doors.caller("omar", "operator", tenant=tenant, project="other")
    assert "books" not in other.get("/v1/policies/interns").text
