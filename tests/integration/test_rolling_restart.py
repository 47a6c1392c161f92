"""A rolling restart as docs/operations.md describes it: clients that ask again lose no call and run none twice."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from ops.config import DataDir
from tests.integration.doors import Tenant
from tests.integration.frozen import until_well
from tests.integration.rolling import Clients, waiting_for_people
from tests.integration.second_gateway import second_gateway
from tests.integration.site import Site
from tests.integration.test_kills import second_decider
from tests.servers.stack import wait_for
from vitals.heartbeat import READY
from vitals.heartbeat_file import read_heartbeat

pytestmark = [pytest.mark.stack, pytest.mark.broker]


def ready(site: Site, name: str, process: subprocess.Popen[bytes]) -> bool:
    """Whether a process of a role says so of itself."""
    found = read_heartbeat(DataDir(site.stack.data_dir).status(name))
    return found is not None and found[0].pid == process.pid and found[0].state == READY


@contextmanager
def other_decider(site: Site, log: Path) -> Iterator[None]:
    """A second decider, from when it is ready; in the end it is stopped by SIGTERM."""
    process = second_decider(site, log)
    try:
        wait_for(lambda: ready(site, "decider-2", process), bool)
        yield
    finally:
        process.terminate()
        assert process.wait(30) == 0, log.read_text(encoding="utf-8")[-2000:]


def restart(site: Site, clients: Clients, name: str) -> None:
    """Stop one by SIGTERM, wait until the next of its name is ready, and until clients have got on with it."""
    before = site.stack.pid(name)
    os.kill(before, signal.SIGTERM)
    wait_for(lambda: site.stack.components()[name]["pid"], lambda pid: pid not in (None, before))
    site.stack.wait_ready()
    wait_for(clients.made_progress(), bool)


def test_rolling_restart_shows_clients_no_error_but_the_documented_ones_and_loses_or_doubles_no_call(
    site: Site, tenant: Tenant, tmp_path: Path
) -> None:
    with ExitStack() as running:
        running.enter_context(other_decider(site, tmp_path / "decider-2.log"))
        (tmp_path / "second").mkdir()
        second = ExitStack()
        running.enter_context(second)
        urls = [site.url, second.enter_context(second_gateway(site, tmp_path / "second"))]
        with waiting_for_people(tenant, site.url) as found, Clients(tenant, urls) as clients:
            wait_for(clients.made_progress(), bool)
            for name in ("decider", "gateway"):
                restart(site, clients, name)
            # The balancer learns of it only afterwards.
            second.close()
            (tmp_path / "third").mkdir()
            urls[1] = running.enter_context(second_gateway(site, tmp_path / "third"))
            wait_for(clients.made_progress(), bool)

    told = clients.told
    assert told.wrong == []
    assert found == {"paid": "paid 5", "answer": "GB29"}
    assert len(set(told.done)) == len(told.done) > 20
    for execution_id, call_id in told.done:
        assert ran_once(tenant, execution_id, call_id), (execution_id, tenant.events(execution_id))
    until_well(site)


def ran_once(tenant: Tenant, execution_id: str, call_id: str) -> bool:
    """Whether a call was consumed once and succeeded, in an execution that is complete."""
    events = wait_for(lambda: tenant.events(execution_id), lambda found: "ExecutionCompleted" in found)
    once = events.count("GrantConsumed") == events.count("ToolCallSucceeded") == 1
    return once and tenant.call(execution_id, call_id)["status"] == "succeeded"
