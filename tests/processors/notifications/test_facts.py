"""Which facts tell what: the fold of a partition, and who asked to be told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from log.errors import LogChanged
from schemas.events.calls import (
    GrantConsumed,
    ToolCallCancelled,
    ToolCallFailed,
    ToolCallOutcomeUnknown,
    ToolCallSucceeded,
)
from schemas.events.executions import ExecutionCancelled, ExecutionCompleted, ExecutionFailed
from schemas.events.holds import DeadlineMoved
from schemas.message import Message
from schemas.term import NO_CLAIM
from services.processors.errors import OutboxUnusable, PositionLost
from services.processors.notifications.document import When
from services.processors.notifications.facts import Facts
from services.processors.notifications.fold import PartitionFold
from services.processors.notifications.notice import Notice, is_asked_for
from services.processors.notifications.outbox import NOTHING, Outbox, Position
from tests.processors.history import History
from tests.processors.notifications import holds as facts
from tests.schemas.samples import full


@pytest.fixture
def outbox(tmp_path: Path) -> Iterator[Outbox]:
    found = Outbox(tmp_path / "run" / "outbox.db")
    yield found
    found.close()


def fresh(quiet_through: int = NOTHING) -> Position:
    return Position(0, "topic", NOTHING, "", NO_CLAIM, quiet_through)


def notices_of(outbox: Outbox, log: History, known: Position | None = None) -> list[Notice]:
    """What a partition has to tell, read from where it was left; where it is left then is kept."""
    found: list[Notice] = []
    fold = PartitionFold(known or outbox.positions().get(0) or fresh(), Facts(outbox), found.append)
    with outbox.transaction():
        for raw in log.raws(fold.start):
            fold.apply(raw)
        outbox.put_position(fold.reached())
    return found


def types(found: list[Notice]) -> list[tuple[str, str]]:
    return [(notice.type, notice.hold_id) for notice in found]


def test_fold_hold_of_a_call_knows_tool_agent_and_risk(outbox: Outbox) -> None:
    log = facts.history()
    facts.hold_call(log, "h1", tool="wipe_disk", risk="medium")
    (notice,) = notices_of(outbox, log)
    hold = notice.hold
    assert (hold.tool, hold.agent, hold.risk, hold.kind) == (
        "wipe_disk",
        "billing-bot",
        "medium",
        "permission",
    )
    assert (notice.tenant, notice.project) == ("acme", "main")
    assert notice.source.offset == len(log.records) - 1


def test_fold_request_knows_the_agent_of_its_execution(outbox: Outbox) -> None:
    log = facts.history()
    key = facts.start(log, agent="mail-bot")
    log.add(key, facts.opened("h1", request_id="r1", kind="clarification", cause="request"))
    (notice,) = notices_of(outbox, log)
    assert (notice.hold.agent, notice.hold.tool, notice.hold.kind) == ("mail-bot", "", "clarification")


@pytest.mark.parametrize("on_timeout", ["deny", "halt", "default"])
def test_fold_expiry_closes_the_hold(outbox: Outbox, on_timeout: str) -> None:
    log = facts.history()
    key = facts.hold_call(log, "h1")
    log.add(key, facts.expired("h1", on_timeout))
    log.add(key, facts.delegated("h1"))
    assert types(notices_of(outbox, log)) == [("hold_opened", "h1"), ("hold_expired", "h1")]


def test_fold_escalation_leaves_it_open_and_asks_others(outbox: Outbox) -> None:
    log = facts.history()
    key = facts.hold_call(log, "h1")
    log.add(key, facts.escalated("h1", ("board",)))
    log.add(key, facts.delegated("h1", "bob"))
    found = notices_of(outbox, log)
    assert [notice.type for notice in found[1:]] == ["hold_escalated", "hold_delegated"]
    assert found[1].hold.roles == ("board",)
    assert found[2].hold.roles == ("finance", "board")
    assert found[2].detail == "bob"


def test_fold_reminder_tells_those_who_are_asked_by_then(outbox: Outbox) -> None:
    log = facts.history()
    key = facts.hold_call(log, "h1")
    log.add(key, facts.escalated("h1", ("board",)))
    log.add(key, facts.reminded("h1"))
    log.add(key, facts.decided("h1"))
    log.add(key, facts.reminded("h1"))
    found = notices_of(outbox, log)
    assert types(found)[2:] == [("hold_reminded", "h1"), ("hold_resolved", "h1")]
    assert found[2].hold.roles == ("finance", "board")


def test_fold_vote_that_does_not_resolve_tells_nobody(outbox: Outbox) -> None:
    log = facts.history()
    key = facts.hold_call(log, "h1")
    log.add(key, facts.decided("h1", resolves=False))
    log.add(key, facts.decided("h1", "edit"))
    found = notices_of(outbox, log)
    assert [(notice.type, notice.detail) for notice in found[1:]] == [("hold_resolved", "edit")]


@pytest.mark.parametrize("model", get_args(DeadlineMoved), ids=lambda model: model.__name__)
def test_fold_deadline_that_moved_is_that_of_the_notices_to_come(
    outbox: Outbox, model: type[Message]
) -> None:
    log = facts.history()
    key = facts.hold_call(log, "h1")
    moved = {"hold_id": "h1", "deadline_at_ms": facts.DEADLINE_MS + 5}
    log.add(key, full(model).model_copy(update=moved))
    log.add(key, facts.decided("h1"))
    (*_, last) = notices_of(outbox, log)
    assert (last.type, last.hold.deadline_at_ms) == ("hold_resolved", facts.DEADLINE_MS + 5)


def test_fold_cancelled_execution_leaves_nothing_behind(outbox: Outbox) -> None:
    log = facts.history()
    key = facts.hold_call(log, "h1")
    log.add(key, facts.cancelled("h1"))
    log.add(key, ToolCallCancelled(call_id="c1", reason="execution cancelled"))
    log.add(key, ExecutionCancelled(reason="", by="ann"))
    assert [notice.detail for notice in notices_of(outbox, log)] == ["", "cancelled"]
    assert outbox.hold(key, "h1") is None
    assert outbox.call(key, "c1") is None


def consumed(call_id: str) -> GrantConsumed:
    return GrantConsumed(
        call_id=call_id,
        revision=1,
        digest="d",
        attempt_id="a",
        run_deadline_at_ms=facts.DEADLINE_MS,
        by="bot",
    )


def running(log: History, **words: str) -> bytes:
    """The key of a run whose call c1 was held as h1, approved and consumed."""
    key = facts.hold_call(log, "h1", **words)
    log.add(key, facts.decided("h1"))
    log.add(key, consumed("c1"))
    return key


def lost(log: History, key: bytes, hold_id: str = "u1") -> None:
    """Nobody knows how the call c1 ended, and a person is asked."""
    log.add(key, ToolCallOutcomeUnknown(call_id="c1", attempt_id="a", reason="its lease ended"))
    log.add(key, facts.opened(hold_id, call_id="c1", cause="outcome_unknown", on_timeout="wait"))


def settled(log: History, key: bytes, hold_id: str = "u1") -> None:
    log.add(key, facts.decided(hold_id, "reject"))
    log.add(key, ToolCallFailed(call_id="c1", attempt_id="a", error="not paid", duration_ms=0, by="ann"))


def kept(outbox: Outbox, key: bytes) -> tuple[str, bool, bool]:
    return (
        outbox.agent_of(key),
        outbox.call(key, "c1") is not None,
        any(outbox.hold(key, hold_id) is not None for hold_id in ("h1", "u1")),
    )


ENDS = [
    ExecutionCompleted(result="1", by="bot"),
    ExecutionFailed(error="", by="bot"),
    ExecutionCancelled(reason="", by="ann"),
]


@pytest.mark.parametrize("end", ENDS, ids=lambda end: type(end).__name__)
def test_fold_unknown_outcome_outlives_its_execution_and_is_known_until_it_is_settled(
    outbox: Outbox, end: Message
) -> None:
    log = facts.history()
    key = running(log, tool="pay", risk="high")
    lost(log, key)
    log.add(key, end)
    notices_of(outbox, log)
    assert kept(outbox, key) == ("", True, True)
    settled(log, key)
    (notice,) = notices_of(outbox, log)
    assert (notice.type, notice.hold.cause, notice.hold.tool) == ("hold_resolved", "outcome_unknown", "pay")
    assert kept(outbox, key) == ("", False, False)


@pytest.mark.parametrize("end", ENDS, ids=lambda end: type(end).__name__)
def test_fold_outcome_that_becomes_unknown_after_the_end_is_told_with_all_that_is_filtered_by(
    outbox: Outbox, end: Message
) -> None:
    log = facts.history()
    key = running(log, tool="pay", risk="high")
    log.add(key, end)
    assert types(notices_of(outbox, log)) == [("hold_opened", "h1"), ("hold_resolved", "h1")]
    assert kept(outbox, key) == ("", True, False)
    lost(log, key)
    (notice,) = notices_of(outbox, log)
    hold = notice.hold
    assert (notice.type, hold.agent, hold.tool, hold.risk) == (
        "outcome_unknown",
        "billing-bot",
        "pay",
        "high",
    )
    settled(log, key)
    notices_of(outbox, log)
    assert kept(outbox, key) == ("", False, False)


def test_fold_call_that_reports_after_the_end_leaves_nothing_behind(outbox: Outbox) -> None:
    log = facts.history()
    key = running(log)
    log.add(key, ExecutionCompleted(result="1", by="bot"))
    log.add(key, ToolCallSucceeded(call_id="c1", attempt_id="a", output="1", duration_ms=1, by="bot"))
    notices_of(outbox, log)
    assert kept(outbox, key) == ("", False, False)


def test_outbox_keeps_what_asks_about_an_unknown_outcome_when_its_execution_ends(outbox: Outbox) -> None:
    log = facts.history()
    key = running(log)
    lost(log, key)
    log.add(key, ExecutionCompleted(result="1", by="bot"))
    for notice in notices_of(outbox, log):
        outbox.put_message("n/1", notice, 0)
    # The first hold is closed, and what asked about it is overtaken.
    assert outbox.drop_overtaken("n/1") == 1
    assert [queued.notice.type for queued in outbox.fresh("n/1", 9)] == ["hold_resolved", "outcome_unknown"]
    settled(log, key)
    notices_of(outbox, log)
    assert outbox.drop_overtaken("n/1") == 1


def test_fold_zombie_of_every_kind_tells_nobody_and_closes_nothing(outbox: Outbox) -> None:
    log = facts.history()
    deposed = log.term
    key = facts.hold_call(log, "h1")
    log.claim()
    facts.hold_call(log, "h2", term=deposed)
    for body in (facts.decided("h1"), facts.expired("h1"), facts.cancelled("h1"), facts.delegated("h1")):
        log.add(key, body, deposed)
    log.claim(after=deposed)
    log.add(key, ExecutionCancelled(reason="", by="zombie"), deposed)
    assert types(notices_of(outbox, log)) == [("hold_opened", "h1")]
    assert outbox.hold(key, "h1") is not None


def test_fold_before_any_claim_tells_nobody(outbox: Outbox) -> None:
    log = History(0, facts.history().rng)
    facts.hold_call(log, "h1")
    assert notices_of(outbox, log) == []


def test_fold_quiet_past_is_known_and_not_told(outbox: Outbox) -> None:
    log = facts.history()
    key = facts.hold_call(log, "old")
    quiet = len(log.records) - 1
    log.add(key, facts.escalated("old"))
    assert types(notices_of(outbox, log, fresh(quiet))) == [("hold_escalated", "old")]


def test_fold_taken_up_again_tells_each_once_and_keeps_the_claim(outbox: Outbox) -> None:
    log = facts.history()
    deposed = log.term
    log.claim()
    facts.hold_call(log, "h1")
    assert types(notices_of(outbox, log)) == [("hold_opened", "h1")]
    facts.hold_call(log, "zombie", term=deposed)
    facts.hold_call(log, "h2")
    assert types(notices_of(outbox, log)) == [("hold_opened", "h2")]
    assert notices_of(outbox, log) == []


def test_fold_other_record_where_it_was_left_stops(outbox: Outbox) -> None:
    log, another = facts.history(), facts.history()
    facts.hold_call(log, "h1")
    notices_of(outbox, log)
    while len(another.records) < len(log.records):
        another.poison()
    with pytest.raises(LogChanged, match="held another record"):
        notices_of(outbox, another)


def test_fold_first_record_is_another_offset_stops(outbox: Outbox) -> None:
    log = facts.history()
    facts.hold_call(log, "h1")
    fold = PartitionFold(fresh(), Facts(outbox), lambda _: None)
    with pytest.raises(PositionLost):
        fold.apply(log.raws(1)[0])


def test_outbox_transaction_that_fails_keeps_nothing(outbox: Outbox) -> None:
    def write_and_fail() -> None:
        with outbox.transaction():
            outbox.put_message("n/1", facts.notice(), 0)
            outbox.put_position(fresh())
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_and_fail()
    assert outbox.next("n/1") == []
    assert outbox.positions() == {}


def test_outbox_file_is_its_owner_s_alone(outbox: Outbox, tmp_path: Path) -> None:
    assert (tmp_path / "run").stat().st_mode & 0o077 == 0
    assert (tmp_path / "run" / "outbox.db").stat().st_mode & 0o077 == 0


def test_outbox_damaged_file_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "outbox.db").write_bytes(b"not a database at all" * 100)
    with pytest.raises(OutboxUnusable, match=r"outbox\.db is damaged .*: move it away"):
        Outbox(tmp_path / "outbox.db")


@pytest.mark.parametrize(
    ("conditions", "asked"),
    [
        ({}, True),
        ({"events": ("hold_resolved",)}, False),
        ({"kinds": ("permission",)}, True),
        ({"kinds": ("decision",)}, False),
        ({"roles": ("hr", "finance")}, True),
        ({"roles": ("hr",)}, False),
        ({"tools": ("send_*",)}, True),
        ({"tools": ("read_*",)}, False),
        ({"agents": ("billing-bot",)}, True),
        ({"agents": ("Billing-bot",)}, False),
        ({"risk": ("medium", "high")}, True),
        ({"risk": ("low",)}, False),
        ({"tenant": "acme"}, True),
        ({"tenant": "acm"}, False),
        ({"tenant": "globex"}, False),
        ({"project": "ma*"}, True),
        ({"project": "other"}, False),
        ({"tenant": "acme", "tools": ("send_money",), "risk": ("low",)}, False),
    ],
)
def test_is_asked_for_only_where_every_condition_agrees(conditions: dict[str, Any], asked: bool) -> None:
    when = When.model_validate({"events": ("hold_opened",), **conditions})
    assert is_asked_for(when, facts.notice()) is asked


def test_is_asked_for_unknown_outcome_is_told_to_those_who_hear_of_holds() -> None:
    doubt = facts.notice(kind="outcome_unknown", cause="outcome_unknown")
    assert is_asked_for(When(events=("hold_opened",)), doubt)
    assert is_asked_for(When(events=("outcome_unknown",)), doubt)
    assert not is_asked_for(When(events=("outcome_unknown",)), facts.notice())


def test_is_asked_for_request_has_no_tool_and_matches_no_tool() -> None:
    assert not is_asked_for(When(events=("hold_opened",), tools=("*",)), facts.notice(tool=""))
