from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from gateway.identity.issuer import issue
from gateway.identity.keys import Keys, load_or_create
from schemas.actor import Actor
from schemas.token import AUDIENCE, ISSUER, PublicKeys, TokenRefused, read_claims, unverified_issuer, verify

NOW = 1_800_000_000.0


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return load_or_create(tmp_path_factory.mktemp("keys"))


@pytest.fixture
def public(keys: Keys) -> PublicKeys:
    return keys.issuers.get


Forge = Callable[..., str]


@pytest.fixture
def forge(keys: Keys) -> Forge:
    def forged(drop: str = "", **changed: Any) -> str:
        claims: dict[str, Any] = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "sub": "anna",
            "iat": int(NOW) - 10,
            "exp": int(NOW) + 60,
            "jti": "t1",
            "tenant": "acme",
            "project": "books",
            "roles": ["reviewer"],
        }
        claims.update(changed)
        claims.pop(drop, None)
        return jwt.encode(claims, keys.issuer.private_key, "EdDSA", headers={"kid": keys.issuer.kid})

    return forged


def test_verify_good_token_gives_the_actor(forge: Forge, public: PublicKeys) -> None:
    assert verify(forge(), public, NOW) == Actor(
        subject="anna", tenant="acme", project="books", roles=("reviewer",)
    )


@pytest.mark.parametrize("claim", ["iss", "aud", "sub", "exp", "iat", "jti", "tenant", "project", "roles"])
def test_verify_claim_missing_refused(forge: Forge, public: PublicKeys, claim: str) -> None:
    with pytest.raises(TokenRefused):
        verify(forge(drop=claim), public, NOW)


@pytest.mark.parametrize(
    "changed",
    [
        {"iss": "somebody"},
        {"aud": "other"},
        {"aud": [AUDIENCE, "other"]},
        {"exp": int(NOW)},
        {"exp": str(int(NOW) + 60)},
        {"exp": float("inf")},
        {"exp": True},
        {"iat": int(NOW) + 3600},
        {"nbf": int(NOW) + 3600},
        {"roles": "admin"},
        {"tenant": "_log"},
        {"sub": "anna "},
        {"sub": " anna"},
        {"roles": []},
        {"roles": [1]},
        {"roles": ["system"]},
        {"roles": ["agent"]},
        {"sub": ""},
        {"sub": "placet:timer"},
        {"sub": "an\u202ena"},
        {"tenant": "acme/books"},
        {"tenant": ""},
        {"project": "../x"},
        {"agent": "a/b"},
        {"agent": 7},
        {"user": 7},
    ],
    ids=str,
)
def test_verify_claim_wrong_refused(forge: Forge, public: PublicKeys, changed: dict[str, Any]) -> None:
    with pytest.raises(TokenRefused):
        verify(forge(**changed), public, NOW)


HALF = "\ud800"


@pytest.mark.parametrize(
    "changed",
    [
        {"sub": f"anna{HALF}"},
        {"jti": HALF},
        {"tenant": HALF},
        {"roles": ["reviewer", HALF]},
        {"agent": HALF},
        {"user": HALF},
        {"name": {"deep": [HALF]}},
        {HALF: 1},
    ],
    ids=["sub", "jti", "tenant", "roles", "agent", "user", "deep", "name"],
)
def test_verify_claim_that_is_no_unicode_refused(
    forge: Forge, public: PublicKeys, changed: dict[str, Any]
) -> None:
    with pytest.raises(TokenRefused) as refused:
        read_claims(forge(**changed), public, NOW)
    str(refused.value).encode()


def test_verify_nested_without_end_refused(public: PublicKeys, keys: Keys) -> None:
    deep = base64.urlsafe_b64encode(b"[" * 2_900).decode().rstrip("=")
    for token in (f"{deep}.{deep}.e30", f"{_part({'alg': 'EdDSA', 'kid': keys.issuer.kid})}.{deep}.e30"):
        for read in (lambda text: verify(text, public, NOW), unverified_issuer):
            with pytest.raises(TokenRefused):
                read(token)


