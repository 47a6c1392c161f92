"""Backup and restore as docs/operations.md has them: a cold copy goes on elsewhere where the original stopped."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway.identity.issuer import issue
from placet import Placet, Refused
from tests.servers.stack import PLACET, RunningStack, running_stack, wait_for

pytestmark = [pytest.mark.stack, pytest.mark.broker]

OPTIONS = ("--partitions", "3", "--audit-head-seconds", "0.5")
READS = ("/executions", "/holds", "/audit", "/executions/march/events", "/executions/april/events")


@dataclass(frozen=True)
class Backup:
    """Copies of a stack that is gone, and what was known of it when it was stopped.

    Attributes:
        whole: the copy of its data directory.
        log: a copy of nothing but `kafka` and `keys`.
        cut: one of its log and keys without the records of the executions.
        forgotten: one of everything, without the records of the executions and what was counted and kept of them.
        agent: a token that was issued before; and so is the next.
        reviewer: a person's.
        views: what the doors answered.
        hold: the one that was open.
        heads: the audit heads that an auditor took along, and
        keys: the audit keys.
    """

    whole: Path
    log: Path
    cut: Path
    forgotten: Path
    agent: str
    reviewer: str
    views: dict[str, Any]
    hold: Any
    heads: Path
    keys: Path


def views(stack: RunningStack) -> dict[str, Any]:
    """What the owner is shown of everything."""
    url, headers = stack.status()["url"], {"Authorization": f"Bearer {stack.token}"}
    return {path: httpx.get(f"{url}/v1{path}", headers=headers).json().get("items") for path in READS}


def held(agent: Placet, execution_id: str) -> Any:
    """A payment that waits for a person."""
    agent.executions.start(execution_id, agent="billing", request=f"Pay the invoice of {execution_id}")
    call = agent.propose(execution_id, "send_money", {"to": "GB29", "amount": 98.7}, call_id="pay")
    assert call.status == "held"
    return call


def pay(url: str, agent: Placet, reviewer_token: str, execution_id: str, call: Any) -> None:
    """Approve a held payment, run it once, and report it."""
    with Placet(url, token=reviewer_token) as reviewer:
        reviewer.holds.decide(call.hold_id, "approve", digest=call.digest)
    released = agent.wait(execution_id, "pay", timeout_s=60)
    agent.consume(execution_id, "pay", released.digest, attempt_id="first")
    with pytest.raises(Refused) as second:
        agent.consume(execution_id, "pay", released.digest, attempt_id="second")
    assert second.value.code == "already_consumed"
    agent.result(execution_id, "pay", "first", "succeeded", output="paid")


def settled(stack: RunningStack) -> dict[str, Any]:
    """The views, once they show what was done, and an audit head is signed over it."""

    def types(found: dict[str, Any], name: str) -> list[str]:
        return [event["type"] for event in found[f"/executions/{name}/events"] or ()]

    wait_for(
        lambda: views(stack),
        lambda found: "ToolCallSucceeded" in types(found, "march") and "HoldOpened" in types(found, "april"),
    )
    wait_for(lambda: (stack.data_dir / "audit" / "heads" / "default.jsonl").exists(), bool)
    # Once more: the first of those reads may have been before what the last of them shows.
    return views(stack)


def counted(stack: RunningStack) -> Any:
    """What trust has counted of the agent."""
    url, headers = stack.status()["url"], {"Authorization": f"Bearer {stack.token}"}
    found = httpx.get(f"{url}/v1/agents/billing/trust", headers=headers)
    return found.status_code == 200 and found.json()["tools"]


@pytest.fixture(scope="module")
def backup(tmp_path_factory: pytest.TempPathFactory) -> Backup:
    directory = tmp_path_factory.mktemp("backup")
    names = ("original", "whole", "log", "cut", "forgotten")
    original, whole, log, cut, forgotten = (directory / name for name in names)
    with running_stack(original, *OPTIONS) as stack:
        keys, url = original / "keys", stack.status()["url"]
        bot = issue(keys, "bot", ["agent"], "default", "default", "billing")
        anna = issue(keys, "anna", ["reviewer"], "default", "default")
        with Placet(url, token=bot, agent="billing") as agent:
            pay(url, agent, anna, "march", held(agent, "march"))
            hold = held(agent, "april")
        found = settled(stack)
        wait_for(lambda: counted(stack), bool)
        shutil.copy(original / "audit" / "heads" / "default.jsonl", directory / "heads.jsonl")
    log.mkdir()
    subprocess.run(["cp", "-a", str(original), str(whole)], check=True)
    subprocess.run(["cp", "-a", str(original / "kafka"), str(original / "keys"), str(log)], check=True)
    subprocess.run(["cp", "-a", str(log), str(cut)], check=True)
    for partition in list(cut.rglob("placet.executions-*")):
        shutil.rmtree(partition)
    subprocess.run(["cp", "-a", str(original), str(forgotten)], check=True)
    for topic in ("executions", "trust", "snapshots"):
        for partition in list(forgotten.rglob(f"placet.{topic}-*")):
            shutil.rmtree(partition)
    shutil.copy(original / "keys" / "audit.json", directory / "audit.json")
    shutil.rmtree(original)
    return Backup(
        whole,
        log,
        cut,
        forgotten,
        bot,
        anna,
        found,
        hold,
        directory / "heads.jsonl",
        directory / "audit.json",
    )


def placet(stack: RunningStack, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command of somebody who is the owner at the restored stack."""
    environment = {**os.environ, "PLACET_URL": stack.status()["url"], "PLACET_TOKEN": stack.token}
    return subprocess.run(
        [PLACET, *arguments], env=environment, capture_output=True, text=True, timeout=60, check=False
    )


