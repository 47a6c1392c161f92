"""The `placet` command of a reviewer, against a running stack."""

from __future__ import annotations

import json
import os
import subprocess
import uuid

import pytest

from tests.integration.site import Site
from tests.servers.stack import PLACET

pytestmark = [pytest.mark.stack, pytest.mark.broker]


def reviewer(site: Site, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PLACET_URL": site.url, "PLACET_TOKEN": site.reviewer_token}
    return subprocess.run(
        [PLACET, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env=environment,
        stdin=subprocess.DEVNULL,
    )


def test_reviewer_finds_shows_and_approves_a_hold_and_sees_what_happened(site: Site) -> None:
    execution_id = f"terminal-{uuid.uuid4().hex[:8]}"
    with site.agent() as agent:
        agent.executions.start(execution_id, agent="bot")
        call = agent.propose(execution_id, "send_money", {"to": "GB29", "amount": 7.5}, call_id="pay")

        inbox = json.loads(reviewer(site, "inbox", "--json").stdout)
        shown = reviewer(site, "show", call.hold_id)
        unasked = reviewer(site, "approve", call.hold_id)
        approved = reviewer(site, "approve", call.hold_id, "--yes")
        late = reviewer(site, "reject", call.hold_id, "--feedback", "too late")

        assert call.hold_id in json.dumps(inbox)
        assert "GB29" in shown.stdout
        assert unasked.returncode == 2, "without a terminal an approval has to be meant"
        assert approved.returncode == 0, approved.stderr
        assert late.returncode == 1
        assert agent.call(execution_id, "pay").status == "released"

    listed = reviewer(site, "events", "--execution", execution_id, "--type", "DecisionRecorded", "--json")
    assert [json.loads(line)["data"]["by"] for line in listed.stdout.splitlines()] == ["rita"]
    told = reviewer(site, "events", "--execution", execution_id)
    assert "ToolCallReleased" in told.stdout
    state = json.loads(reviewer(site, "state", execution_id, "--at", "1", "--json").stdout)
    assert state["version"] == 1
