"""Consumers over kill -9: of the consumer, of the gateway and of Kafka. No event is lost, and a repeat has its id."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from placet import consume
from tests.integration.site import Site
from tests.integration.test_kills import fresh, kill
from tests.servers.stack import wait_for

pytestmark = [pytest.mark.stack, pytest.mark.broker]

RUNS, KILLS = 12, 5


def worked(site: Site, runs: int = RUNS) -> None:
    """Runs with a released call each: no hold stays open in the installation that other tests share."""
    with site.agent() as agent:
        for _ in range(runs):
            execution_id = fresh("consumed")
            agent.executions.start(execution_id, agent="bot")
            agent.propose(execution_id, "read_file", {"path": "a.txt"})


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


@contextmanager
def consuming(site: Site, directory: Path, bootstrap_servers: str) -> Iterator[None]:
    """The program, until the end of the block, where it is killed with signal 9."""
    program = subprocess.Popen(
        [
            *(sys.executable, "-m", "tests.integration.consuming_program", site.url),
            *(str(directory / "position.json"), str(directory / "ids"), bootstrap_servers),
            str(site.stack.data_dir),
        ],
        env={**os.environ, "PLACET_TOKEN": site.reviewer_token},
    )
    try:
        yield
        assert program.poll() is None, "the consumer has ended by itself"
    finally:
        program.kill()
        program.wait()


@pytest.mark.parametrize("source", ["gateway", "kafka"])
def test_consumer_that_is_killed_in_the_middle_goes_on_and_loses_nothing(
    site: Site, tmp_path: Path, source: str
) -> None:
    bootstrap_servers = site.stack.status()["bootstrap_servers"] if source == "kafka" else ""
    ids = tmp_path / "ids"
    for _ in range(KILLS):
        worked(site)
        enough = len(lines_of(ids)) + random.randint(1, 2 * RUNS)
        with consuming(site, tmp_path, bootstrap_servers):
            wait_for(lambda: len(lines_of(ids)), enough.__le__)
    expected = {event.id for event in consume(site.url, token=site.reviewer_token, follow=False)}
    assert len(expected) > KILLS * RUNS
    with consuming(site, tmp_path, bootstrap_servers):
        wait_for(lambda: set(lines_of(ids)), lambda found: expected <= found)
    print(f"{len(lines_of(ids))} deliveries of {len(set(lines_of(ids)))} events over {KILLS} kills")


@pytest.mark.parametrize("component", ["gateway", "kafka", "decider"])
def test_consumer_over_the_kill_of_a_component_goes_on_without_loss_or_repeat(
    site: Site, tmp_path: Path, component: str
) -> None:
    ids = tmp_path / "ids"
    with consuming(site, tmp_path, ""):
        worked(site)
        wait_for(lambda: len(lines_of(ids)), lambda count: count > RUNS)
        kill(site, component)
        worked(site)
        expected = [event.id for event in consume(site.url, token=site.reviewer_token, follow=False)]
        wait_for(lambda: len(lines_of(ids)), lambda count: count >= len(expected))
    assert sorted(lines_of(ids)) == sorted(expected)
