"""A nudge is the timer's and needs no proof; nothing else passes for one."""

from __future__ import annotations

import pytest

from schemas import codec
from schemas.actor import system_actor
from schemas.commands import ClaimHold, ExpireDue, StartExecution
from schemas.envelope import nudge
from schemas.ids import TIMER_IDS
from tests.schemas.test_envelope import (
    ANN,
    GATEWAY,
    KEY,
    assert_unbelievable,
    draft,
    raw_of,
    verifier,
    with_headers,
)


def test_read_of_a_nudge_is_the_timers() -> None:
    body = ExpireDue(subject_id="h", deadline_at_ms=5, attempt=0)
    command = verifier().read(raw_of(nudge(body, "n-1", KEY)))
    assert (command.body, command.actor) == (body, system_actor("acme", "default"))


def test_read_of_a_nudge_needs_no_header_but_its_id() -> None:
    body = ExpireDue(subject_id="h", deadline_at_ms=5, attempt=0)
    bare = nudge(body, "n-1", KEY)._replace(headers=(("ce_id", f"{TIMER_IDS}n-1".encode()),))
    command = verifier().read(raw_of(bare))
    assert (command.body, command.actor) == (body, system_actor("acme", "default"))


def test_read_of_a_nudge_under_another_type_is_not_believed() -> None:
    body = ExpireDue(subject_id="h", deadline_at_ms=5, attempt=0)
    assert_unbelievable(with_headers(nudge(body, "n-1", KEY), ce_type=b"placet.commands.ClaimHold"))


@pytest.mark.parametrize("value", [b"", b"\x00\x00\x00", b"\x01\x00\x00\x00\x12", b"\x00\xff\xff\xff\xff"])
def test_read_of_what_no_schema_names_is_no_nudge(value: bytes) -> None:
    bare = nudge(ExpireDue(subject_id="h", deadline_at_ms=5, attempt=0), "n-1", KEY)
    assert_unbelievable(with_headers(bare._replace(value=value), ce_type=None))


def test_read_of_another_command_dressed_as_a_nudge_is_not_believed() -> None:
    dressed = nudge(ExpireDue(subject_id="h", deadline_at_ms=5, attempt=0), "n-1", KEY)
    raw = raw_of(dressed._replace(value=codec.encode(ClaimHold(hold_id="h"))))
    assert_unbelievable(raw, "malformed")


@pytest.mark.parametrize("key", [b"", b"acme/policy", b"\xff/a/b", b"_log/0"])
def test_read_of_a_nudge_for_no_execution_is_unreadable(key: bytes) -> None:
    assert_unbelievable(
        raw_of(nudge(ExpireDue(subject_id="h", deadline_at_ms=5, attempt=0), "n", key)), "wrong_key"
    )


def test_read_of_an_admins_command_is_not_taken_for_the_timers() -> None:
    admin = ANN.model_copy(update={"roles": ("admin",)})
    body = StartExecution(agent="bot")
    assert verifier().read(raw_of(GATEWAY.sign([draft(actor=admin, body=body)])[0])).actor == admin


def test_read_of_the_timer_asking_for_more_is_unbelievable() -> None:
    timer = system_actor("acme", "default")
    assert_unbelievable(raw_of(GATEWAY.sign([draft(actor=timer)])[0]))


def test_case_29_nudge_under_an_id_that_another_may_use_is_not_believed() -> None:
    """Its trace would be the answer to that other one."""
    body = ExpireDue(subject_id="h", deadline_at_ms=5, attempt=0)
    assert_unbelievable(with_headers(nudge(body, "n-1", KEY), ce_id=b"c-1"))