def verify(stack: RunningStack, backup: Backup, *more: str) -> subprocess.CompletedProcess[str]:
    """Fetch the trail of a restored stack and verify it."""
    trail = str(backup.heads.with_name(f"{stack.data_dir.name}-trail"))
    fetched = placet(stack, "audit", "fetch", "--out", trail)
    assert fetched.returncode == 0, fetched.stderr
    return placet(stack, "audit", "verify", trail, "--key", str(backup.keys), *more)


def test_cold_copy_comes_up_elsewhere_with_its_hold_open_its_views_equal_and_its_proofs_good(
    backup: Backup, tmp_path: Path
) -> None:
    with running_stack(backup.whole, *OPTIONS) as stack:
        assert views(stack) == backup.views
        url = stack.status()["url"]
        with Placet(url, token=backup.agent, agent="billing") as agent:
            pay(url, agent, backup.reviewer, "april", backup.hold)
            assert agent.call("april", "pay").status == "succeeded"
        settled(stack)

        into = f"sqlite:///{tmp_path}/again.sqlite"
        again = stack.placet("replay", "--into", into, "--processes", "1", "--json")
        assert json.loads(again.stdout)["equal"] is True, again.stdout + again.stderr
        proved = verify(stack, backup, "--head", str(backup.heads))
        assert proved.returncode == 0, proved.stdout + proved.stderr
        checked = stack.placet("audit-log", "--json")
        assert json.loads(checked.stdout)["violations"] == []


def test_copy_of_log_and_keys_alone_has_the_same_views_and_the_hold_open(backup: Backup) -> None:
    with running_stack(backup.log, *OPTIONS) as stack:
        wait_for(lambda: views(stack), lambda found: found == backup.views)
        url = stack.status()["url"]
        with Placet(url, token=backup.agent, agent="billing") as agent:
            pay(url, agent, backup.reviewer, "april", backup.hold)
        settled(stack)
        proved = verify(stack, backup)
        assert proved.returncode == 0, proved.stdout + proved.stderr
        # Heads have begun anew, which is why they belong to a backup.
        against_kept = verify(stack, backup, "--head", str(backup.heads))
        assert against_kept.returncode == 1
        assert "the head kept elsewhere" in against_kept.stdout


def test_copy_whose_facts_are_shorter_than_what_was_counted_of_them_is_not_decided_anew(
    backup: Backup,
) -> None:
    """The commands are whole, and without the facts each of them would look as if nobody had decided it."""
    stack = RunningStack(backup.cut)
    try:
        refused = stack.placet("up", "--port", "0", "--detach", *OPTIONS)
    finally:
        stack.down()
    assert refused.returncode == 3, refused.stdout + refused.stderr
    assert "was truncated or recreated" in " ".join((refused.stdout + refused.stderr).split())


def test_copy_with_shorter_facts_and_without_what_was_counted_of_them_is_told_by_its_views_and_by_its_heads(
    backup: Backup,
) -> None:
    stack = RunningStack(backup.forgotten)

    def refused() -> str:
        try:
            done = stack.placet("up", "--port", "0", "--detach", *OPTIONS)
        finally:
            stack.down()
        assert done.returncode == 3, done.stdout + done.stderr
        return " ".join((done.stdout + done.stderr).split())

    logs = backup.forgotten / "logs"
    decided = (logs / "decider.log").read_bytes()
    assert "but the views have read up to" in refused()
    for file in backup.forgotten.glob("views.sqlite*"):
        file.unlink()
    assert "but head" in refused()
    assert (logs / "decider.log").read_bytes() == decided, "no decider was started"

    # What docs/operations.md says of a log that was restored to an earlier moment works in a copy, too.
    (backup.forgotten / "audit" / "heads").rename(backup.forgotten / "heads kept elsewhere")
    replayed = stack.placet("replay", "--force", "--processes", "1", "--json")
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr
