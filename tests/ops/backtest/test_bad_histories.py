"""Histories with gaps, with records that nobody can read, and with none at all: each has a defined answer."""

from __future__ import annotations

import asyncio

import pytest

from log.errors import FactsDeleted, LogFromNewerVersion
from log.memory.log import MemoryLog
from ops.backtest.history import Candidate, PlaceUnclearError
from ops.backtest.run import Question, backtest
from schemas.events.calls import PolicyVerdictIssued
from schemas.headers import event_record
from schemas.policy_document import policy_from_value
from schemas.policy_problems import PolicyRefused
from schemas.record import EventMeta, OutRecord
from tests.domain.world import RULES, START_MS, TENANT, rule, the
from tests.ops.backtest.past import DEFINITIONS, EXECUTIONS, TOPICS, Past, policy

IN_FORCE = policy(*RULES)


def past() -> Past:
    made = Past()
    made.tools()
    made.policy(IN_FORCE)
    made.start()
    return made


def test_empty_history_has_no_verdicts() -> None:
    log = MemoryLog(TOPICS, 3, lambda: START_MS)

    found = asyncio.run(backtest(log, Question(Candidate(policy_from_value(IN_FORCE), TENANT))))

    assert (found.records, found.judged, found.rows, found.not_judged) == (0, 0, [], [])
    assert found.project == "*"


def test_history_whose_beginning_was_deleted_is_refused() -> None:
    made = past()
    made.log.partition(EXECUTIONS).delete_before(2)

    with pytest.raises(FactsDeleted):
        made.against(IN_FORCE)


def _meta(made: Past, version: int = 99, term: int = 0) -> EventMeta:
    return EventMeta("odd", made.world.now_ms, term, version, "odd", "", TENANT)


def test_record_of_an_unknown_type_is_named_and_its_run_is_judged_no_more() -> None:
    made = past()
    made.propose("read", "before")
    known = event_record(
        the(made.propose("read", "odd"), "PolicyVerdictIssued"), _meta(made), made.world.key()
    )
    # A schema id that no version has given out yet.
    made.raw(made.world.key(), known.value[:1] + b"\x7f\xff\xff\xff" + known.value[5:], known.headers)
    made.propose("read", "after")
    made.start("y")
    made.propose("read", "elsewhere", execution_id="y")

    found = made.against(IN_FORCE)

    assert (found.unreadable, found.judged, found.reproduced) == (1, 3, 3)
    assert [one.why[:31] for one in found.not_judged] == ["the record cannot be read: unkn"] * 2
    assert {one.key for one in found.not_judged} == {made.world.key().decode()}


def test_foreign_bytes_and_records_of_a_deposed_writer_change_nothing() -> None:
    made = past()
    verdict = the(made.propose("read"), "PolicyVerdictIssued")
    made.raw(b"x/y/z", b"foreign")
    late = event_record(verdict.model_copy(update={"effect": "deny"}), _meta(made, term=7), made.world.key())
    made.log.land(EXECUTIONS, [OutRecord(*late)])

    found = made.against(IN_FORCE)

    assert (found.refused, found.unreadable, found.judged, found.reproduced) == (2, 0, 1, 1)


def test_verdict_without_its_proposal_is_named() -> None:
    made = past()
    verdict = the(made.propose("read"), "PolicyVerdictIssued")
    made.land(EXECUTIONS, verdict.model_copy(update={"call_id": "gone"}), _meta(made), made.world.key())

    (named,) = made.against(IN_FORCE).not_judged

    assert (named.why, named.partition) == ("its call is not in the log before it", 0)


def test_definitions_that_the_log_does_not_have_are_named() -> None:
    made = past()
    made.adopt(1_000)
    made.propose("read")

    found = made.against(IN_FORCE)

    assert found.judged == 0
    assert "up to offset 1000, which the log does not have" in found.not_judged[0].why


def test_definition_that_cannot_be_read_ends_the_backtest() -> None:
    made = past()
    verdict = the(made.propose("read"), "PolicyVerdictIssued")
    odd = event_record(verdict, _meta(made), b"acme/policy/p")
    value = odd.value[:1] + b"\x7f\xff\xff\xff" + odd.value[5:]
    made.log.land(DEFINITIONS, [OutRecord(odd.key, value, odd.headers)])

    with pytest.raises(LogFromNewerVersion):
        made.against(IN_FORCE)


def test_verdict_that_the_policy_in_force_does_not_give_is_named_with_what_differs() -> None:
    made = past()
    bodies = made.propose("read")
    verdict: PolicyVerdictIssued = the(bodies, "PolicyVerdictIssued")
    made.start("y")
    proposed = the(bodies, "ToolCallProposed")
    key = made.world.key("y")
    made.land(EXECUTIONS, proposed, _meta(made), key)
    forged = verdict.model_copy(update={"effect": "deny", "detail": "by hand"})
    made.land(EXECUTIONS, forged, _meta(made), key)

    found = made.against(IN_FORCE)

    (named,) = found.not_reproduced
    assert (found.judged, found.reproduced, named.execution_id) == (2, 1, "y")
    assert named.fields["effect"] == ("deny", "allow")
    assert set(named.fields) == {"effect", "detail"}
    assert [row.execution_id for row in found.of_kind("newly_allowed")] == ["y"]


@pytest.mark.parametrize(
    "trust",
    [
        "[]",
        '{"lower_bound":null}',
        '{"raising":"13"}',
        '{"lowering":NaN}',
        '{"successes":1.5}',
        '{"contrary_at":7}',
        '{"through":[1]}',
        '{"through":{"0":null}}',
        "[" * 100_000,
    ],
    ids=lambda text: text[:30],
)
def test_trust_of_another_form_is_named(trust: str) -> None:
    made = past()
    verdict = the(made.propose("read"), "PolicyVerdictIssued")
    made.land(EXECUTIONS, verdict.model_copy(update={"trust": trust}), _meta(made), made.world.key())

    (named,) = made.against(IN_FORCE).not_judged

    assert named.why.startswith("what it was judged by cannot be read")


def test_candidate_that_does_not_compile_or_belongs_elsewhere_is_refused() -> None:
    made = past()
    for rules, more in (
        ([{**rule("odd", "read", "allow"), "when": "args.("}], {}),
        (RULES, {"scope": {"tenant": "other"}}),
    ):
        with pytest.raises(PolicyRefused):
            made.against(policy(*rules, **more))


def test_name_of_several_policies_has_to_be_told_apart() -> None:
    made = past()
    made.policy(IN_FORCE, project="main")

    with pytest.raises(PlaceUnclearError, match=r"\(\*, main\): name one with --project"):
        made.against(IN_FORCE)
    assert made.against(IN_FORCE, project="main").project == "main"


def test_place_of_a_policy_that_was_retired_is_not_meant() -> None:
    made = past()
    made.policy(IN_FORCE, project="fork-1")
    made.retire("p", project="fork-1")

    assert made.against(IN_FORCE).project == "*"
