"""A backtest of a real run: every verdict comes out as recorded, and what people rejected must not pass unnamed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from ops.backtest import command
from tests.integration.doors import Tenant, new_tenant
from tests.integration.site import PAY, READ, Site
from tests.servers.stack import run_placet, wait_for

pytestmark = [pytest.mark.stack, pytest.mark.broker]

# A call of high risk is never remembered, and what destroys is of high risk.
MILD_PAY = {**PAY, "annotations": {"destructiveHint": False}}
NOTE = {
    "name": "note",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
    "annotations": {"destructiveHint": False, "idempotentHint": True, "openWorldHint": False},
}
POLICY = """
policy: own
rules:
  - {id: dear, match: {tools: [send_money]}, when: "args.amount > 1000.0", then: deny}
  - {id: payments, match: {tools: [send_money]}, then: hold, hold: {remember: {four_eyes: false}}}
  - {id: notes, match: {tools: [note]}, then: hold}
  - {id: reads, match: {annotations: {readOnlyHint: true}}, then: allow}
adaptive: {sample_rate: 0.3, floor: {low: 0.3, medium: 0.3, high: 0.3}}
"""
LOOSE = """
policy: own
rules:
  - {id: payments, match: {tools: [send_money]}, then: allow}
  - {id: reads, match: {annotations: {readOnlyHint: true}}, then: hold}
