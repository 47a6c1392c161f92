from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from starlette.responses import JSONResponse, RedirectResponse, Response

from gateway.identity.issuer import issue
from gateway.identity.keys import load_or_create, load_public
from placet.grants import GrantKeysUnavailable, GrantRefused, GrantVerifier, RemoteKeys, read_jwks, verify
from schemas.grant import GrantKey
from tests.sdk.granting import ARGUMENTS, KEY, NOW_S, OTHER, claims_of, forged, grant, key_set
from tests.sdk.scripted import Asked, Scripted, serving

KEYS = read_jwks(key_set(KEY))
JWKS = "/.well-known/jwks.json"


def refused(token: Any, arguments: Any = ARGUMENTS, **more: Any) -> str:
    """The code with which a grant is refused."""
    settings: Any = {"tool": "send_money", "keys": KEYS, "now_s": NOW_S + 1, **more}
    with pytest.raises(GrantRefused) as caught:
        verify(token, arguments, **settings)
    assert not isinstance(token, str) or len(token) < 20 or token not in str(caught.value)
    return caught.value.code


def test_verify_good_grant_says_what_may_run() -> None:
    found = verify(grant(), ARGUMENTS, tool="send_money", keys=KEYS, now_s=NOW_S + 1)
    assert (found.tenant, found.project, found.execution_id, found.call_id) == ("acme", "books", "e1", "c1")
    assert (found.agent, found.tool, found.tool_version, found.revision) == ("billing", "send_money", "v1", 1)
    assert (found.digest, found.expires_at_s) == (claims_of().digest, NOW_S + 900)
    assert found.arguments == ARGUMENTS


def test_verify_raw_body_is_what_the_digest_is_over() -> None:
    body = b'{ "recipient":"GB29",\n "amount": 9.87e1 }'
    assert verify(grant(), body, tool="send_money", keys=KEYS, now_s=NOW_S).arguments == ARGUMENTS


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({**ARGUMENTS, "amount": 98.71}, "digest_mismatch"),
        ({**ARGUMENTS, "more": None}, "digest_mismatch"),
        ({"amount": 98.7}, "digest_mismatch"),
        ({**ARGUMENTS, "recipient": "GB2\u200b9"}, "digest_mismatch"),
        (b'{"amount":98.7,"amount":98.7,"recipient":"GB29"}', "malformed_arguments"),
        (b'{"amount":NaN,"recipient":"GB29"}', "malformed_arguments"),
        (b'{"amount":1e400}', "malformed_arguments"),
        (b'{"recipient":"\\ud800"}', "malformed_arguments"),
        (b"[]", "malformed_arguments"),
        (b"", "malformed_arguments"),
        (b"\xff", "malformed_arguments"),
        ({"amount": {1, 2}}, "malformed_arguments"),
    ],
    ids=str,
)
def test_verify_changed_arguments_refused(arguments: Any, code: str) -> None:
    assert refused(grant(), arguments) == code


@pytest.mark.parametrize(
    ("claims", "code"),
    [
        ({"tool": "shell", "aud": "tool:shell"}, "wrong_tool"),
        ({"aud": "tool:shell"}, "wrong_tool"),
        ({"aud": ["tool:send_money", "tool:shell"]}, "wrong_tool"),
        ({"tool": "shell"}, "wrong_tool"),
        ({"aud": "placet"}, "wrong_tool"),
        ({"iss": "somebody"}, "malformed"),
        ({"exp": NOW_S}, "expired"),
        ({"exp": float(NOW_S + 900)}, "malformed"),
        ({"exp": True}, "malformed"),
        ({"iat": NOW_S + 3600}, "not_yet_valid"),
        ({"revision": "1"}, "malformed"),
        ({"tenant": None}, "malformed"),
        ({"tenant": "other"}, "digest_mismatch"),
        ({"sub": "somebody"}, "digest_mismatch"),
        ({"tool_version": "v2"}, "digest_mismatch"),
        ({"digest": "0" * 64}, "digest_mismatch"),
    ],
    ids=str,
)
def test_verify_claim_wrong_refused(claims: dict[str, Any], code: str) -> None:
    assert refused(forged(claims=claims), now_s=NOW_S + 10) == code


