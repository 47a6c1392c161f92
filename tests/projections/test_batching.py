"""From records to rows: what counts, what is skipped, and what a batch leaves in every table."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from host.key_files import SigningKey
from projections.audit.trees import Trees
from projections.batching import Batcher, Chunk
from projections.cache import RowCache
from projections.store.port import Position
from projections.tables.agents import AGENTS
from projections.tables.answers import ANSWERS
from projections.tables.audit import AUDIT_ENTRIES
from projections.tables.calls import TOOL_CALLS
from projections.tables.definitions import DEFINITIONS
from projections.tables.events import EVENTS
from projections.tables.executions import EXECUTIONS
from projections.tables.holds import HOLDS
from projections.tables.log import ADOPTIONS, DEAD_LETTERS, SKIPPED_RECORDS
from projections.tables.standing_rules import RULE_USES, STANDING_RULES
from schemas.canonical import canonical
from schemas.event_signatures import ANYWHERE, EventSigner, LogSignatures
from schemas.events import executions as x
from schemas.events import holds as h
from schemas.events import rules as r
from schemas.events.definitions import PolicyRetired
from schemas.headers import read_event
from schemas.ids import definition_key, rule_uses_key
from schemas.record import OutRecord, RawRecord
from schemas.refusals import Refusal
from tests.projections.filling import TOPICS, Filler
from tests.projections.histories import (
    AGENT,
    LogBuilder,
    consumed,
    decided,
    held,
    judged,
    key_of,
    many_runs,
    policy_key,
    policy_published,
    proposed,
    released,
    started,
    succeeded,
    tool_key,
    tool_published,
)

KEY = key_of("run-1")


def rule_document(rule_id: str, project: str) -> str:
    return canonical(
        {
            "rule_id": rule_id,
            "project": project,
            "agent": "bot",
            "tool": "pay",
            "tool_version": "v",
            "policy_rules": ["p/payments"],
            "arguments": {"amount": {"equals": 1}},
            "expires_at_ms": 2_000,
            "uses": 1,
            "risk_max": "medium",
            "terms": {"excluded": [], "exclude_requester": False, "quorum": 1, "reviewers": [], "roles": []},
            "evidence": dict.fromkeys(
                ("execution_id", "call_id", "hold_id", "decision_id", "digest", "view_digest"), "x"
            ),
            "requesters": ["bot"],
            "made_by": "ann@acme",
            "made_with": [],
            "four_eyes": True,
        }
    )


CALL = proposed("c1")
HOLD = held(KEY, CALL)


def a_held_call() -> LogBuilder:
    builder = LogBuilder(1).claim_all()
    builder.append(KEY, [started()], command_id="start")
    builder.append(KEY, [CALL, judged(CALL), HOLD], command_id="propose")
    return builder


# A log with zombies, by the rule of schemas/term.py: who reads it must see only what the writers in force wrote.


def a_log_with_zombies() -> LogBuilder:
    builder = a_held_call()
    first = builder.term[0]
    builder.claim(0, "second")
    builder.append(KEY, [decided(HOLD), released(CALL)], command_id="zombie", term=first)
    builder.claim(0, "a claim after one that is no longer in force", after=first)
    builder.append(KEY, [decided(HOLD, "reject")], command_id="reject")
    builder.append(KEY, [consumed(CALL), succeeded(CALL)], command_id="zombie", term=first)
    third = builder.claim(0, "third")
    builder.append(KEY, [x.ExecutionCancelled(reason="stop", by="ann@acme")], command_id="cancel", term=third)
    return builder


@pytest.mark.parametrize("step", [1, 2, 1000])
def test_zombies_records_change_nothing_but_the_position(filler: Filler, step: int) -> None:
    builder = a_log_with_zombies()
    filler.fill(builder, step=step)
    assert [row["status"] for row in filler.rows(TOOL_CALLS)] == ["held"]
    assert [row["decision"] for row in filler.rows(HOLDS)] == ["reject"]
    assert [row["state"] for row in filler.rows(EXECUTIONS)] == ["cancelled"]
    assert "zombie" not in {row["command_id"] for row in filler.rows(EVENTS)}
    assert "zombie" not in {row["command_id"] for row in filler.rows(ANSWERS)}
    (position,) = filler.store.positions()
    assert (position.next_offset, position.claim) == (len(builder.records[0]), builder.term[0])


def test_reader_that_starts_behind_the_claim_without_it_sees_nothing(filler: Filler) -> None:
    builder = a_held_call()
    later = [raw for raw in builder.records[0] if raw.offset > 0]
    forgetful = Position(TOPICS.executions, 0, "t1", next_offset=1, record_id="r")
    _apply(filler, replace(forgetful, next_offset=0, record_id=""), builder.records[0][:1])
    _apply(filler, replace(filler.store.positions()[0], claim=-1), later)
    assert filler.rows(EXECUTIONS) == []


def test_unreadable_record_is_skipped_counted_and_logged(
    filler: Filler, caplog: pytest.LogCaptureFixture
) -> None:
    builder = a_held_call()
    offset = builder.append_raw(0, b"\x07nonsense")
    builder.append(KEY, [x.ExecutionPaused(reason="", by="ann@acme")])
    with caplog.at_level(logging.ERROR):
        filler.fill(builder)
    (row,) = filler.rows(SKIPPED_RECORDS)
    assert (row["log_partition"], row["log_offset"], row["reason"]) == (0, offset, "malformed")
    assert f"{TOPICS.executions}/0@{offset}" in caplog.text
    assert [row["state"] for row in filler.rows(EXECUTIONS)] == ["paused"]


def test_event_under_a_key_that_is_no_executions_is_skipped(filler: Filler) -> None:
    builder = a_held_call()
    builder.append(b"no-slashes", [started()], partition=0)
    filler.fill(builder)
    assert len(filler.rows(SKIPPED_RECORDS)) == 1
    assert len(filler.rows(EXECUTIONS)) == 1


def test_nul_in_a_text_is_shown_as_a_replacement_in_both_databases(filler: Filler) -> None:
    builder = LogBuilder(1).claim_all()
    builder.append(KEY, [started().model_copy(update={"request": "a\x00b"})])
    builder.append(KEY, [proposed("c1", {"text": "a\x00b"})])
    filler.fill(builder)
    assert filler.rows(EXECUTIONS)[0]["request"] == "a�b"
    assert '"a�b"' in filler.rows(EVENTS)[0]["body"]
    # Escaped inside canonical JSON it stays, so that the digest is still over these arguments.
    assert filler.rows(TOOL_CALLS)[0]["arguments"] == '{"text":"a\\u0000b"}'


def test_answer_of_a_command_says_where_its_events_stand(filler: Filler) -> None:
    builder = a_held_call()
    filler.fill(builder, step=2)
    answers = {row["command_id"]: row for row in filler.rows(ANSWERS)}
    assert (answers["propose"]["first_offset"], answers["propose"]["last_offset"]) == (2, 4)
    assert answers["propose"]["log_key"] == KEY.decode()
    assert answers["propose"]["code"] is None


@pytest.mark.parametrize("step", [1, 100])
def test_case_26_answer_of_a_command_stays_the_first_bodys(filler: Filler, step: int) -> None:
    builder = a_held_call()
    reused = x.CommandRefused(
        code=Refusal.IDEMPOTENCY_KEY_REUSED, command="ProposeToolCall", subject_id="", detail="", by="bot"
    )
    last = builder.append(KEY, [reused], command_id="propose", digest="other")
    filler.fill(builder, step=step)
    answers = {row["command_id"]: row for row in filler.rows(ANSWERS)}
    assert answers["propose"]["code"] is None
    assert answers["propose"]["command_digest"] != "other"
    assert answers["propose"]["last_offset"] < last


@pytest.mark.parametrize("step", [1, 100])
@pytest.mark.parametrize("first", [0, 1])
def test_answers_of_one_id_on_two_keys_are_two_whatever_is_read_first(
    filler: Filler, step: int, first: int
) -> None:
    """Services choose their command ids, and the views must be the same however partitions are read."""
    builder = LogBuilder(1).claim_all()
    keys = [key_of("run-1"), key_of("run-2")]
    late = x.CommandRefused(
        code=Refusal.NOT_FOUND, command="StartExecution", subject_id="", detail="no such tool", by="bot"
    )
    for key, body in ((keys[first], started()), (keys[1 - first], late)):
        builder.append(key, [body], command_id="begin")
    filler.fill(builder, step=step)
    found = {row["log_key"]: (row["code"], row["first_offset"]) for row in filler.rows(ANSWERS)}
    assert found == {keys[first].decode(): (None, 1), keys[1 - first].decode(): ("not_found", 2)}


def test_answer_of_a_refused_command_has_the_code(filler: Filler) -> None:
    builder = a_held_call()
    late = h.DecisionRefused(
        hold_id=HOLD.hold_id, decision="approve", digest="", code=Refusal.EXPIRED, detail="too late",
        winning_decision_id="", by="bob@acme",
    )  # fmt: skip
    builder.append(KEY, [h.HoldExpired(hold_id=HOLD.hold_id, on_timeout="deny"), late], command_id="late")
    builder.append(
        KEY, [x.CommandAbandoned(command="ConsumeGrant", command_offset=7, attempts=3)], command_id="bad"
    )
    filler.fill(builder, step=1)
    answers = {row["command_id"]: row for row in filler.rows(ANSWERS)}
    assert (answers["late"]["code"], answers["late"]["detail"]) == ("expired", "too late")
    assert answers["bad"]["code"] == "unavailable"


def test_counters_of_an_agent_follow_its_calls(filler: Filler) -> None:
    builder = a_held_call()
    word = decided(HOLD)
    builder.append(KEY, [word, released(CALL, word.decision_id)])
    builder.append(KEY, [consumed(CALL)])
    builder.append(KEY, [succeeded(CALL)])
    refused = x.CommandRefused(
        code=Refusal.ALREADY_CONSUMED, command="ConsumeGrant", subject_id="c1", detail="", by="svc"
    )
    builder.append(KEY, [refused])
    filler.fill(builder, step=2)
    counted = {row["tool"]: row for row in filler.rows(AGENTS)}
    assert counted[""]["refused"] == 1
    of_tool = counted["send_money"]
    assert of_tool["agent"] == AGENT
    assert {name: of_tool[name] for name in ("proposed", "held", "approved", "succeeded", "allowed", "failed")} == {
        "proposed": 1, "held": 1, "approved": 1, "succeeded": 1, "allowed": 0, "failed": 0,
    }  # fmt: skip


def test_definitions_are_kept_by_version_with_their_audit_rows(filler: Filler) -> None:
    definitions = LogBuilder(1).claim_all()
    for version in (1, 2):
        definitions.append(policy_key("production"), [policy_published("production", version)], partition=0)
    retired = PolicyRetired(name="production", version=2, reason="too wide", by="ops@acme")
    definitions.append(policy_key("production"), [retired], partition=0)
    definitions.append(tool_key("send_money"), [tool_published("send_money", 1)], partition=0)
    refused = x.CommandRefused(
        code=Refusal.INVALID, command="PublishPolicy", subject_id="production", detail="a typo", by="ops@acme"
    )
    definitions.append(policy_key("production"), [refused], partition=0, command_id="typo")
    abandoned = x.CommandAbandoned(command="PublishTool", command_offset=7, attempts=3)
    definitions.append(tool_key("send_money"), [abandoned], partition=0, command_id="poison")
    filler.fill(definitions=definitions)
    assert [(row["kind"], row["name"], row["version"]) for row in filler.rows(DEFINITIONS)] == [
        ("policy", "production", 1),
        ("policy", "production", 2),
        ("policy-retired", "production", 2),
        ("tool", "send_money", 1),
    ]
    audits = filler.rows(AUDIT_ENTRIES)
    assert [row["action"] for row in audits] == [
        *("publish_policy", "publish_policy", "retire_policy", "publish_tool", "publish_policy_refused"),
        "publish_tool_abandoned",
    ]
    assert (audits[2]["subject"], audits[2]["feedback"]) == ("ops@acme", "too wide")
    assert {row["command_id"]: row["code"] for row in filler.rows(ANSWERS)}["typo"] == "invalid"
    assert filler.rows(EVENTS) == []


def test_adoption_of_definitions_is_kept_by_partition(filler: Filler) -> None:
    builder = LogBuilder(2).claim_all()
    builder.adopted(0, 3, {"acme/policy/production": 1})
    builder.adopted(1, 3, {"acme/policy/production": 1})
    builder.adopted(0, 5, {"acme/policy/production": 2})
    builder.alive(1)
    filler.fill(builder, step=2)
    assert {row["log_partition"]: row["through_offset"] for row in filler.rows(ADOPTIONS)} == {0: 5, 1: 3}


def test_adoption_is_told_by_when_it_was_written_where_the_logs_time_is_earlier(filler: Filler) -> None:
    builder = LogBuilder(2).claim_all()
    for partition in (0, 1):
        builder.adopted(partition, 3, {"acme/policy/production": 1})
    first, second = (records[-1] for records in builder.records)
    log_ms = read_event(first).meta.at_ms
    # As on a partition without a command for an hour; and as by a decider whose clock is behind the broker's.
    builder.records[0][-1] = first._replace(timestamp_ms=log_ms + 3_600_000)
    builder.records[1][-1] = second._replace(timestamp_ms=1)
    filler.fill(builder)
    at_ms = {row["log_partition"]: row["at_ms"] for row in filler.rows(ADOPTIONS)}
    assert at_ms == {0: log_ms + 3_600_000, 1: read_event(second).meta.at_ms}


def test_dead_letters_are_listed_by_where_the_original_stands(filler: Filler) -> None:
    headers = (
        ("ce_id", b"placet.commands/3/17"),
        ("placet_topic", b"placet.commands"),
        ("placet_partition", b"3"),
        ("placet_offset", b"17"),
        ("placet_at_ms", b"1760000000000"),
        ("placet_reason", b"bad_signature"),
        ("placet_detail", b"no such key"),
    )
    letter = RawRecord(3, 0, 1, b"acme/main/run-1", b"?", headers)
    nobodys = RawRecord(3, 1, 2, b"\xff\x00", b"?", (("placet_topic", b"placet.commands"), ("x", None)))  # type: ignore[arg-type]
    again = letter._replace(offset=2)
    _apply(filler, Position(TOPICS.dead_letters, 3, "t1"), [letter, nobodys])
    _apply(filler, filler.store.positions()[0], [again])
    first, second = sorted(filler.rows(DEAD_LETTERS), key=lambda row: row["log_offset"], reverse=True)
    assert (first["topic"], first["log_partition"], first["log_offset"]) == ("placet.commands", 3, 17)
    assert (first["tenant"], first["reason"], first["detail"]) == ("acme", "bad_signature", "no such key")
    assert second["tenant"] == ""


def test_rows_of_two_tenants_with_the_same_ids_stay_apart(filler: Filler) -> None:
    builder = LogBuilder(4).claim_all()
    many_runs(builder, 3, seed=5)
    many_runs(builder, 3, seed=5, tenant="other")
    filler.fill(builder)
    calls = filler.rows(TOOL_CALLS)
    ours = [row["call_id"] for row in calls if row["tenant"] == "acme"]
    assert ours == [row["call_id"] for row in calls if row["tenant"] == "other"]


def _apply(filler: Filler, position: Position, records: list[RawRecord]) -> None:
    filler.store.apply(
        Batcher(TOPICS, RowCache(filler.store), Trees(filler.store)).batch([Chunk(position, records)])
    )


def test_case_32_copy_of_what_counted_in_an_earlier_batch_is_told_as_a_forgery(
    filler: Filler, caplog: pytest.LogCaptureFixture
) -> None:
    key = SigningKey("d1", Ed25519PrivateKey.generate())
    keys: Any = {"d1": key.private_key.public_key()}.get
    log = LogSignatures(keys, {TOPICS.executions: (0,)})
    builder = LogBuilder(1).claim_all()
    many_runs(builder, 1, seed=5)
    unsigned = builder.records[0]
    sign = EventSigner(key).sign
    (claim,) = sign(TOPICS.executions, 0, ANYWHERE, [OutRecord(*unsigned[0][3:])])
    batch = sign(TOPICS.executions, 0, 1, [OutRecord(*raw[3:]) for raw in unsigned[1:5]])
    counting = [RawRecord(0, offset, 0, *record) for offset, record in enumerate((claim, *batch))]
    batcher = Batcher(TOPICS, RowCache(filler.store), Trees(filler.store), log)
    for records in (counting, [counting[1]._replace(offset=5)]):
        position = next(iter(filler.store.positions()), Position(TOPICS.executions, 0, "t1"))
        filler.store.apply(batcher.batch([Chunk(position, records)]))
        batcher.written()

    assert [record.levelname for record in caplog.records] == ["CRITICAL"]
    assert "@5 is not signed by a decider for this place" in caplog.text


def test_standing_rule_is_one_row_as_it_stands_and_each_word_on_it_an_audit_row(filler: Filler) -> None:
    document = rule_document("r", project="default")
    definitions = LogBuilder(1).claim_all()
    made = r.RuleMade(rule_id="r", status="proposed", reason="", document=document, by="ann@acme")
    evidence = '{"call_id":"c1"}'
    suspended = r.RuleSuspended(rule_id="r", reason="no", evidence=evidence, by="placet:decider")
    for body in (made, r.RuleActivated(rule_id="r", reason="", by="bob@acme"), suspended):
        definitions.append(definition_key("acme", "rule", "r"), [body])
    filler.fill(None, definitions, step=1)

    (row,) = filler.rows(STANDING_RULES)
    assert (row["status"], row["reason"], row["made_by"]) == ("suspended", "no", "ann@acme")
    assert (row["document"], row["contradiction"], row["uses"]) == (document, evidence, 1)
    audits = [(entry["action"], entry["subject"], entry["project"]) for entry in filler.rows(AUDIT_ENTRIES)]
    assert audits == [
        ("rule_made", "ann@acme", "default"),
        ("rule_activated", "bob@acme", "default"),
        ("rule_suspended", "placet:decider", "default"),
    ]


def test_uses_of_a_rule_are_rows_of_their_own_and_none_is_skipped(filler: Filler) -> None:
    key = rule_uses_key("acme", "default", "r")
    asked = {"rule_id": "r", "execution_id": "run-1", "call_id": "c1", "revision": 1}
    builder = LogBuilder(1).claim_all()
    builder.append(key, [r.RuleUseReserved(**asked, reservation_id="a", digest="d", number=1)])
    builder.append(key, [r.RuleUseRefused(**asked, reservation_id="b", detail="all taken")])
    filler.fill(builder)

    (row,) = filler.rows(RULE_USES)
    assert (row["rule_id"], row["number"], row["call_id"]) == ("r", 1, "c1")
    assert [event["execution_id"] for event in filler.rows(EVENTS)] == ["rule/r"] * 2
    assert filler.rows(SKIPPED_RECORDS) == []
    assert filler.rows(EXECUTIONS) == []
    assert filler.rows(ANSWERS) == []