"""
REJECTED = "<script>alert('rejected')</script>"


@pytest.fixture(scope="module")
def tenant(site: Site) -> Iterator[Tenant]:
    """A tenant with a history of every kind of decision."""
    with new_tenant(site, POLICY, MILD_PAY, READ, NOTE) as found:
        run = found.execution("history")
        found.propose(run, "read_file", {}, "read")
        found.propose(run, "unheard_of", {}, "unknown")
        found.propose(run, "send_money", {"to": "GB29", "amount": 5000.5}, "denied")
        for call_id, decision, more in (
            ("approved", "approve", {}),
            ("rejected", "reject", {"feedback": REJECTED}),
            ("edited", "edit", {"edited_arguments": {"to": "GB29", "amount": 4.0}}),
            ("remembered", "approve", {"scope": "rule", "remember": {"uses": 5}}),
        ):
            call = found.propose(run, "send_money", {"to": "GB29", "amount": 5.0}, call_id)
            answer = found.decide(call, decision, **more)
            assert answer.status_code == 200, answer.text
        for number in range(20):
            note = noted(found, run, f"note{number}")
            if note["status"] == "held":
                assert found.decide(note).status_code == 200
            if number == 1:
                until_trust_rests_on_one_approval(found, run)
        found.publish(POLICY.replace("> 1000.0", "> 900.0"))
        call = found.call(run, "approved")
        assert found.consume(run, call["digest"], "approved").status_code == 200
        found.propose(run, "send_money", {"to": "GB29", "amount": 5.0}, "after")
        yield found


def noted(tenant: Tenant, run: str, call_id: str) -> Any:
    return tenant.propose(run, "note", {"text": "hello"}, call_id)


def until_trust_rests_on_one_approval(tenant: Tenant, run: str) -> None:
    """Propose notes until enough of them have been judged by trust in one approval, however slow the trust role is.

    The text of the first note was new, so the second one alone is of the class of those that follow. Nobody decides
    these: such trust is too little in force, and enough for a laxer function.
    """
    judged: list[Any] = []

    def enough() -> int:
        judged.append(noted(tenant, run, f"early{len(judged)}")["verdict"])
        return sum(1 for verdict in judged if (verdict["trust"] or {}).get("raising"))

    # Three in ten are drawn as samples, which no function releases.
    wait_for(enough, lambda count: count >= 10)


def backtested(
    tenant: Tenant, tmp_path: Path, policy: str, *more: str, as_json: bool = True
) -> tuple[int, Any, str]:
    """Exit code, answer and what was said of a backtest of a policy."""
    file = tmp_path / "policy.yaml"
    file.write_text(policy)
    where = ("--data-dir", str(tenant.site.stack.data_dir), "--tenant", tenant.name)
    done = run_placet("policy", "backtest", str(file), *where, *more, *(["--json"] if as_json else []))
    return done.returncode, json.loads(done.stdout) if as_json and done.stdout else done.stdout, done.stderr


def test_policy_in_force_gives_every_recorded_verdict_again(tenant: Tenant, tmp_path: Path) -> None:
    code, answer, said = backtested(tenant, tmp_path, POLICY.replace("> 1000.0", "> 900.0"))

    assert code == 0, said
    assert (answer["not_reproduced"], answer["not_judged"]) == ([], [])
    assert answer["judged"] == answer["reproduced"] >= 28
    assert (answer["project"], answer["changed"], answer["rejected_would_pass"]) == ("*", [], [])


def test_several_processes_find_what_one_finds(
    tenant: Tenant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "RECORDS_WORTH_IT", 1)
    file = tmp_path / "policy.yaml"
    file.write_text(LOOSE)
    app = typer.Typer()
    app.command()(command.backtest_command)
    where = ("--data-dir", str(tenant.site.stack.data_dir), "--tenant", tenant.name, "--json")
    answers = []
    for processes in ("1", "3"):
        done = CliRunner().invoke(app, [str(file), *where, "--processes", processes])
        assert done.exit_code == 4, done.output
        answers.append(json.loads(done.stdout))
    for answer in answers:
        # Other tenants' records come in the meantime.
        for changing in ("seconds", "records", "events", "refused"):
            del answer[changing]
    assert answers[0] == answers[1]
    assert len(answers[0]["rejected_would_pass"]) == 2


def test_function_in_force_gives_every_recorded_score_again(tenant: Tenant, tmp_path: Path) -> None:
    in_force = POLICY.replace("> 1000.0", "> 900.0")

    _, same, _ = backtested(tenant, tmp_path, in_force, "--trust-quantile", "0.05")
    _, lax, _ = backtested(tenant, tmp_path, in_force, "--trust-quantile", "0.9")
    _, told, _ = backtested(tenant, tmp_path, in_force, "--trust-window", "365", as_json=False)

    assert same["trust_function"] == {"quantile": 0.05, "half_life_days": 30, "window_days": 180}
    assert same["rescored"] >= 20
    assert (same["rescored_otherwise"], same["newly_asked"]) == (0, 0)
    assert lax["newly_allowed"] > same["newly_allowed"]
    assert "a half-life of 30 days and a window of 365 days" in " ".join(told.split())


def test_what_people_rejected_has_to_be_named_one_by_one(tenant: Tenant, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    code, answer, _ = backtested(tenant, tmp_path, LOOSE, "--html", str(page))

    assert code == 4
    assert answer["reproduced"] == answer["judged"]
    asked = {row["call_id"] for row in answer["changed"] if row["change"] == "newly_asked"}
    assert ("read" in asked, len(asked)) == (True, answer["newly_asked"])
    names = {(row["call_id"], row["word"]) for row in answer["rejected_would_pass"]}
    assert names == {("rejected", "rejected"), ("edited", "edited")}
    text = page.read_text("utf-8")
    assert "&lt;script&gt;alert(&#39;rejected&#39;)" in text
    assert "<script" not in text

    named = [part for row in answer["rejected_would_pass"] for part in ("--allow-named", row["name"])]
    assert backtested(tenant, tmp_path, LOOSE, *named, as_json=False)[0] == 0
    code, _, said = backtested(tenant, tmp_path, LOOSE, "--allow-named", "nobody", as_json=False)
    assert (code, "--allow-named nobody: no call of this name" in said) == (4, True)
    code, _, said = backtested(tenant, tmp_path, LOOSE, "--until", "2020-01-01T00:00:00Z")
    assert (code, "nothing is known of this policy" in said) == (2, True)


@pytest.mark.parametrize(
    ("policy", "more", "said"),
    [
        (
            "policy: own\nrules: [{id: a, match: {tools: [x]}, when: 'args.(', then: allow}]\n",
            (),
            "rules[0].when",
        ),
        (LOOSE, ("--since", "yesterday"), "--since yesterday"),
        (LOOSE, ("--since", "2999-01-01T00:00:00Z"), "is in the future"),
        (LOOSE, ("--since", "2026-01-02T00:00:00Z", "--until", "2026-01-01T00:00:00Z"), "is not before"),
        (LOOSE, ("--project", "nobodys"), "no verdict was judged"),
        (LOOSE, ("--html", "/nowhere/report.html"), "cannot be written"),
    ],
)
def test_what_cannot_be_backtested_is_refused(
    tenant: Tenant, tmp_path: Path, policy: str, more: tuple[str, ...], said: str
) -> None:
    code, _, told = backtested(tenant, tmp_path, policy, *more)

    assert (code, said in told) == (2, True), told


def test_publication_waits_for_a_backtest_in_which_nothing_rejected_passes(
    tenant: Tenant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLACET_URL", tenant.site.url)
    monkeypatch.setenv("PLACET_TOKEN", tenant.admin.token)
    history = ("--backtest", "--data-dir", str(tenant.site.stack.data_dir))
    loose, strict = tmp_path / "loose.yaml", tmp_path / "strict.yaml"
    loose.write_text(LOOSE)
    strict.write_text("policy: own\nrules:\n  - {id: all, match: {tools: ['*']}, then: hold}\n")

    refused = run_placet("policy", "publish", str(loose), *history, "--json")
    assert (refused.returncode, refused.stdout) == (4, ""), refused.stderr
    assert "nothing was published" in refused.stderr
    published = run_placet("policy", "publish", str(strict), *history, "--json")
    assert published.returncode == 0, published.stderr
    assert json.loads(published.stdout)["version"] == 3
    named = ("--allow-named", "default/history/rejected", "--allow-named", "default/history/edited")
    assert run_placet("policy", "publish", str(loose), *history, *named).returncode == 0
    alone = run_placet("policy", "publish", str(loose), "--since", "2026-01-01T00:00:00Z")
    assert (alone.returncode, "belong to --backtest" in alone.stderr) == (2, True)
    assert "--backtest first replays" in run_placet("policy", "publish", str(strict)).stderr
