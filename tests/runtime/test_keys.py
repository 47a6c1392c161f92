"""Public keys from a file that changes while it is used."""

from __future__ import annotations

import base64
import json
import re
import stat
from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from host.key_files import DECIDER_KEY, DECIDERS, KeysUnreadable
from host.public_keys import PublicKeyFile
from schemas.actor import Actor, decider_actor
from schemas.commands import ClaimHold, MakeRule
from schemas.envelope import Draft, Signer, Verifier
from schemas.ids import definition_key, execution_key
from schemas.record import RawRecord, UnreadableRecord
from services.runtime import main


@dataclass
class Clock:
    now_s: float = 0.0

    def __call__(self) -> float:
        return self.now_s


def text_of(key: Ed25519PrivateKey) -> str:
    return base64.b64encode(key.public_key().public_bytes_raw()).decode()


def test_key_known_found_and_unknown_none(tmp_path: Path) -> None:
    key = Ed25519PrivateKey.generate()
    path = tmp_path / "gateways.json"
    path.write_text(json.dumps({"g1": text_of(key)}))
    keys = PublicKeyFile(path, Clock())
    assert keys("g1") == key.public_key()
    assert keys("g2") is None


def test_key_added_later_found_after_a_second(tmp_path: Path) -> None:
    first, second = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    path, clock = tmp_path / "gateways.json", Clock()
    path.write_text(json.dumps({"g1": text_of(first)}))
    keys = PublicKeyFile(path, clock)
    assert keys("g1") == first.public_key()
    path.write_text(json.dumps({"g1": text_of(first), "g2": text_of(second)}))
    clock.now_s = 0.9
    assert keys("g2") is None
    clock.now_s = 1.0
    assert keys("g2") == second.public_key()


def test_key_withdrawn_is_believed_no_longer_than_a_second(tmp_path: Path) -> None:
    first, second = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    path, clock = tmp_path / "gateways.json", Clock()
    path.write_text(json.dumps({"g1": text_of(first), "g2": text_of(second)}))
    keys = PublicKeyFile(path, clock)
    assert keys("g1") == first.public_key()
    path.write_text(json.dumps({"g2": text_of(second)}))
    clock.now_s = 1.0
    assert keys("g1") is None
    assert keys("g2") == second.public_key()


def test_key_known_needs_no_file(tmp_path: Path) -> None:
    key = Ed25519PrivateKey.generate()
    path, clock = tmp_path / "gateways.json", Clock()
    path.write_text(json.dumps({"g1": text_of(key)}))
    keys = PublicKeyFile(path, clock)
    keys("g1")
    path.unlink()
    clock.now_s = 5.0
    assert keys("g1") == key.public_key()
    with pytest.raises(KeysUnreadable):
        keys("g2")


@pytest.mark.parametrize("text", [None, "", "[]", '{"g": 1}', '{"g": "AAAA"}', '{"g": "not base64"}', "\xff"])
def test_file_unreadable_said_loudly(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "gateways.json"
    if text is not None:
        path.write_text(text, encoding="latin-1")
    with pytest.raises(KeysUnreadable, match=re.escape(f"The public keys in {path} cannot be read")):
        PublicKeyFile(path)("g")


def test_envelope_signed_by_a_key_of_the_file_believed(tmp_path: Path) -> None:
    key, stranger = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    path = tmp_path / "gateways.json"
    path.write_text(json.dumps({"g1": text_of(key)}))
    actor = Actor(subject="s", tenant="t", project="p")
    draft = Draft(ClaimHold(hold_id="hold"), actor, "c1", execution_key("t", "p", "e"))

    def refuse(token: str, at_ms: int) -> Actor:
        raise ValueError(f"{token} at {at_ms}")

    verifier = Verifier(PublicKeyFile(path), refuse)
    for signer, believed in ((Signer("g1", key), True), (Signer("g1", stranger), False)):
        (sent,) = signer.sign([draft])
        raw = RawRecord(0, 0, 0, sent.key, sent.value, sent.headers)
        if believed:
            assert verifier.read(raw).actor == actor
        else:
            with pytest.raises(UnreadableRecord, match="unbelievable"):
                verifier.read(raw)


def test_decider_signs_with_a_key_of_its_own_that_its_peers_believe(tmp_path: Path) -> None:
    (tmp_path / "gateways.json").write_text("{}")
    (tmp_path / "issuers.json").write_text("{}")
    signer = main._signer(tmp_path)
    assert stat.S_IMODE((tmp_path / DECIDER_KEY).stat().st_mode) == 0o600
    assert main._signer(tmp_path).kid == signer.kid

    body = MakeRule(rule_id="r", document="{}")
    draft = Draft(body, decider_actor("t", "p"), "c1", definition_key("t", "rule", "r"))
    (sent,) = signer.sign([draft])
    raw = RawRecord(0, 0, 0, sent.key, sent.value, sent.headers)
    assert main._verifier(tmp_path).read(raw).body == body
    (tmp_path / DECIDERS).write_text("{}")
    with pytest.raises(UnreadableRecord, match="unbelievable"):
        main._verifier(tmp_path).read(raw)