@pytest.mark.parametrize("claim", [*claims_of().payload()])
def test_verify_claim_missing_refused(claim: str) -> None:
    assert refused(forged(drop=claim)) in ("malformed", "wrong_tool")


def test_verify_expiry_has_a_small_leeway() -> None:
    verify(grant(), ARGUMENTS, tool="send_money", keys=KEYS, now_s=NOW_S + 904)
    assert refused(grant(), now_s=NOW_S + 905) == "expired"
    assert refused(grant(), now_s=NOW_S + 900, leeway_s=0) == "expired"


def test_verify_foreign_key_refused() -> None:
    assert refused(grant(OTHER)) == "unknown_key"
    assert refused(GrantKey(KEY.kid, OTHER.private_key).sign(claims_of())) == "bad_signature"


def _part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


@pytest.mark.parametrize("algorithm", ["none", "None", "HS256", "RS256", "ES256"])
def test_verify_other_algorithm_refused(algorithm: str) -> None:
    payload = grant().split(".")[1]
    head = f"{_part({'alg': algorithm, 'typ': 'placet-grant+jwt', 'kid': KEY.kid})}.{payload}"
    public = key_set(KEY)["keys"][0]["x"].encode()
    mac = base64.urlsafe_b64encode(hmac.new(public, head.encode(), hashlib.sha256).digest()).rstrip(b"=")
    assert refused(f"{head}.") == "malformed"
    assert refused(f"{head}.{mac.decode()}") == "malformed"


def test_verify_rsa_under_a_grants_key_id_refused() -> None:
    assert refused(forged(rsa.generate_private_key(65537, 2048), "RS256")) == "malformed"


@pytest.mark.parametrize("header", [{"crit": ["exp"]}, {"kid": ""}])
def test_verify_header_that_cannot_be_trusted_refused(header: dict[str, Any]) -> None:
    assert refused(forged(header=header)) == "malformed"


@pytest.mark.parametrize("token", ["", "x", "a.b.c", "é.é.é", "x" * 9000, None, 7, b"x"], ids=str)
def test_verify_nonsense_refused(token: Any) -> None:
    assert refused(token) == "malformed"


def test_verify_changed_payload_refused() -> None:
    head, _, signature = grant().split(".")
    other = grant(arguments={**ARGUMENTS, "amount": 1_000_000}).split(".")[1]
    assert refused(f"{head}.{other}.{signature}", {**ARGUMENTS, "amount": 1_000_000}) == "bad_signature"


def test_verify_bearer_token_is_never_a_grant(tmp_path: Path) -> None:
    token = issue(tmp_path, "billing", ["agent"], "acme", "books", agent="billing")
    assert refused(token, keys=load_public(tmp_path / "issuers.json"), now_s=time.time()) == "wrong_type"
    # Not even when the issuer's key signs it under a grant's type: its audience is another.
    key = load_or_create(tmp_path).issuer
    made = forged(key.private_key, claims={"aud": "placet"}, header={"kid": key.kid})
    assert refused(made, keys=load_public(tmp_path / "issuers.json")) == "wrong_tool"


@pytest.mark.parametrize(
    "document",
    [{}, {"keys": []}, {"keys": [{"kty": "RSA", "kid": "a"}]}, "[]", "x", {"keys": [None] * 101}],
    ids=str,
)
def test_read_jwks_without_a_usable_key_refused(document: Any) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        read_jwks(document)


def test_read_jwks_keys_for_other_uses_are_passed_over() -> None:
    published = key_set(KEY, OTHER)
    published["keys"][1]["use"] = "enc"
    assert set(read_jwks(json.dumps(published))) == {KEY.kid}


async def test_verifier_with_a_pinned_file_needs_no_network(tmp_path: Path) -> None:
    (tmp_path / "jwks.json").write_text(json.dumps(key_set(KEY)))
    verifier = GrantVerifier("send_money", jwks_file=tmp_path / "jwks.json", clock=lambda: NOW_S)
    assert (await verifier.verify(grant(), ARGUMENTS)).grant_id == "g1"
    with pytest.raises(GrantRefused, match="unknown_key"):
        await verifier.verify(grant(OTHER), ARGUMENTS)


@pytest.mark.parametrize("sources", [{}, {"jwks_url": "https://a/b", "keys": KEYS}])
def test_verifier_without_exactly_one_source_refused(sources: Any) -> None:
    with pytest.raises(ValueError, match="give one"):
        GrantVerifier("send_money", **sources)


