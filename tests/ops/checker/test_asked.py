"""An event held against the command that it names: another value, or one that nobody asked for, is told."""

from __future__ import annotations

import hashlib

import pytest

from log.places import TopicPartition
from ops.checker.asked import Asked
from ops.checker.facts import Fact
from ops.checker.scratch import Scratch
from ops.checker.violations import Violation
from schemas import codec
from schemas import commands as k
from schemas.events import calls as c
from schemas.message import Message
from schemas.record import RawRecord

KEY = b"acme/main/x"
EVENTS, COMMANDS = TopicPartition("placet.executions", 0), TopicPartition("placet.commands", 0)
PROPOSAL = k.ProposeToolCall(call_id="c", tool="pay", arguments="{}", attempt_id="a")
CONSUMPTION = k.ConsumeGrant(call_id="c", digest="d", attempt_id="a")
CONSUMED = c.GrantConsumed(
    call_id="c", revision=1, digest="d", attempt_id="a", run_deadline_at_ms=1, by="bot"
)


def violations_of(command: Message, event: Message) -> list[str]:
    """What is said of an event that names a command."""
    value = codec.encode(command)
    raw = RawRecord(COMMANDS.partition, 7, 1, KEY, value, (("ce_id", b"id"),))
    digest = hashlib.sha256(value).hexdigest()[:32]
    fact = Fact(
        EVENTS, 3, KEY.decode(), type(event).__name__, event, "e", 1, 0, 1, "id", digest, 7, "acme", True
    )
    scratch, found = Scratch(), list[Violation]()
    asked = Asked(COMMANDS, scratch)
    asked.read([raw])
    asked.check(fact, found.append)
    scratch.close()
    return [each.what for each in found]


@pytest.mark.parametrize("command", [PROPOSAL, CONSUMPTION])
def test_consumption_that_was_asked_for_is_well(command: Message) -> None:
    assert violations_of(command, CONSUMED) == []


@pytest.mark.parametrize(
    ("command", "wrong"),
    [
        (PROPOSAL.model_copy(update={"attempt_id": None}), "attempt_id"),
        (PROPOSAL.model_copy(update={"attempt_id": "other"}), "attempt_id"),
        (PROPOSAL.model_copy(update={"call_id": "other"}), "call_id"),
        (CONSUMPTION.model_copy(update={"attempt_id": "other"}), "attempt_id"),
        (CONSUMPTION.model_copy(update={"digest": "other"}), "digest"),
    ],
)
def test_consumption_of_something_else_than_was_asked_is_told(command: Message, wrong: str) -> None:
    assert violations_of(command, CONSUMED) == [f"decided with {wrong} other than requested"]


@pytest.mark.parametrize(
    "command",
    [
        k.ReportResult(call_id="c", attempt_id="a", outcome="failed"),
        k.ResumeExecution(),
        k.ExpireDue(subject_id="c", deadline_at_ms=1, attempt=1),
    ],
)
def test_consumption_that_no_such_command_asks_for_is_told(command: Message) -> None:
    assert violations_of(command, CONSUMED) == [
        f"a {type(command).__name__} does not request a GrantConsumed"
    ]
