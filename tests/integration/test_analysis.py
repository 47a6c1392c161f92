"""docs/analysis.md on a running stack: its star is exported, and its numbers are what the REST API answers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any

import jsonpatch
import pytest

from tests.integration.doors import Caller, Tenant, fresh, new_tenant
from tests.integration.site import PAY, READ, Site
from tests.ops.export.starred import OF_ALL, OF_FILES, Ask, over_files, over_views
from tests.servers.stack import run_placet, wait_for

pytestmark = [pytest.mark.stack, pytest.mark.broker]

NOTE = {
    "name": "note",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
    "annotations": {"destructiveHint": False},
}
POLICY = """
policy: own
rules:
  - {id: reads, match: {tools: [read_file]}, then: allow}
  - {id: large, match: {tools: [send_money]}, when: 'args.amount >= 1000.0', then: hold, hold: {quorum: 2}}
  - {id: payments, match: {tools: [send_money]}, then: hold}
  - {id: notes, match: {tools: [note]}, then: hold, hold: {remember: {four_eyes: false, max_uses: unlimited}}}
adaptive: {sample_rate: 1}
"""
# One day has no earlier one from which trust could have fallen.
NOT_ON_ONE_DAY = "On which days did trust fall, and what had people said?"
NOTES = 4
NUMBERS = ("lower_bound", "raising", "lowering", "facts")


@pytest.fixture(scope="module")
def tenant(site: Site) -> Iterator[Tenant]:
    """A tenant with calls that ran alone, were approved, edited, rejected, decided by two, and answered by a rule."""
    with new_tenant(site, POLICY, PAY, READ, NOTE) as found:
        run = found.execution()
        ran(found, run, found.propose(run, "read_file", {}, "read"))
        for number in range(NOTES):
            note = found.propose(run, "note", {"text": "hello"}, f"note-{number}")
            assert found.rita.get(f"/holds/{note['hold_id']}/view").status_code == 200
            more: dict[str, Any] = {"scope": "rule", "remember": {"arguments": {"text": {"any": True}}}}
            assert found.decide(note, **(more if number == NOTES - 1 else {})).status_code == 200
        wait_for(lambda: by_rule(found), lambda call: call["status"] == "released")
        edited(found, run)
        rejected = found.propose(run, "send_money", {"to": "GB1", "amount": 9}, "rejected")
        assert found.decide(rejected, "reject", found.otto, feedback="no").status_code == 200
        large = found.propose(run, "send_money", {"to": "GB1", "amount": 5000}, "large")
        assert found.decide(large).status_code == 200
        assert found.decide(large, by=found.otto).status_code == 200
        ran(found, run, found.call(run, "large"))
        yield found


def by_rule(tenant: Tenant) -> Any:
    """A note that the standing rule releases, once it is in force; until then it is withdrawn with its run."""
    run = tenant.execution()
    call = tenant.propose(run, "note", {"text": "again"}, "by-rule")
    if call["status"] == "held":
        assert tenant.bot.post(f"/executions/{run}/cancel", {"reason": "not yet"}).status_code == 200
    return call


def edited(tenant: Tenant, run: str) -> None:
    call = tenant.propose(run, "send_money", {"to": "GB1", "amount": 50}, "edited")
    changed = {"to": "GB1", "amount": 5, "note": "less"}
    assert tenant.decide(call, "edit", edited_arguments=changed, feedback="less").status_code == 200
    again = tenant.call(run, "edited")
    if again["status"] == "held":
        assert tenant.decide(again, by=tenant.otto).status_code == 200
    ran(tenant, run, tenant.call(run, "edited"))


def ran(tenant: Tenant, run: str, call: Any) -> None:
    attempt = fresh("attempt")
    assert tenant.consume(run, call["digest"], call["call_id"], attempt).status_code == 200
    done = {"attempt_id": attempt, "outcome": "succeeded", "output": {}}
    place = f"/executions/{run}/tool-calls/{call['call_id']}/result"
    assert tenant.bot.post(place, done).status_code == 200


@pytest.fixture(scope="module")
def exported(tenant: Tenant, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of `placet export --star`, once the views have everything."""
    wait_for(lambda: ended(tenant), lambda found: found >= {"read", "large", "edited"})
    out = tmp_path_factory.mktemp("analysis") / "placet-export"
    data = str(tenant.site.stack.data_dir)
    done = run_placet("export", "--star", "--out", str(out), "--data-dir", data, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["star"]["tool_calls"] > NOTES
    return out


def ended(tenant: Tenant) -> set[str]:
    rows = tenant.caller("olga", "operator").get("/audit?limit=200").json()["items"]
    return {row["call_id"] for row in rows if row["result"] and row["result"]["status"] == "succeeded"}


@pytest.fixture(scope="module")
def files(exported: Path, tenant: Tenant) -> Iterator[Ask]:
    """The queries over the files, of this tenant alone."""
    yield from over_files(exported, tenant.name)


@pytest.fixture(scope="module")
def views(exported: Path, site: Site) -> Iterator[Ask]:
    """The queries over the live views of the stack, those of other tenants among them."""
    yield from over_views(site.stack.data_dir / "views.sqlite", exported.parent)


@pytest.mark.parametrize("title", OF_ALL | OF_FILES)
def test_question_is_answered_from_the_files(title: str, files: Ask) -> None:
    found = files((OF_ALL | OF_FILES)[title])
    assert bool(found) == (title != NOT_ON_ONE_DAY)


@pytest.mark.parametrize("title", OF_ALL)
def test_question_is_answered_from_the_views(title: str, views: Ask) -> None:
    assert views(OF_ALL[title])


def test_reviewers_are_those_of_the_api(tenant: Tenant, files: Ask) -> None:
    said = {one["reviewer"]: one for one in tenant.rita.get("/reviewers").json()["items"]}
    names = ("approved", "edited", "rejected", "answered")
    rows = files(f"SELECT subject, {', '.join(names)}, wait_ms, measured, quick FROM reviewers")
    assert {row[0] for row in rows} == said.keys() == {"rita", "otto"}
    for subject, *counts, wait_ms, measured, quick in rows:
        one, found = said[subject], [*counts, round(wait_ms), measured, quick]
        timed = [one[name] for name in ("average_wait_ms", "measured_approvals", "quick_approvals")]
        assert found == [*(one[name] for name in names), *timed]


def test_trust_of_today_and_of_yesterday_is_what_is_explained(tenant: Tenant, files: Ask) -> None:
    rows = files(
        "SELECT tool, trust_class, day, at_ms, lower_bound, raising, lowering, facts FROM trust_days"
    )
    assert {row[0] for row in rows} >= {"note", "send_money"}
    for *place, day, at_ms, lower, raising, lowering, facts in rows:
        at = datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds")
        answer = explained(tenant.rita, at=at.replace("+00:00", "Z"))
        (one,) = [one for one in answer if [one["tool"], one["trust_class"]] == place]
        assert (one["lower_bound"], one["raising"], one["lowering"], one["facts"]) == (
            lower,
            raising,
            lowering,
            facts,
        )
        before = datetime.combine(day, time()) - timedelta(milliseconds=1)
        assert explained(tenant.rita, at=f"{before.isoformat(timespec='milliseconds')}Z") == []


def explained(who: Caller, **params: str) -> Any:
    answer = who.get("/agents/bot/trust/classes", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()["classes"]


def test_calls_and_the_patch_of_the_edit_are_those_of_the_api(tenant: Tenant, files: Ask) -> None:
    found = files("SELECT execution_id, call_id, status FROM tool_calls")
    assert all(tenant.call(run, call_id)["status"] == status for run, call_id, status in found)
    ((proposed, arguments, patch),) = files("SELECT proposed_arguments, arguments, patch FROM edit_patches")
    assert json.loads(proposed) == {"to": "GB1", "amount": 50}
    made = jsonpatch.JsonPatch.from_string(patch).apply(json.loads(proposed))
    assert made == json.loads(arguments) == {"to": "GB1", "amount": 5, "note": "less"}


def test_rules_and_the_standing_rule_are_those_of_the_verdicts(tenant: Tenant, files: Ask) -> None:
    runs = {run for (run,) in files("SELECT DISTINCT execution_id FROM tool_calls")}
    cited: Counter[str] = Counter()
    for run in runs:
        items = tenant.admin.get(f"/executions/{run}/events?limit=200").json()["items"]
        for item in items:
            if item["type"] == "PolicyVerdictIssued":
                cited.update(item["data"]["rules"])
    assert dict(files("SELECT rule, verdicts FROM rules")) == cited
    ((rule_id, saved),) = files(
        "SELECT rule_id, SUM(verdicts) FROM rules WHERE kind = 'standing' GROUP BY rule_id"
    )
    (rule,) = tenant.rita.get("/standing-rules").json()["items"]
    assert (rule["rule_id"], saved) == (rule_id, 1)