@pytest.mark.parametrize("url", ["http://placet.example/jwks.json", "ftp://localhost/x", "jwks.json"])
def test_remote_keys_without_https_refused(url: str) -> None:
    with pytest.raises(ValueError, match="https"):
        RemoteKeys(url)
    RemoteKeys("http://placet.example/jwks.json", allow_http=True)


class Published:
    """A gateway's key set that changes, or is away."""

    def __init__(self, *keys: GrantKey) -> None:
        self.answer: Response = JSONResponse(key_set(*keys))
        self.now_s = 1_000.0
        self.script = Scripted(on_http=self.http)

    async def http(self, asked: Asked) -> Response:
        return self.answer

    def remote(self, **more: Any) -> RemoteKeys:
        return RemoteKeys(f"{self.script.url}{JWKS}", clock=lambda: self.now_s, **more)

    def verifier(self, **more: Any) -> GrantVerifier:
        return GrantVerifier("send_money", keys=self.remote(**more), clock=lambda: NOW_S)


async def test_remote_keys_many_at_once_fetch_once() -> None:
    site = Published(KEY)
    async with serving(site.script):
        verifier = site.verifier()
        found = await asyncio.gather(*(verifier.verify(grant(), ARGUMENTS) for _ in range(20)))
        await verifier.close()
    assert {one.grant_id for one in found} == {"g1"}
    assert len(site.script.asked) == 1


async def test_remote_keys_unknown_key_is_looked_for_at_most_every_ten_seconds() -> None:
    site = Published(KEY)
    async with serving(site.script):
        verifier = site.verifier()
        await verifier.verify(grant(), ARGUMENTS)
        for number in range(50):
            with pytest.raises(GrantRefused, match="unknown_key"):
                await verifier.verify(
                    GrantKey(f"made-up-{number}", OTHER.private_key).sign(claims_of()), ARGUMENTS
                )
        assert len(site.script.asked) == 1
        site.answer = JSONResponse(key_set(KEY, OTHER))
        site.now_s += 10
        assert (await verifier.verify(grant(OTHER), ARGUMENTS)).grant_id == "g1"
        assert len(site.script.asked) == 2
        await verifier.close()


async def test_remote_keys_gateway_away_last_good_serve_for_an_hour_then_nothing() -> None:
    site = Published(KEY)
    async with serving(site.script):
        verifier = site.verifier()
        await verifier.verify(grant(), ARGUMENTS)
        site.answer = Response(status_code=500)
        site.now_s += 3_599
        await verifier.verify(grant(), ARGUMENTS)
        site.now_s += 20
        with pytest.raises(GrantKeysUnavailable):
            await verifier.verify(grant(), ARGUMENTS)
        await verifier.close()
    assert len(site.script.asked) == 3


@pytest.mark.parametrize(
    "answer",
    [
        Response(b" " * (256 * 1024 + 1)),
        Response(b"{}"),
        Response(b"["),
        RedirectResponse("/elsewhere"),
        Response(status_code=404),
    ],
    ids=["too large", "no keys", "no JSON", "redirect", "not found"],
)
async def test_remote_keys_answer_that_is_no_key_set_gives_nothing(answer: Response) -> None:
    site = Published()
    site.answer = answer
    async with serving(site.script):
        verifier = site.verifier()
        with pytest.raises(GrantKeysUnavailable):
            await verifier.verify(grant(), ARGUMENTS)
        await verifier.close()
    assert len(site.script.asked) == 1


async def test_remote_keys_slow_gateway_is_given_up() -> None:
    site = Published(KEY)
    never = asyncio.Event()

    async def slow(asked: Asked) -> Response:
        await never.wait()
        return site.answer

    site.script.on_http = slow
    async with serving(site.script):
        verifier = site.verifier(timeout_s=0.2)
        with pytest.raises(GrantKeysUnavailable):
            await verifier.verify(grant(), ARGUMENTS)
        never.set()
        await verifier.close()


def test_import_without_its_extra_says_what_to_install() -> None:
    code = "import sys; sys.modules['jwt'] = None\ntry:\n import placet.grants\nexcept ImportError as e: print(e)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "placet[grants]" in done.stdout
