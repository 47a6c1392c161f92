from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import jwt
import pytest

from gateway.identity.grants import Grants
from gateway.identity.issuer import issue
from gateway.identity.keys import ISSUERS, KeysUnreadable, load_or_create, load_public, rotate
from projections.folds.calls import call_resource
from projections.folds.rows import Row
from schemas.actor import Actor
from schemas.token import TokenRefused, verify
from tests.gateway.facts import AT_MS, Partition, key_of, new_live, proposed, released, verdict

BOT = Actor(subject="bot", tenant="acme", project="books", roles=("agent",), agent="billing")
SPY = BOT.model_copy(update={"agent": "spy"})
NOW_S = AT_MS / 1000


def person(*roles: str) -> Actor:
    return Actor(subject="anna", tenant="acme", project="books", roles=roles)


def row_of(*bodies: Any) -> Row:
    """The row of a call after these events."""
    row: Row | None = None
    for event in Partition(new_live()[0]).events(key_of("e1"), "command", bodies):
        row = call_resource(row, event)
    assert row is not None
    return row


RELEASED = row_of(proposed(), verdict("c1", "allow"), released())


@pytest.fixture
def grants(tmp_path: Path) -> Grants:
    load_or_create(tmp_path)
    return Grants(tmp_path, lambda: 0.0)


def claims_of(token: str) -> dict[str, Any]:
    claims: dict[str, Any] = jwt.decode(token, options={"verify_signature": False})
    return claims


def test_token_says_what_was_released(grants: Grants) -> None:
    token = grants.token(RELEASED)
    assert claims_of(token) == {
        "iss": "placet",
        "aud": "tool:send_money",
        "sub": "billing",
        "jti": "g1",
        "iat": RELEASED["updated_at_ms"] // 1000,
        "exp": (AT_MS + 900_000) // 1000,
        "tenant": "acme",
        "project": "books",
        "execution_id": "e1",
        "call_id": "c1",
        "revision": 1,
        "digest": RELEASED["digest"],
        "tool": "send_money",
        "tool_version": "",
    }
    header = jwt.get_unverified_header(token)
    kid = grants.jwks()["keys"][0]["kid"]
    assert header == {"alg": "EdDSA", "kid": kid, "typ": "placet-grant+jwt"}


def test_token_is_verified_with_the_published_keys(grants: Grants) -> None:
    keys = jwt.PyJWKSet.from_dict(grants.jwks()).keys
    options: Any = {"verify_exp": False, "verify_iat": False}
    claims = jwt.decode(
        grants.token(RELEASED), keys[0].key, ["EdDSA"], audience="tool:send_money", options=options
    )
    assert claims["jti"] == "g1"


@pytest.mark.parametrize(
    ("actor", "is_given"),
    [
        (BOT, True),
        (person("operator"), True),
        (person("admin"), True),
        (SPY, False),
        (person("reviewer"), False),
        (person("analyst"), False),
    ],
)
def test_call_json_token_only_for_who_may_consume(grants: Grants, actor: Actor, is_given: bool) -> None:
    assert (grants.call_json(RELEASED, actor)["grant"]["token"] is not None) is is_given


@pytest.mark.parametrize("status", ["consumed", "revoked", "expired", "succeeded", "outcome_unknown"])
def test_call_json_no_token_once_it_is_not_released(grants: Grants, status: str) -> None:
    assert grants.call_json(RELEASED | {"status": status}, BOT)["grant"]["token"] is None


def test_call_json_held_call_has_no_grant(grants: Grants) -> None:
    assert grants.call_json(row_of(proposed(), verdict()), BOT)["grant"] is None


def test_token_shown_twice_is_the_same(grants: Grants, tmp_path: Path) -> None:
    assert grants.token(RELEASED) == grants.token(RELEASED) == Grants(tmp_path).token(RELEASED)


