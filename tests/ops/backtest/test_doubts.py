"""What a backtest could not read or judge is no silence: it has an exit code, and people's words are kept."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from host.errors import EXIT_USAGE
from host.public_keys import PublicKeyFile
from log.errors import LogFromNewerVersion
from log.memory.log import MemoryLog
from ops.backtest.command import EXIT_OVERRULED, EXIT_UNJUDGED, _code, _window
from ops.backtest.counting import NothingCountsError
from ops.backtest.found import LISTED_MAX, Found, NotJudged, NotReproduced
from ops.backtest.history import Candidate
from ops.backtest.partition import Window
from ops.backtest.report import Report
from ops.backtest.run import Question, backtest
from ops.backtest.telling import json_of
from ops.errors import UsageError
from schemas.event_signatures import LogSignatures
from schemas.events.log import DefinitionsAdopted
from schemas.headers import event_record
from schemas.message import Message
from schemas.policy_document import policy_from_value
from schemas.record import EventMeta, OutRecord
from tests.domain.world import RULES, START_MS, TENANT, rule, the
from tests.ops.backtest.past import DEFINITIONS, EXECUTIONS, LOG_KEY, TOPICS, Past, policy

IN_FORCE = policy(*RULES)
ALL_PASS = policy(rule("all", "*", "allow"))
CANDIDATE = Candidate(policy_from_value(ALL_PASS), TENANT)


def past() -> Past:
    made = Past()
    made.tools()
    made.policy(IN_FORCE)
    made.start()
    return made


def unreadable(made: Past, body: Message, key: bytes) -> None:
    """Record a body under a schema id that no version has given out yet."""
    known = event_record(body, EventMeta("odd", made.world.now_ms, 0, 99, "odd", "", TENANT), key)
    made.raw(key, known.value[:1] + b"\x7f\xff\xff\xff" + known.value[5:], known.headers)


def reported(found: Found, **more: Any) -> Report:
    return Report(CANDIDATE, Window(), found, frozenset(), 1.0, **more)


def test_word_on_a_run_that_was_set_aside_blocks() -> None:
    made = past()
    bodies = made.propose("pay")
    unreadable(made, the(bodies, "PolicyVerdictIssued"), made.world.key())
    made.decide(the(bodies, "HoldOpened"), "reject")

    found = made.against(ALL_PASS)

    assert [(row.call_id, row.word) for row in found.overruled] == [("c", "rejected")]
    assert (found.set_aside, found.unreadable) == (1, 1)
    assert _code(reported(found, accepts_unjudged=True)) == EXIT_OVERRULED


def test_rejected_call_that_cannot_be_judged_is_no_silence() -> None:
    made = past()
    made.propose("read", "before")
    made.adopt(1_000)
    made.decide(the(made.propose("pay"), "HoldOpened"), "reject")

    found = made.against(ALL_PASS)

    assert (found.judged, found.overruled, len(found.not_judged)) == (1, [], 1)
    assert _code(reported(found)) == EXIT_UNJUDGED
    assert not json_of(reported(found))["ok"]
    assert _code(reported(found, accepts_unjudged=True)) == 0
    assert json_of(reported(found, accepts_unjudged=True))["ok"]


def test_history_without_verdicts_proves_nothing() -> None:
    made = past()
    made.propose("read")

    assert _code(reported(made.against(ALL_PASS))) == 0
    for nothing in (made.against(ALL_PASS, tenant="other"), made.against(ALL_PASS, Window(10**15))):
        assert _code(reported(nothing)) == EXIT_USAGE
        assert "nothing is known of this policy" in reported(nothing).emptiness


def test_record_about_the_log_itself_that_cannot_be_read_ends_the_backtest() -> None:
    made = past()
    body = DefinitionsAdopted(through_offset=3, through_record_id="r", through_term=0, versions={})
    unreadable(made, body, LOG_KEY)

    with pytest.raises(LogFromNewerVersion):
        made.against(ALL_PASS)


def test_log_whose_keys_are_lost_is_refused(tmp_path: Path) -> None:
    made = past()
    made.propose("pay")
    signatures = LogSignatures(PublicKeyFile(tmp_path / "nokeys"), {})

    with pytest.raises(NothingCountsError, match="None of the"):
        asyncio.run(backtest(made.log, Question(CANDIDATE, Window(), signatures)))


@pytest.mark.parametrize("tp", [EXECUTIONS, DEFINITIONS])
def test_partition_without_a_claim_that_counts_is_refused(tp: Any) -> None:
    log = MemoryLog(TOPICS, 1, lambda: START_MS)
    meta = EventMeta("e", START_MS, 7, 1, "c", "", TENANT)
    body = DefinitionsAdopted(through_offset=3, through_record_id="r", through_term=0, versions={})
    log.land(tp, [OutRecord(*event_record(body, meta, LOG_KEY))])

    with pytest.raises(NothingCountsError, match=tp.topic):
        asyncio.run(backtest(log, Question(CANDIDATE)))


def test_what_is_refused_is_told() -> None:
    made = past()
    made.propose("read")
    made.raw(made.world.key(), b"foreign")
    made.log.land(DEFINITIONS, [OutRecord(b"acme/policy/p", b"foreign", ())])

    answer = json_of(reported(made.against(ALL_PASS)))

    assert (answer["ok"], answer["refused"], answer["definitions_refused"]) == (True, 1, 1)


def test_long_lists_of_doubts_are_cut_and_counted() -> None:
    found = Found(project="*", judged=LISTED_MAX + 5)
    for number in range(LISTED_MAX + 5):
        found.leave(NotJudged("t", 0, number, "k", "why"))
        found.differ(NotReproduced("main", "x", "c", 1, 0, number, {}))

    answer = json_of(reported(found))

    assert (len(answer["not_judged"]), answer["not_judged_left_off"]) == (LISTED_MAX, 5)
    assert (len(answer["not_reproduced"]), answer["not_reproduced_left_off"]) == (LISTED_MAX, 5)


@pytest.mark.parametrize("text", ["yesterday", "2026-11-20T10:00:00", "0001-01-01T00:00:00+10:00"])
@pytest.mark.parametrize("option", ["--since", "--until"])
def test_time_that_is_none_is_refused_with_an_example(option: str, text: str) -> None:
    given = (text, None) if option == "--since" else (None, text)
    with pytest.raises(UsageError, match=rf"{option} .*such as 2026-01-05T12:00:00Z"):
        _window(*given)
