"""A planted call on a running stack, by the commands that operators and reviewers use."""

from __future__ import annotations

import json
import os
import subprocess
from datetime import datetime, timedelta

import pytest

from tests.integration.doors import PROJECT, Tenant, fresh, new_tenant
from tests.integration.site import Site
from tests.servers.stack import PLACET, wait_for

pytestmark = [pytest.mark.stack, pytest.mark.broker]
NOTE = "the invoice is of 98.70"
PLANT = ("probe", "plant", "bot", "send_money", "--note", NOTE, "--wrong", "/amount", "--requester", "bot")


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def ran(tenant: Tenant, token: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A `placet` command of somebody with a token."""
    return subprocess.run(
        [PLACET, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PLACET_URL": tenant.site.url, "PLACET_TOKEN": token},
        stdin=subprocess.DEVNULL,
        check=False,
    )


def test_planted_call_is_asked_about_told_and_counted_and_never_runs(site: Site) -> None:
    with new_tenant(site) as tenant:
        olga, rita = tenant.token("olga", "operator"), tenant.token("rita", "reviewer")
        _, real = tenant.held()
        unknown = ran(tenant, olga, *PLANT[:2], "bob", *PLANT[3:])
        assert unknown.returncode == 1
        assert "invalid: agent: no agent bob has done anything in this project" in unknown.stderr
        wait_for(lambda: tenant.rita.get("/agents").json()["items"], bool)
        arguments = ("--arguments", '{"to": "GB29", "amount": 987.0}', "--request", "Pay the March invoice")
        done = ran(tenant, olga, *PLANT, *arguments, "--after", "0.5", "--json")
        assert done.returncode == 0, done.stderr
        planted = json.loads(done.stdout)
        run = tenant.bot.get(f"/executions/{planted['execution_id']}").json()
        waited = moment(planted["planted_at"]) - moment(run["started_at"])
        assert waited >= timedelta(seconds=0.5)

        inbox = ran(tenant, rita, "inbox", "--json").stdout
        assert {one["hold_id"] for one in json.loads(inbox)} == {planted["hold_id"], real["hold_id"]}
        waiting = inbox + ran(tenant, rita, "show", planted["hold_id"]).stdout
        assert NOTE not in waiting
        assert "planted" not in waiting
        assert ran(tenant, rita, *PLANT).returncode == 1
        assert ran(tenant, rita, "probe", "list").returncode == 1
        own = ran(tenant, olga, "approve", planted["hold_id"], "--yes")
        assert "it takes a person other than those who asked" in own.stderr

        told = ran(tenant, rita, "approve", planted["hold_id"], "--yes")
        assert "this call was planted, and never runs; not noticed: " + NOTE in told.stdout
        said = f"planted: by olga, and never runs; missed (rita: approve): {NOTE} (at /amount)"
        assert said in ran(tenant, rita, "show", planted["hold_id"]).stdout
        assert (
            "planted" in ran(tenant, rita, "show", f"{planted['execution_id']}/{planted['call_id']}").stdout
        )
        assert "planted" not in ran(tenant, rita, "show", real["hold_id"]).stdout
        call = tenant.call(planted["execution_id"], planted["call_id"])
        assert (call["status"], call["denied_because"]) == ("denied", "probe")
        refused = tenant.consume(
            planted["execution_id"], call["digest"], planted["call_id"], fresh("attempt")
        )
        assert refused.status_code == 409
        assert tenant.decide(real).status_code == 200
        here = ("--data-dir", str(tenant.site.stack.data_dir), "--tenant", tenant.name, "--as", "olga")
        fork = ("fork", planted["execution_id"], "--at", planted["call_id"], "--with", "approve", *here)
        branch = ran(tenant, olga, "--project", PROJECT, *fork)
        assert (branch.returncode, "was planted to see whether people notice" in branch.stderr) == (1, True)

        listed = json.loads(ran(tenant, olga, "probe", "list", "--json").stdout)
        assert [(one["hold_id"], one["result"]) for one in listed] == [(planted["hold_id"], "missed")]
        shown = wait_for(
            lambda: ran(tenant, olga, "reviewers").stdout, lambda text: "1 of 1 (2% to 100%)" in text
        )
        assert "rita" in shown