def test_token_cache_is_bounded(grants: Grants, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.identity.grants.SIGNED_MAX", 3)
    for number in range(10):
        grants.token(RELEASED | {"grant_id": f"g{number}"})
    assert len(grants._signed) == 3


def test_rotate_running_signer_takes_up_the_new_key_and_the_old_stays_published(tmp_path: Path) -> None:
    now = [0.0]
    load_or_create(tmp_path)
    grants = Grants(tmp_path, lambda: now[0])
    old = grants.token(RELEASED)
    before, after = rotate(tmp_path, "grants")
    now[0] = 1.0
    new = grants.token(RELEASED)
    assert [jwt.get_unverified_header(token)["kid"] for token in (old, new)] == [before, after]
    published = {key["kid"]: jwt.PyJWK(key).key for key in grants.jwks()["keys"]}
    assert set(published) == {before, after}
    for token, kid in ((old, before), (new, after)):
        jwt.decode(
            token,
            published[kid],
            ["EdDSA"],
            audience="tool:send_money",
            options={"verify_exp": False, "verify_iat": False},
        )


def test_jwks_of_a_running_gateway_has_a_rotated_key_at_once(grants: Grants, tmp_path: Path) -> None:
    before = {key["kid"] for key in grants.jwks()["keys"]}
    rotated = set(rotate(tmp_path, "grants"))
    assert {key["kid"] for key in grants.jwks()["keys"]} == rotated > before
    (tmp_path / "grants.json").write_text("damaged")
    with pytest.raises(KeysUnreadable, match=r"grants\.json"):
        grants.jwks()


def test_token_damaged_new_key_goes_on_with_the_old(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    load_or_create(tmp_path)
    grants = Grants(tmp_path, lambda: now[0])
    first = grants.token(RELEASED)
    (tmp_path / "grants.pem").write_bytes(b"damaged")
    now[0] = 2.0
    assert grants.token(RELEASED) == first
    assert "grants.pem" in caplog.text
    with pytest.raises(KeysUnreadable, match=r"grants\.pem"):
        Grants(tmp_path).token(RELEASED)


@pytest.mark.parametrize("name", ["issuer", "gateway", "grants"])
def test_rotate_makes_a_new_private_key_and_keeps_the_old_public_half(tmp_path: Path, name: str) -> None:
    load_or_create(tmp_path)
    before, after = rotate(tmp_path, name)
    assert before != after
    file = {"issuer": "issuers.json", "gateway": "gateways.json", "grants": "grants.json"}[name]
    assert set(load_public(tmp_path / file)) == {before, after}
    private = tmp_path / f"{name}.pem"
    assert os.stat(private).st_mode & 0o777 == 0o600
    again = load_or_create(tmp_path)
    if name != "grants":
        assert getattr(again, name).kid == after


def test_rotate_issuer_tokens_of_the_old_key_are_still_believed(tmp_path: Path) -> None:
    token = issue(tmp_path, "anna", ["reviewer"], "acme", "books")
    rotate(tmp_path, "issuer")
    import time

    assert verify(token, load_public(tmp_path / ISSUERS).get, time.time()).subject == "anna"


def test_grant_is_never_believed_as_a_bearer_token(grants: Grants, tmp_path: Path) -> None:
    token = grants.token(RELEASED)
    with pytest.raises(TokenRefused, match="known issuer"):
        verify(token, load_public(tmp_path / ISSUERS).get, NOW_S)
    # Not even where somebody has published the grants' key as an issuer's.
    with pytest.raises(TokenRefused):
        verify(token, load_public(tmp_path / "grants.json").get, NOW_S)
    key = load_or_create(tmp_path).issuer
    claims = {**claims_of(token), "aud": "placet", "roles": ["reviewer"]}
    forged = jwt.encode(claims, key.private_key, "EdDSA", headers={"kid": key.kid, "typ": "placet-grant+jwt"})
    with pytest.raises(TokenRefused, match="type"):
        verify(forged, load_public(tmp_path / ISSUERS).get, NOW_S)
