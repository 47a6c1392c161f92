"""Who asks is proved by the record itself: whatever is forged, moved, altered or swapped is not believed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from schemas import codec
from schemas.actor import Actor
from schemas.commands import (
    COMMANDS,
    ConsumeGrant,
    DecideHold,
    ExpireDue,
    ProposeToolCall,
    ReportResult,
)
from schemas.envelope import (
    BY_TOKEN,
    DECIDERS_ALONE,
    Draft,
    Signer,
    Verifier,
    command_digest,
)
from schemas.events.holds import HoldClaimed
from schemas.ids import DECIDER_IDS, TIMER_IDS
from schemas.message import Message
from schemas.record import Command, OutRecord, RawRecord, UnreadableRecord
from tests.schemas import samples
from tests.schemas.strategies import any_message, raw_records
from tests.schemas.token_commands import with_token

GATEWAY = Signer("gw-1", Ed25519PrivateKey.from_private_bytes(bytes(range(32))))
FOREIGN = Signer("gw-1", Ed25519PrivateKey.from_private_bytes(bytes(range(1, 33))))
KEYS = {"gw-1": GATEWAY.private_key.public_key()}
DECIDER = Signer("de-1", Ed25519PrivateKey.from_private_bytes(bytes(range(2, 34))), b"/placet/decider")
DECIDER_KEYS = {"de-1": DECIDER.private_key.public_key()}

ANN = Actor(subject="ann", tenant="acme", project="default", roles=("reviewer", "käufer"))
BOT = Actor(subject="bot-token", tenant="acme", project="default", roles=("agent",), agent="bot")
KEY = b"acme/default/run-1"
AT_MS = 1_760_000_000_000


def draft(index: int = 0, actor: Actor = ANN, body: Message | None = None) -> Draft:
    return Draft(body or DecideHold(hold_id=f"h-{index}", decision="approve"), actor, f"c-{index}", KEY)


def raw_of(record: OutRecord) -> RawRecord:
    return RawRecord(2, 40, AT_MS, *record)


def no_token(token: str, at_ms: int) -> Actor:
    raise ValueError("not a token")


def agent_token(token: str, at_ms: int) -> Actor:
    if (token, at_ms) != ("good", AT_MS):
        raise ValueError("expired")
    return BOT


def verifier() -> Verifier:
    return Verifier(KEYS.get, agent_token, DECIDER_KEYS.get)


def with_headers(record: OutRecord, **values: bytes | None) -> RawRecord:
    kept = {**dict(record.headers), **values}
    return raw_of(record._replace(headers=tuple((n, v) for n, v in kept.items() if v is not None)))


def assert_unbelievable(raw: RawRecord, reason: str = "unbelievable") -> None:
    with pytest.raises(UnreadableRecord) as caught:
        verifier().read(raw)
    assert caught.value.reason == reason


PEOPLES = tuple(model for model in COMMANDS if model not in (*DECIDERS_ALONE, ExpireDue))


@given(st.lists(any_message().filter(lambda body: type(body) in PEOPLES), min_size=1, max_size=9))
def test_read_of_signed_commands_proves_each_sender(bodies: list[Message]) -> None:
    drafts = [Draft(body, ANN, f"c-{at}", KEY) for at, body in enumerate(bodies)]
    read = [verifier().read(raw_of(record)) for record in GATEWAY.sign(drafts)]
    assert read == [
        Command(d.body, ANN, d.command_id, command_digest(codec.encode(d.body)), KEY, 2, 40, AT_MS)
        for d in drafts
    ]


def test_read_of_a_decision_has_what_was_measured_and_the_digest_of_its_body_alone() -> None:
    bare = draft()
    read = [verifier().read(raw_of(GATEWAY.sign([replace(bare, dwell_ms=at)])[0])) for at in (None, 0, 4711)]
    assert [one.body for one in read] == [
        bare.body.model_copy(update={"dwell_ms": at}) for at in (None, 0, 4711)
    ]
    assert {one.digest for one in read} == {command_digest(codec.encode(bare.body))}


def test_read_of_a_decision_with_the_measure_in_its_body_keeps_it_and_its_digest() -> None:
    body = DecideHold(hold_id="h", decision="approve", dwell_ms=7)
    (record,) = GATEWAY.sign([draft(body=body)])
    for raw in (raw_of(record), with_headers(record, placet_dwell_ms=b"9")):
        read = verifier().read(raw)
        assert (read.body, read.digest) == (body, command_digest(codec.encode(body)))


@pytest.mark.parametrize("text", [b"", b"-1", b"+1", b"1.5", b" 1", b"\xff", b"%d" % 2**53, b"9" * 5000])
def test_read_of_a_decision_whose_measure_is_no_such_number_is_a_decision(text: bytes) -> None:
    body = draft().body
    assert verifier().read(with_headers(GATEWAY.sign([draft()])[0], placet_dwell_ms=text)).body == body


def test_read_of_another_command_looks_at_no_measure() -> None:
    body = ConsumeGrant(call_id="c", digest="d" * 64, attempt_id="a")
    (record,) = GATEWAY.sign([draft(body=body)])
    assert verifier().read(with_headers(record, placet_dwell_ms=b"9")).body == body


def test_sign_of_nothing_is_nothing() -> None:
    assert GATEWAY.sign([]) == []


def test_read_of_a_record_twice_checks_the_signature_once_and_the_key_each_time() -> None:
    keys = dict(KEYS)
    reader = Verifier(keys.get, no_token)
    first, second = (raw_of(record) for record in GATEWAY.sign([draft(0), draft(1)]))
    reader.read(first)
    reader.read(second)
    keys.clear()
    with pytest.raises(UnreadableRecord):
        reader.read(first)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
def test_read_of_another_keys_signature_is_unbelievable(size: int) -> None:
    for record in FOREIGN.sign([draft(at) for at in range(size)]):
        assert_unbelievable(raw_of(record))


def test_read_of_an_unknown_kid_is_unbelievable() -> None:
    assert_unbelievable(raw_of(replace(GATEWAY, kid="gw-2").sign([draft()])[0]))


def test_read_of_a_swapped_actor_is_unbelievable() -> None:
    mallory = ANN.model_copy(update={"subject": "mallory"})
    record = GATEWAY.sign([draft()])[0]
    assert_unbelievable(with_headers(record, placet_envelope=mallory.model_dump_json().encode()))


def test_read_with_anothers_envelope_and_proof_is_unbelievable() -> None:
    ann, bob = GATEWAY.sign([draft(0), draft(1, ANN.model_copy(update={"subject": "bob"}))])
    theirs = dict(bob.headers)
    assert_unbelievable(with_headers(ann, placet_envelope=theirs["placet_envelope"]))
    assert_unbelievable(
        with_headers(
            ann,
            placet_envelope=theirs["placet_envelope"],
            placet_signature=theirs["placet_signature"],
            placet_tenant=None,
        )
    )


def test_read_of_a_moved_record_is_unbelievable() -> None:
    record = GATEWAY.sign([draft()])[0]
    other = b"acme/default/run-2"
    moved = with_headers(record, ce_subject=other)
    assert_unbelievable(moved._replace(key=other))


def test_read_of_an_altered_body_is_unbelievable() -> None:
    record = GATEWAY.sign([draft()])[0]
    assert_unbelievable(
        raw_of(record._replace(value=codec.encode(DecideHold(hold_id="h-0", decision="reject"))))
    )


def test_read_under_another_command_id_is_unbelievable() -> None:
    assert_unbelievable(with_headers(GATEWAY.sign([draft()])[0], ce_id=b"c-1"))


def test_read_of_parts_shifted_between_fields_is_unbelievable() -> None:
    record = GATEWAY.sign([draft()])[0]
    shifted = record._replace(key=record.key + b"c", headers=record.headers)
    assert_unbelievable(with_headers(shifted, ce_id=b"-0", ce_subject=shifted.key))


@given(st.data())
def test_read_with_any_bit_of_the_signed_parts_turned_is_unbelievable(data: st.DataObject) -> None:
    record = GATEWAY.sign([draft(at) for at in range(5)])[data.draw(st.integers(0, 4))]
    names = ["key", "value", "ce_id", "placet_envelope", "placet_signature"]
    name = data.draw(st.sampled_from(names))
    parts = {**dict(record.headers), "key": record.key, "value": record.value}
    turned = bytearray(parts[name])
    turned[data.draw(st.integers(0, len(turned) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    parts[name] = bytes(turned)
    headers = tuple((header, parts[header]) for header, _ in record.headers)
    with pytest.raises(UnreadableRecord):
        verifier().read(raw_of(OutRecord(parts["key"], parts["value"], headers)))


@given(st.integers(1, 9), st.integers(0, 10), st.integers(0, 10), st.data())
def test_read_with_another_size_or_index_is_unbelievable(
    count: int, size: int, index: int, data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, count - 1))
    record = GATEWAY.sign([draft(number) for number in range(count)])[at]
    kid, _, _, path, signature = dict(record.headers)["placet_signature"].decode().split(".")
    raw = with_headers(record, placet_signature=f"{kid}.{size}.{index}.{path}.{signature}".encode())
    if (size, index) == (count, at):
        assert verifier().read(raw).command_id == f"c-{at}"
    else:
        assert_unbelievable(raw)


@given(st.integers(1, 6), st.data())
def test_read_with_another_path_is_unbelievable(count: int, data: st.DataObject) -> None:
    records = GATEWAY.sign([draft(at) for at in range(count)])
    record = records[data.draw(st.integers(0, count - 1))]
    kid, size, index, path, signature = dict(record.headers)["placet_signature"].decode().split(".")
    other = data.draw(st.sampled_from(["", path + "A" * 43, path[:43], "A" * 43, path[::-1], "A" * 100_000]))
    if other != path:
        raw = with_headers(record, placet_signature=f"{kid}.{size}.{index}.{other}.{signature}".encode())
        assert_unbelievable(raw)


@pytest.mark.parametrize("number", ["9" * 9, "9" * 5000, "-1", "1e3", "0x1", "٣", ""])
def test_read_with_an_absurd_size_or_index_is_unbelievable(number: str) -> None:
    record = GATEWAY.sign([draft(0), draft(1)])[1]
    kid, size, index, path, signature = dict(record.headers)["placet_signature"].decode().split(".")
    for text in (f"{kid}.{number}.{index}.{path}.{signature}", f"{kid}.{size}.{number}.{path}.{signature}"):
        assert_unbelievable(with_headers(record, placet_signature=text.encode()))


@pytest.mark.parametrize(
    ("name", "reason"),
    [("ce_id", "malformed"), ("placet_envelope", "unbelievable"), ("placet_signature", "unbelievable")],
)
def test_read_without_a_header_is_unreadable(name: str, reason: str) -> None:
    assert_unbelievable(with_headers(GATEWAY.sign([draft()])[0], **{name: None}), reason)


@pytest.mark.parametrize("text", [b"", b"x" * 129, b"a b", b"a\x00", "é".encode(), b"\xff"])
def test_read_of_a_command_id_outside_the_alphabet_is_malformed(text: bytes) -> None:
    assert_unbelievable(with_headers(GATEWAY.sign([draft()])[0], ce_id=text), "malformed")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ce_type", b"placet.commands.ClaimHold"),
        ("ce_type", b"\xff"),
        ("ce_subject", b"acme/default/run-2"),
        ("placet_tenant", b"rival"),
    ],
)
def test_read_with_a_label_that_lies_is_malformed(name: str, value: bytes) -> None:
    assert_unbelievable(with_headers(GATEWAY.sign([draft()])[0], **{name: value}), "malformed")


def test_read_with_a_header_twice_is_malformed() -> None:
    record = GATEWAY.sign([draft()])[0]
    again = ("placet_envelope", dict(record.headers)["placet_envelope"])
    assert_unbelievable(raw_of(record._replace(headers=(again, *record.headers))), "malformed")


def test_read_of_an_event_is_malformed() -> None:
    record = GATEWAY.sign([draft()])[0]
    assert_unbelievable(raw_of(record._replace(value=codec.encode(HoldClaimed(hold_id="h", by="ann")))))
    drafts = [Draft(HoldClaimed(hold_id="h", by="ann"), ANN, "c", KEY)]
    assert_unbelievable(raw_of(GATEWAY.sign(drafts)[0]), "malformed")


def test_read_of_neither_signature_nor_token_is_unbelievable() -> None:
    record = GATEWAY.sign([draft()])[0]
    assert_unbelievable(with_headers(record, placet_signature=None))


@given(
    raw_records(
        dict(GATEWAY.sign([draft(0), draft(1)])[1].headers),
        st.just(KEY) | st.binary(max_size=20),
        st.just(codec.encode(draft(1).body)) | st.binary(max_size=60),
    )
)
def test_read_of_any_record_is_a_command_or_unreadable(raw: RawRecord) -> None:
    try:
        command = verifier().read(raw)
    except UnreadableRecord:
        return
    assert (command.actor, command.body, command.command_id) == (ANN, draft(1).body, "c-1")


@pytest.mark.parametrize("model", BY_TOKEN, ids=lambda model: model.__name__)
def test_read_of_an_agents_own_command_by_token_is_believed(model: type[Message]) -> None:
    body = samples.full(model)
    command = verifier().read(raw_of(with_token(draft(body=body, actor=BOT), "good")))
    assert (command.body, command.actor) == (body, BOT)


@pytest.mark.parametrize(
    "model", [model for model in COMMANDS if model not in BY_TOKEN], ids=lambda model: model.__name__
)
def test_read_of_any_other_command_by_token_is_unbelievable(model: type[Message]) -> None:
    assert_unbelievable(raw_of(with_token(draft(body=samples.full(model), actor=BOT), "good")))


def test_read_by_a_persons_token_is_unbelievable() -> None:
    reader = Verifier(KEYS.get, lambda token, at_ms: ANN)
    raw = raw_of(with_token(draft(body=samples.full(ProposeToolCall)), "good"))
    with pytest.raises(UnreadableRecord, match="an agent's"):
        reader.read(raw)


@pytest.mark.parametrize("token", ["", "bad", "é", "x" * 10_000])
def test_read_by_a_refused_token_is_unbelievable(token: str) -> None:
    assert_unbelievable(raw_of(with_token(draft(body=samples.full(ReportResult)), token)))


def test_read_by_a_token_of_bytes_is_unbelievable() -> None:
    record = with_token(draft(body=samples.full(ReportResult)), "good")
    assert_unbelievable(with_headers(record, placet_token=b"\xff\xfe"))


def test_read_of_a_false_signature_is_not_saved_by_a_good_token() -> None:
    record = with_token(draft(body=samples.full(ReportResult), actor=BOT), "good")
    assert_unbelievable(with_headers(record, placet_signature=b"gw-1.1.0.." + b"A" * 86))


def test_read_with_a_failing_key_store_lets_the_failure_through() -> None:
    def broken(kid: str) -> None:
        raise OSError("gateways.json cannot be read")

    with pytest.raises(OSError, match=r"gateways\.json"):
        Verifier(broken, no_token).read(raw_of(GATEWAY.sign([draft()])[0]))


@pytest.mark.parametrize("field", ["subject", "tenant", "project", "agent"])
def test_actor_with_a_lone_surrogate_cannot_exist(field: str) -> None:
    with pytest.raises(ValueError, match="unicode"):
        Actor.model_validate({**BOT.model_dump(), field: "\ud800"})


@pytest.mark.parametrize("name", [f"{TIMER_IDS}x", f"{DECIDER_IDS}x"])
def test_case_29_ids_of_timer_and_deciders_are_believed_of_nobody_else(name: str) -> None:
    by_gateway = GATEWAY.sign([draft()])[0]
    by_token = with_token(draft(body=samples.full(ReportResult), actor=BOT), "good")
    signed = GATEWAY.sign([replace(draft(), command_id=name)])[0]

    assert_unbelievable(raw_of(signed))
    assert_unbelievable(with_headers(by_token, ce_id=name.encode()))
    assert verifier().read(raw_of(by_gateway)).by_token is False
