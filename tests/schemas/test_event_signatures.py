"""What a decider signed, where it stands, counts; everything else is refused."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import schemas.ed25519
from host.key_files import DECIDER_KEY, DECIDERS, SigningKey, load_published
from schemas.event_signatures import (
    ANYWHERE,
    DISPLACED_MAX,
    HEADER,
    SIGNATURE_MAX_BYTES,
    EventSigner,
    LogSignatures,
    TopicSignatures,
    event_signer_of,
    load_signatures,
    signs,
)
from schemas.events.calls import ToolCallCancelled
from schemas.events.log import WriterClaimed
from schemas.headers import event_record, read_event, read_meta
from schemas.message import Message
from schemas.record import EventMeta, OutRecord, RawRecord
from schemas.signed_from import (
    COPY,
    SIGNED_FROM,
    SignedFromUnreadable,
    Since,
    installed_signed_from,
    owes,
    read_signed_from,
    switched,
    write_signed_from,
)
from schemas.term import TermRule, rule_of

TOPIC = "placet.executions"
KEY = SigningKey("d1", Ed25519PrivateKey.generate())
SIGNER = EventSigner(KEY)


def signatures(*since: Since) -> TopicSignatures:
    return TopicSignatures(TOPIC, {"d1": KEY.private_key.public_key()}.get, since)


def record(body: Message, term: int, number: int = 1) -> OutRecord:
    meta = EventMeta(f"e{number}", 0, term, number, "c", "", "acme")
    return event_record(body, meta, b"_log/0" if isinstance(body, WriterClaimed) else b"acme/p/x")


def cancelled(term: int = 0, number: int = 1) -> OutRecord:
    return record(ToolCallCancelled(call_id=f"c{number}", reason=""), term, number)


def claim(after: int = -1) -> OutRecord:
    return record(WriterClaimed(claim_id=f"after {after}", after=after, worker="w"), after)


def at(offset: int, out: OutRecord, partition: int = 0) -> RawRecord:
    return RawRecord(partition, offset, 0, *out)


def signed_raws(base: int, *records: OutRecord, partition: int = 0, topic: str = TOPIC) -> list[RawRecord]:
    """A batch as it stands in the log."""
    signed = SIGNER.sign(topic, partition, base, records)
    return [at(max(base, 0) + index, out, partition) for index, out in enumerate(signed)]


def counts(raws: list[RawRecord], rule: TermRule) -> list[int]:
    return [raw.offset for raw in raws if rule.admits(read_event(raw), raw)]


@pytest.mark.parametrize("count", [1, 2, 16, 17, 64, 100])
def test_signed_batch_where_it_was_signed_for_counts(count: int) -> None:
    raws = [*signed_raws(ANYWHERE, claim()), *signed_raws(1, *[cancelled(number=n) for n in range(count)])]
    assert counts(raws, TermRule(signatures=signatures())) == list(range(count + 1))
    assert max(len(raw.headers[-1][1]) + len(HEADER) + 10 for raw in raws) <= SIGNATURE_MAX_BYTES


def test_case_32_unsigned_record_in_the_term_in_force_counts_for_nobody() -> None:
    rule = TermRule(signatures=signatures())
    raws = [
        *signed_raws(ANYWHERE, claim()),
        at(1, cancelled()),
        at(2, claim(after=0)),
        *signed_raws(3, cancelled()),
    ]
    assert counts(raws, rule) == [0, 3]
    assert rule.claim == 0
    assert rule.signatures is not None
    assert rule.signatures.forged == 2


def test_case_32_signed_record_copied_to_another_place_does_not_count() -> None:
    first, second = signed_raws(1, cancelled(number=1), cancelled(number=2))
    found = signatures()
    assert found.vouches(first)
    assert not found.vouches(first._replace(offset=2))
    assert not found.vouches(second._replace(offset=1))
    assert not found.vouches(second._replace(offset=7))
    assert not found.vouches(first._replace(partition=1))
    (elsewhere,) = signed_raws(1, cancelled(), topic="placet.definitions")
    assert not found.vouches(elsewhere)


def test_case_32_any_changed_byte_of_a_signed_record_is_noticed() -> None:
    (raw,) = signed_raws(1, cancelled())
    found = signatures()
    *labels, (name, proof) = raw.headers
    assert not found.vouches(raw._replace(value=raw.value[:-1] + bytes([raw.value[-1] ^ 1])))
    assert not found.vouches(raw._replace(key=b"acme/p/y"))
    for index, (label, value) in enumerate(labels):
        changed = [*labels]
        changed[index] = (label, value + b"0")
        assert not found.vouches(raw._replace(headers=(*changed, (name, proof)))), label
    more = (*labels, ("x", b""), (name, proof))
    assert not found.vouches(raw._replace(headers=more))
    assert not found.vouches(raw._replace(headers=(*raw.headers, ("x", b""))))
    assert not found.vouches(raw._replace(headers=tuple(labels)))
    for text in (b"", b"d1", b"d1.1.0..", proof + b"A", proof.replace(b"d1", b"d2"), b"\xff"):
        assert not found.vouches(raw._replace(headers=(*labels, (name, text))))


def test_case_32_copy_of_what_counted_is_a_forgery_wherever_it_stands() -> None:
    found = signatures()
    assert found.vouches(signed_raws(ANYWHERE, claim())[0]._replace(offset=0))
    (first,) = signed_raws(1, cancelled())
    assert found.vouches(first)
    assert not found.vouches(first._replace(offset=2))
    assert not found.vouches(first._replace(offset=300))
    assert (found.forged, found.displaced) == (2, 0)


def test_case_32_forged_record_costs_few_signatures(monkeypatch: pytest.MonkeyPatch) -> None:
    verified: list[bytes] = []

    def refuses(key: object, signature: bytes, signed: bytes) -> bool:
        verified.append(signed)
        return False

    monkeypatch.setattr(schemas.ed25519, "verifies", refuses)
    found = signatures()
    forged = signed_raws(1, *[cancelled(number=n) for n in range(16)])
    for distance in range(1, 1_001):
        assert not found.vouches(forged[distance % 16]._replace(offset=distance * 7))
    assert len(verified) <= 1_000 * (2 + DISPLACED_MAX)


def test_case_32_key_of_nobody_signs_nothing() -> None:
    mallory = EventSigner(SigningKey("d1", Ed25519PrivateKey.generate()))
    (out,) = mallory.sign(TOPIC, 0, 1, [cancelled()])
    assert not signatures().vouches(at(1, out))


def test_claim_counts_wherever_it_lands_and_a_copy_of_it_never_again() -> None:
    rule = TermRule(signatures=signatures())
    (first,) = signed_raws(ANYWHERE, claim())
    (second,) = signed_raws(ANYWHERE, claim(after=4))
    raws = [first._replace(offset=4), second._replace(offset=9), first._replace(offset=10)]
    assert counts(raws, rule) == [4, 9]
    # One that was signed as a claim is nothing else, and the other way round.
    assert not signatures().vouches(signed_raws(3, claim())[0]._replace(offset=3))
    (loose,) = SIGNER.sign(TOPIC, 0, ANYWHERE, [cancelled()])
    assert not signatures().vouches(at(5, loose))


def test_records_of_before_signing_began_count_unsigned_and_none_later() -> None:
    raws = [at(0, claim()), at(1, cancelled()), at(2, cancelled()), at(3, claim(after=0))]
    assert counts(raws, TermRule(signatures=signatures(2))) == [0, 1]
    # A partition that the file does not name must be signed from its beginning.
    other = [raw._replace(partition=1) for raw in raws]
    assert counts(other, TermRule(signatures=signatures(2))) == []


def test_record_whose_body_cannot_be_read_needs_a_signature_too() -> None:
    (raw,) = signed_raws(1, cancelled())
    unsigned = raw._replace(headers=raw.headers[:-1])
    rule = TermRule(0, signatures())
    assert rule.admits_unread(read_meta(raw), raw)
    assert not rule.admits_unread(read_meta(unsigned), unsigned)


def test_rule_without_the_record_admits_nothing_where_signatures_are_owed() -> None:
    assert not TermRule(0, signatures()).admits(read_event(signed_raws(1, cancelled())[0]))


def test_text_is_good_for_its_purpose_and_by_its_key_alone() -> None:
    keys = {"d1": KEY.private_key.public_key()}.get
    signed = SIGNER.sign_text(b"snapshot", "where it stands")
    assert signed.is_good(b"snapshot", keys)
    assert not signed.is_good(b"other", keys)
    assert not signed._replace(text="elsewhere").is_good(b"snapshot", keys)
    assert not signed._replace(kid="d2").is_good(b"snapshot", keys)
    assert not signed._replace(signature="not hex").is_good(b"snapshot", keys)


def test_seals_of_an_installation_read_its_files_also_in_another_process(tmp_path: Path) -> None:
    settings = {"keys_dir": str(tmp_path)}
    load_published(tmp_path, DECIDER_KEY, DECIDERS)
    with pytest.raises(SignedFromUnreadable, match=SIGNED_FROM):
        load_signatures(settings)
    write_signed_from(tmp_path / SIGNED_FROM, {TOPIC: (0, 5)})
    found = load_signatures(settings)
    assert isinstance(found, LogSignatures)
    (out,) = event_signer_of(settings).sign(TOPIC, 0, 1, [cancelled()])
    for known in (found, pickle.loads(pickle.dumps(found))):
        rule = rule_of(known, TOPIC, 0)
        assert counts([at(1, out), at(2, cancelled())], rule) == [1]
        assert known.of(TOPIC).vouches(at(4, cancelled(), partition=1))
        assert not known.of(TOPIC).vouches(at(5, cancelled(), partition=1))


def test_signatures_are_switched_off_by_that_word_alone(tmp_path: Path) -> None:
    assert load_signatures({"keys_dir": str(tmp_path), "log_signatures": "off"}) is None
    for word in ("", "required", "no", "Off"):
        with pytest.raises(SignedFromUnreadable):
            load_signatures({"keys_dir": str(tmp_path), "log_signatures": word})


@pytest.mark.parametrize("text", ["", "[]", '{"t": 1}', '{"t": ["x"]}', '{"t": [null]}'])
def test_damaged_signed_from_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / SIGNED_FROM).write_text(text)
    with pytest.raises(SignedFromUnreadable, match="does not say"):
        load_signatures({"keys_dir": str(tmp_path)})


def test_signed_from_is_private_and_json(tmp_path: Path) -> None:
    path = tmp_path / SIGNED_FROM
    write_signed_from(path, {TOPIC: (1, 2)})
    assert json.loads(path.read_text()) == {TOPIC: [1, 2]}
    assert path.stat().st_mode & 0o077 == 0


def test_signatures_are_owed_but_where_signing_was_off() -> None:
    found = signatures((1, 3, 5))
    unsigned = [at(offset, cancelled()) for offset in range(7)]
    assert [found.vouches(raw) for raw in unsigned] == [True, False, False, True, True, False, False]
    assert found.forged == 4


def test_switching_is_kept_and_where_nothing_changes_nothing_is() -> None:
    assert switched(0, 7, on=True) == 0
    assert switched(0, 7, on=False) == (0, 7)
    assert switched((0, 7), 9, on=False) == (0, 7)
    assert switched((0, 7), 9, on=True) == (0, 7, 9)


def test_switching_of_a_log_that_was_restored_shorter_owes_what_comes() -> None:
    assert switched((0, 120), 100, on=True) == (0, 100, 100)
    assert [owes((0, 100, 100), offset) for offset in (0, 99, 100, 130)] == [True] * 4


@pytest.mark.parametrize(
    ("word", "since"),
    [("required", (0, 500)), ("off", 0), ("off", (0, 500, 700))],
    ids=["on", "off", "off-again"],
)
def test_setting_that_nobody_switched_in_the_file_is_refused(tmp_path: Path, word: str, since: Since) -> None:
    """Else nobody would check what is signed, or no claim would count, without a sign of it."""
    write_signed_from(tmp_path / SIGNED_FROM, {TOPIC: (since,)})
    with pytest.raises(SignedFromUnreadable, match="stop every decider"):
        load_signatures({"keys_dir": str(tmp_path), "log_signatures": word})


def test_while_signing_is_off_what_was_owed_before_is_owed_still(tmp_path: Path) -> None:
    settings = {"keys_dir": str(tmp_path), "log_signatures": "off"}
    write_signed_from(tmp_path / SIGNED_FROM, {TOPIC: ((0, 5), (3, 4))})
    found = load_signatures(settings)
    assert found is not None
    assert not signs(settings)
    assert found.since == {TOPIC: ((0, 5), (3, 4))}
    event_signer_of(settings)
    assert not found.of(TOPIC).vouches(at(4, cancelled()))
    assert found.of(TOPIC).vouches(at(5, cancelled()))


def test_missing_signed_from_is_made_again_from_its_copy_alone(tmp_path: Path) -> None:
    path = tmp_path / SIGNED_FROM
    write_signed_from(path, {TOPIC: (0, (0, 5, 9))})
    path.unlink()
    assert installed_signed_from(path) == {TOPIC: (0, (0, 5, 9))}
    # A role takes the file that the installation wrote, and no copy; also where nothing is signed any more.
    for word in ("required", "off"):
        with pytest.raises(SignedFromUnreadable, match=r"is missing, .*`placet up` or"):
            load_signatures({"keys_dir": str(tmp_path), "log_signatures": word})


def test_damaged_signed_from_names_the_way_back_that_is_there(tmp_path: Path) -> None:
    path = tmp_path / SIGNED_FROM
    write_signed_from(path, {TOPIC: (0,)})
    path.write_text("")
    for read in (read_signed_from, installed_signed_from):
        with pytest.raises(SignedFromUnreadable, match=rf"copy .*{COPY} over it"):
            read(path)
    shutil.copy(tmp_path / COPY, path)
    assert installed_signed_from(path) == {TOPIC: (0,)}
    path.write_text("")
    (tmp_path / COPY).unlink()
    with pytest.raises(SignedFromUnreadable, match="restore it from a backup or another host"):
        installed_signed_from(path)


def test_damaged_copy_is_refused_and_made_again_once_it_is_removed(tmp_path: Path) -> None:
    path = tmp_path / SIGNED_FROM
    write_signed_from(path, {TOPIC: (0,)})
    (tmp_path / COPY).write_text("[")
    with pytest.raises(SignedFromUnreadable, match=f"remove it if .*{SIGNED_FROM} is known to be right"):
        installed_signed_from(path)
    path.unlink()
    with pytest.raises(SignedFromUnreadable, match=r"restore it or .* from a backup"):
        installed_signed_from(path)


@pytest.mark.parametrize(
    ("copied", "written", "is_taken"),
    [
        ((0, 0), (0, (0, 7)), True),
        (((0, 7), 0), ((0, 7, 9), 0), True),
        ((0,), (0, 0), True),
        ((0, 0), (0, 435), False),
        (((0, 7, 9),), (0,), False),
        ((0, 0), (0,), False),
    ],
    ids=["switched off", "switched on", "more partitions", "moved", "older", "cut"],
)
def test_signed_from_that_does_not_go_on_from_its_copy_is_refused(
    tmp_path: Path, copied: tuple[Since, ...], written: tuple[Since, ...], is_taken: bool
) -> None:
    """Whether it was changed on purpose is for the operator to say, who removes the copy."""
    path = tmp_path / SIGNED_FROM
    write_signed_from(path, {TOPIC: copied})
    kept = (tmp_path / COPY).read_bytes()
    write_signed_from(path, {TOPIC: written})
    (tmp_path / COPY).write_bytes(kept)
    if not is_taken:
        with pytest.raises(SignedFromUnreadable, match=f"differs about {TOPIC}"):
            installed_signed_from(path)
        (tmp_path / COPY).unlink()
    assert installed_signed_from(path) == {TOPIC: written}