def test_text_that_is_no_token_is_told_what_one_looks_like(public: PublicKeys) -> None:
    for read in (unverified_issuer, lambda text: verify(text, public, NOW)):
        with pytest.raises(
            TokenRefused, match=r"not a token: a token is three parts .* `placet token issue`"
        ):
            read("garbage")


def _part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def test_verify_algorithm_none_refused(forge: Forge, public: PublicKeys, keys: Keys) -> None:
    payload = forge().split(".")[1]
    for alg in ("none", "None", "NONE", ""):
        unsigned = f"{_part({'alg': alg, 'typ': 'JWT', 'kid': keys.issuer.kid})}.{payload}."
        with pytest.raises(TokenRefused):
            verify(unsigned, public, NOW)


def test_verify_hmac_with_the_public_key_refused(forge: Forge, public: PublicKeys, keys: Keys) -> None:
    import hashlib
    import hmac

    raw = keys.issuer.private_key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    head = f"{_part({'alg': 'HS256', 'typ': 'JWT', 'kid': keys.issuer.kid})}.{forge().split('.')[1]}"
    mac = hmac.new(raw, head.encode(), hashlib.sha256).digest()
    with pytest.raises(TokenRefused):
        verify(f"{head}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}", public, NOW)


def test_verify_rsa_under_our_key_id_refused(forge: Forge, public: PublicKeys, keys: Keys) -> None:
    claims = jwt.decode(forge(), options={"verify_signature": False})
    private = rsa.generate_private_key(65537, 2048)
    with pytest.raises(TokenRefused):
        verify(jwt.encode(claims, private, "RS256", headers={"kid": keys.issuer.kid}), public, NOW)


def test_verify_unknown_key_refused(forge: Forge, public: PublicKeys, keys: Keys) -> None:
    claims = jwt.decode(forge(), options={"verify_signature": False})
    stranger = Ed25519PrivateKey.generate()
    for kid in ("stranger", keys.issuer.kid):
        with pytest.raises(TokenRefused):
            verify(jwt.encode(claims, stranger, "EdDSA", headers={"kid": kid}), public, NOW)


def test_verify_changed_payload_refused(forge: Forge, public: PublicKeys) -> None:
    head, _, signature = forge().split(".")
    other = forge(roles=["admin"]).split(".")[1]
    with pytest.raises(TokenRefused):
        verify(f"{head}.{other}.{signature}", public, NOW)


@pytest.mark.parametrize("text", ["", "x", "a.b.c", "é.é.é", "x" * 9000, "."])
def test_verify_nonsense_refused(public: PublicKeys, text: str) -> None:
    with pytest.raises(TokenRefused):
        verify(text, public, NOW)


def test_issue_token_round_trips(tmp_path: Path) -> None:
    token = issue(tmp_path, "bot", ["agent"], "acme", "books", agent="billing", user="*", workspace="w1")
    claims = read_claims(token, load_or_create(tmp_path).issuers.get, time.time())
    assert claims.actor == Actor(
        subject="bot", tenant="acme", project="books", roles=("agent",), agent="billing"
    )
    assert (claims.user, claims.workspace) == ("*", "w1")


@pytest.mark.parametrize(
    "arguments",
    [
        ("bot", ["agent"], "acme", "books"),
        ("bot", ["agent", "reviewer"], "acme", "books", "billing"),
        ("bot", ["tool:pay"], "acme", "books", "billing"),
        ("bot", [], "acme", "books"),
        ("bot", ["system"], "acme", "books"),
        ("bot", ["analyst"], "a/b", "books"),
        ("bot", ["analyst"], "_log", "books"),
        ("bot", ["analyst"], "acme", "books", None, 0),
    ],
)
def test_issue_unbelievable_identity_refused(tmp_path: Path, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        issue(tmp_path, *arguments)


@pytest.mark.parametrize("name", [".", ".."])
@pytest.mark.parametrize("what", ["tenant", "project", "agent"])
def test_issue_a_name_that_means_another_place_in_a_url_is_refused(
    tmp_path: Path, what: str, name: str
) -> None:
    named: dict[str, Any] = {"tenant": "acme", "project": "main", "agent": "bot"} | {what: name}
    with pytest.raises(TokenRefused, match=rf"the {what} must be .* and neither \. nor \.\."):
        issue(tmp_path, "anna", ["agent"], **named)
