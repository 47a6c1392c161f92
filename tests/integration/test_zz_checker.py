"""Last in this package: everything that the kills and the abuse left in the log, before the independent checker."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ops.checker import check, read_log
from schemas.event_signatures import load_signatures
from tests.integration.doors import site_log
from tests.integration.site import Site

# What test_case_32 forged is told, and is all that is wrong with the log.
FORGED = "no decider signed"
pytestmark = [pytest.mark.stack, pytest.mark.broker]


async def test_checker_finds_no_violation_after_kills_and_abuse(site: Site) -> None:
    async with site_log(site) as log:
        records = await read_log(log.log)
        signatures = load_signatures({"keys_dir": str(site.stack.data_dir / "keys")})
        violations = check(records, topics=log.log.topics, signatures=signatures)
    assert sum(map(len, records.values())) > 0
    assert [str(violation) for violation in violations if FORGED not in violation.what] == []


def test_audit_log_of_a_running_stack_finds_no_violation_and_tells_a_client_that_dreamt(
    site: Site, tmp_path: Path
) -> None:
    clean = site.stack.placet("audit-log", "--json")
    where = {"tenant": "default", "project": "default", "execution_id": "never", "call_id": "pay"}
    dreamt = {"at": 1, "client": "bot", "op": "effect", **where, "attempt_id": "a", "digest": "0" * 64}
    history = tmp_path / "history.jsonl"
    history.write_text(json.dumps(dreamt) + "\n")
    told = site.stack.placet("audit-log", "--history", str(history))

    answer = json.loads(clean.stdout)
    assert answer["records"] > 0
    assert [found for found in answer["violations"] if FORGED not in found["what"]] == []
    assert clean.returncode == int(bool(answer["violations"])), clean.stderr
    assert told.returncode == 1, told.stderr
    assert "I1 bot at 1: an effect without a consumed release" in told.stdout
    assert "reading the log" not in told.stderr, "a progress bar is for a terminal"
