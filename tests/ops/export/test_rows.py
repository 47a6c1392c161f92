"""From records to rows: which count, which do not, which cannot be read."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from host.key_files import SigningKey
from ops.export.columns import Row
from ops.export.rows import TOLD_MAX, PartitionRows
from schemas.canonical import canonical
from schemas.event_signatures import ANYWHERE, EventSigner, LogSignatures
from schemas.events.calls import ToolCallSucceeded
from schemas.headers import read_event
from schemas.ids import definition_key, rule_uses_key
from schemas.record import OutRecord, RawRecord
from schemas.term import TermRule, rule_of
from tests.ops.export.logs import TOPICS
from tests.projections.histories import LogBuilder, key_of, many_runs, policy_published, proposed, started

NEWER = b"\x00\x00\x00\xff\xff"


def reader(role: Any = "executions", rule: TermRule | None = None) -> PartitionRows:
    return PartitionRows(TOPICS.executions, role, rule or TermRule())


def one_run() -> LogBuilder:
    builder = LogBuilder(1).claim_all()
    builder.append(key_of("run-1"), [started(), proposed("call-1")])
    return builder


def with_label(raw: RawRecord, name: str, value: bytes) -> RawRecord:
    return raw._replace(headers=tuple((one, value if one == name else was) for one, was in raw.headers))


def test_rows_are_the_events_in_full_and_in_order() -> None:
    builder = many_runs(LogBuilder(1).claim_all(), 5)
    rows = reader().read(builder.records[0])
    events = [read_event(raw) for raw in builder.records[0][1:]]
    assert [row.body for row in rows] == [msgspec.json.encode(event.body.__dict__) for event in events]
    assert [(row.offset, row.at_ms, row.type, row.event_id, row.version) for row in rows] == [
        (event.offset, event.meta.at_ms, event.type, event.meta.event_id, event.meta.version)
        for event in events
    ]


def test_records_of_a_deposed_writer_and_a_claim_that_lost_are_refused() -> None:
    builder = one_run()
    old = builder.term[0]
    builder.claim(0, "w2")
    builder.claim(0, "w3", after=old)
    builder.append(key_of("run-1"), [proposed("late")], term=old)
    builder.append(key_of("run-1"), [proposed("call-2")])
    found = reader()
    rows = found.read(builder.records[0])
    assert [row.fields.get("call_id") for row in rows] == [None, "call-1", "call-2"]
    counts = found.counts
    assert (counts.records, counts.rows, counts.about_the_log, counts.refused) == (7, 3, 2, 2)
    assert found.claim == builder.term[0]


def test_nothing_counts_before_the_first_claim() -> None:
    found = reader()
    assert found.read(one_run().records[0][1:]) == []
    assert found.counts.refused == 2


def test_record_that_no_decider_signed_is_refused() -> None:
    key = SigningKey("d1", Ed25519PrivateKey.generate())
    keys: Any = {"d1": key.private_key.public_key()}.get
    plain = [OutRecord(raw.key, raw.value, raw.headers) for raw in one_run().records[0]]
    sign = EventSigner(key).sign
    signed = [
        *sign(TOPICS.executions, 0, ANYWHERE, plain[:1]),
        *sign(TOPICS.executions, 0, 1, plain[1:2]),
        plain[2],
    ]
    rule = rule_of(LogSignatures(keys, {TOPICS.executions: (0,)}), TOPICS.executions)
    found = reader(rule=rule)
    rows = found.read([RawRecord(0, offset, 0, *record) for offset, record in enumerate(signed)])
    assert [row.type for row in rows] == ["ExecutionStarted"]
    assert found.counts.refused == 1


def test_record_of_a_deposed_writer_that_cannot_be_read_is_only_refused() -> None:
    builder = one_run()
    last = builder.records[0][-1]
    builder.claim(0, "w2")
    found = reader()
    found.read([*builder.records[0], last._replace(offset=4, value=NEWER)])
    assert (found.counts.refused, found.counts.unreadable) == (1, 0)


@pytest.mark.parametrize(
    "spoilt",
    [
        lambda raw: raw._replace(value=raw.value[:-3]),
        lambda raw: raw._replace(value=raw.value + b"x"),
        lambda raw: raw._replace(headers=()),
        lambda raw: raw._replace(key=b"x/y/z"),
        lambda raw: with_label(raw, "ce_type", b"placet.events.ExecutionStarted"),
        lambda raw: with_label(raw, "ce_time", b"yesterday"),
        lambda raw: with_label(raw._replace(key=b"only-a-tenant"), "ce_subject", b"only-a-tenant"),
    ],
    ids=["cut", "longer", "without headers", "another key", "another type", "no time", "no execution"],
)
def test_record_that_cannot_be_read_is_counted_and_told_and_the_next_is_read(spoilt: Any) -> None:
    builder = one_run()
    builder.append(key_of("run-1"), [proposed("call-2")])
    records = builder.records[0]
    found = reader()
    rows = found.read([*records[:2], spoilt(records[2]), records[3]])
    assert [row.fields.get("call_id") for row in rows] == [None, "call-2"]
    assert (found.counts.unreadable, found.counts.unread[0].reason) == (1, "malformed")


def test_only_the_first_unreadable_records_are_told_and_all_are_counted() -> None:
    builder = one_run()
    for _ in range(TOLD_MAX + 5):
        builder.append_raw(0, b"foreign")
    found = reader()
    found.read(builder.records[0])
    assert (found.counts.unreadable, len(found.counts.unread)) == (TOLD_MAX + 5, TOLD_MAX)


def test_uses_of_a_rule_and_definitions_have_their_own_places() -> None:
    builder = LogBuilder(1).claim_all()
    builder.append(rule_uses_key("acme", "main", "r1"), [started()], partition=0)
    (use,) = reader().read(builder.records[0])
    assert (use.tenant, use.project, use.execution_id) == ("acme", "main", "rule/r1")
    of_tenant, of_project = (definition_key("acme", "policy", "p", at) for at in ("*", "main"))
    definitions = LogBuilder(1).claim_all()
    for key in (of_tenant, of_project):
        definitions.append(key, [policy_published("p", 1)], partition=0)
    rows: list[Row] = reader("definitions").read(definitions.records[0])
    assert [(row.tenant, row.project, row.execution_id) for row in rows] == [
        ("acme", "*", None),
        ("acme", "main", None),
    ]


def test_value_of_250_kib_is_exported_whole() -> None:
    output = canonical({"text": "ä" * 125 * 1024})
    builder = one_run()
    done = ToolCallSucceeded(call_id="call-1", attempt_id="a", output=output, duration_ms=1, by="svc")
    builder.append(key_of("run-1"), [done])
    row = reader().read(builder.records[0])[-1]
    assert row.fields["output"] == output
    assert msgspec.json.decode(row.body)["output"] == output
