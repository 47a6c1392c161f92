"""A role's log: what a Kafka client says again and again is there once in a while, with how often it was last."""

from __future__ import annotations

import io
import logging

import pytest

from gateway.identity import authentication
from gateway.rest import well_known
from gateway.vault import access, reconciler
from log.kafka import follower
from vitals.logs import MESSAGES_KNOWN, REPEATED_AFTER_S, RepeatedMessageFilter, TokenlessFormatter

AWAY, NODE = "Unable connect to node with id %s: %s", "Connect call failed"


class _Log:
    """A handler as the roles have it, and a clock of its records."""

    def __init__(self) -> None:
        self._stream = io.StringIO()
        self._handler = logging.StreamHandler(self._stream)
        self._handler.setFormatter(TokenlessFormatter("%(message)s"))
        self.filter = RepeatedMessageFilter()
        self._handler.addFilter(self.filter)
        self.now = 1_000_000.0

    def say(
        self, message: str, *values: object, name: str = "aiokafka.client", level: int = logging.ERROR
    ) -> None:
        record = logging.LogRecord(name, level, "f", 1, message, values, None)
        record.created = self.now
        self._handler.handle(record)

    @property
    def lines(self) -> list[str]:
        return self._stream.getvalue().splitlines()


@pytest.fixture
def log() -> _Log:
    return _Log()


def test_client_that_says_the_same_many_times_is_heard_once_in_a_while_with_the_count(log: _Log) -> None:
    for _ in range(2400):
        log.say(AWAY, 1, NODE)
    log.say(AWAY, 2, NODE)
    log.now += REPEATED_AFTER_S
    log.say(AWAY, 1, NODE)
    log.say(AWAY, 1, NODE)
    log.now += REPEATED_AFTER_S
    log.say(AWAY, 2, NODE)
    first, other = (AWAY % (node, NODE) for node in (1, 2))
    assert log.lines == [first, other, f"{first} (and 2399 times more since it was last logged)", other]


def test_exporter_whose_collector_is_away_is_heard_once_in_a_while_whatever_it_counts(log: _Log) -> None:
    for number in range(50):
        log.say("Transient error %s, retrying in %fs.", NODE, number / 7, name="opentelemetry.exporter.otlp")
    assert len(log.lines) == 1


@pytest.mark.parametrize(
    "logger", [module.logger for module in (access, reconciler, authentication, well_known, follower)]
)
def test_what_every_failed_request_or_attempt_would_write_is_written_once_in_a_while(
    log: _Log, logger: logging.Logger
) -> None:
    for _ in range(553):
        log.say("the keys cannot be used: %s", "away", name=logger.name)
    log.now += REPEATED_AFTER_S
    log.say("the keys cannot be used: %s", "away", name=logger.name)
    once = "the keys cannot be used: away"
    assert log.lines == [once, f"{once} (and 552 times more since it was last logged)"]


def test_vault_is_heard_once_in_a_while_wherever_its_database_is_found_away(log: _Log) -> None:
    for why in ("no answer within 5 s", "its database does not answer", "OperationalError"):
        log.say("the vault cannot be used: %s", why, name=access.logger.name)
    assert log.lines == ["the vault cannot be used: no answer within 5 s"]


def test_only_the_first_line_of_a_message_begins_where_messages_begin(log: _Log) -> None:
    log.say("closed by %s:\n\tbefore it was answered\n2026-01-01 INFO x\n", "it")
    assert log.lines == ["closed by it:", "    \tbefore it was answered", "    2026-01-01 INFO x"]


def test_roles_own_sentences_are_all_written(log: _Log) -> None:
    for _ in range(3):
        log.say("a partition is lost", name="services.runtime.writer")
    assert len(log.lines) == 3


def test_clock_that_was_set_back_keeps_nothing_back(log: _Log) -> None:
    log.say(AWAY, 1, NODE)
    log.now -= 3600
    log.say(AWAY, 1, NODE)
    assert len(log.lines) == 2


def test_sentences_that_are_all_different_are_all_written_and_not_all_remembered(log: _Log) -> None:
    for node in range(MESSAGES_KNOWN + 1):
        log.say(AWAY, node, NODE)
    log.say(AWAY, 0, NODE)
    log.say(AWAY, MESSAGES_KNOWN, NODE)
    assert len(log.lines) == MESSAGES_KNOWN + 2


def test_what_is_said_below_a_warning_is_all_written_and_not_kept(log: _Log) -> None:
    for _ in range(3):
        log.say("Response %d: %s", 1, "x" * 100_000, level=logging.DEBUG)
    assert len(log.lines) == 3
    assert not log.filter.remembered
