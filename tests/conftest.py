"""Fixtures of every room: a seed for the run, a Kafka, a broker of one's own, a PostgreSQL, a document's blocks."""

from __future__ import annotations

import gc
import os
import random
import secrets
import signal
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

import hypothesis
import pytest

from ops.kafka.broker import Broker, BrokerConfig
from ops.topics import ensure_topics
from schemas.topics import Topics
from tests.clients.traffic import _answers_are_documented, watch_answers
from tests.pages import Block, blocks_of
from tests.servers.kafka import find_kafka
from tests.servers.postgres import running_postgres
from tests.servers.sharing import ByServers

# Processes that share the tests of one run (pytest-xdist) inherit its seed.
SEED = int(
    os.environ.get("PLACET_SEED") or os.environ.setdefault("PLACET_RUN_SEED", str(secrets.randbelow(2**32)))
)
# pytest-xdist gives its processes a width, by which the commands would lay out their tables.
os.environ.pop("COLUMNS", None)
TEST_PARTITIONS = 4
# What `-m` leaves out of this run.
LEFT_OUT = pytest.StashKey[list[pytest.Item]]()
# Who takes one of these needs its server: a test without the mark would start it among those that need none.
SERVERS = {"kafka": "broker", "broker": "broker", "postgres_url": "postgres", "doors": "stack"}
__all__ = ["_answers_are_documented"]


def pytest_report_header() -> str:
    """The seed that makes this run happen again."""
    return f"PLACET_SEED={SEED}"


class FailuresAtOnce:
    """Prints a failure when it happens, so that a run that is cut, or crashes, has told it."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        if report.failed and terminal is not None:
            terminal.write_line(f"\nFAILED NOW {report.nodeid} ({report.when})\n{report.longreprtext}")


def pytest_configure(config: pytest.Config) -> None:
    """Let hypothesis fail by assertion, not by this machine being busy."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        config.pluginmanager.register(FailuresAtOnce(config))
    # Nothing of a collection becomes garbage, and going through it again and again takes a fifth of its time.
    gc.disable()
    hypothesis.settings.register_profile("placet", deadline=None, print_blob=True)
    hypothesis.settings.load_profile("placet")
    watch_answers()
    # A shell has what runs in its background ignore this signal, and every process of a test would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByServers | None:
    """Let tests that share servers run in one process, with `--dist loadscope`."""
    return ByServers(config, log) if config.option.dist == "loadscope" else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark who takes a server; fast ones first; and hypothesis draws from the run's seed unless it was given one."""
    for item in items:
        _mark_servers(item)
    items.sort(key=_cost)
    if getattr(config.option, "hypothesis_seed", None) is None:
        hypothesis.core.global_force_seed = SEED  # type: ignore[assignment]


def _mark_servers(item: pytest.Item) -> None:
    for fixture in SERVERS.keys() & set(getattr(item, "fixturenames", ())):
        if item.get_closest_marker(SERVERS[fixture]) is None:
            item.add_marker(SERVERS[fixture])


def _cost(item: pytest.Item) -> int:
    """How much has to be running for a test; the sort is stable, so modules stay together."""
    costly = ("postgres", "broker", "stack")
    return max((rank for rank, mark in enumerate(costly, 1) if item.get_closest_marker(mark)), default=0)


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    """Keep them: a house rule is about tests that this run does not have."""
    for item in items:
        item.config.stash.setdefault(LEFT_OUT, []).append(item)


def pytest_collection_finish() -> None:
    """Leave what was collected out of every collection of garbage, of which this would be the first."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def seed() -> int:
    """The run's seed; derive a test's own generators from it."""
    return SEED


@pytest.fixture(autouse=True)
def _seeded() -> None:
    random.seed(SEED)


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Bootstrap servers of a Kafka shared by the run; no topic of the product exists on it."""
    with find_kafka(tmp_path_factory.mktemp("kafka")) as bootstrap_servers:
        yield bootstrap_servers


@pytest.fixture
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """An embedded broker of the test's own: to kill, pause, resume and restart."""
    own = Broker(BrokerConfig(tmp_path_factory.mktemp("broker"), access=None))
    own.start()
    try:
        yield own
    finally:
        own.kill()


@pytest.fixture
def topic_prefix() -> str:
    """A prefix that no other test uses: a whole log of one's own on the shared Kafka."""
    return f"t{uuid.uuid4().hex[:10]}"


@pytest.fixture
async def topics(kafka: str, topic_prefix: str) -> Topics:
    """A fresh, whole set of the product's topics on the shared Kafka: names of its own, 4 partitions."""
    fresh = Topics(prefix=topic_prefix)
    await ensure_topics(kafka, topics=fresh, partitions=TEST_PARTITIONS)
    return fresh


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """URL of a PostgreSQL started for the run, empty."""
    with running_postgres() as url:
        yield url


@pytest.fixture
def page_blocks(request: pytest.FixtureRequest) -> list[Block]:
    """The blocks of the documents that name this test."""
    return blocks_of(request.path, request.function.__name__)
