from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from starlette.responses import JSONResponse, RedirectResponse, Response

from gateway.identity.doors import Authenticator
from gateway.identity.issuer import issue
from gateway.identity.jwks import IssuerKeys
from gateway.identity.keys import load_or_create
from gateway.identity.oidc import OidcIssuer
from gateway.identity.oidc_settings import ALGORITHMS, OidcSettingsRefused, read_oidc
from gateway.problems import Problem
from schemas.token import Claims
from tests.gateway.provider import AUDIENCE, DISCOVERY, PRIVATE, Provider, jwk_of, part
from tests.sdk.scripted import serving


class Site:
    """A provider, and an authenticator that believes it beside the local issuer."""

    def __init__(self, provider: Provider, directory: Path) -> None:
        self.provider = provider
        self.directory = directory
        self.monotonic_s = 1_000.0
        self.now_s = time.time()
        self.door = self.authenticator()

    def authenticator(self, **settings: str) -> Authenticator:
        given = {"oidc_issuer": self.provider.url, "oidc_audience": AUDIENCE}
        given |= {"oidc_algorithms": " ".join(ALGORITHMS)}
        read = read_oidc({**given, **{f"oidc_{name}": text for name, text in settings.items()}})
        assert read is not None
        keys = IssuerKeys(read.issuer, read.jwks_url, read.algorithms, lambda: self.monotonic_s)
        local = load_or_create(self.directory).issuers.get
        return Authenticator(local, lambda: self.now_s, OidcIssuer(read, keys))

    async def believed(self, token: str | None = None, **settings: str) -> Claims:
        door = self.authenticator(**settings) if settings else self.door
        try:
            return await door.claims(self.provider.token() if token is None else token)
        finally:
            if settings:
                await door.close()

    async def refused(self, token: str, status: int = 401, **settings: str) -> str:
        with pytest.raises(Problem) as caught:
            await self.believed(token, **settings)
        assert caught.value.status == status, caught.value
        assert len(token) < 20 or token not in str(caught.value)
        return caught.value.detail


@pytest.fixture
async def provider() -> AsyncIterator[Provider]:
    made = Provider()
    async with serving(made.script):
        yield made


@pytest.fixture
async def site(provider: Provider, tmp_path: Path) -> AsyncIterator[Site]:
    made = Site(provider, tmp_path)
    yield made
    await made.door.close()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
async def test_token_of_the_provider_is_believed(site: Site, algorithm: str) -> None:
    claims = await site.believed(site.provider.token(algorithm, header={"typ": "at+jwt"}))
    actor = claims.actor
    assert (actor.subject, actor.tenant, actor.project, actor.roles) == (
        "anna",
        "acme",
        "books",
        ("reviewer",),
    )
    assert actor.agent is None
    assert claims.expires_at_s > site.now_s
    assert (claims.user, claims.workspace) == (None, None)


async def test_token_for_several_audiences_is_believed_where_this_is_one(site: Site) -> None:
    await site.believed(site.provider.token(claims={"aud": ["other", AUDIENCE]}))
    await site.refused(site.provider.token(claims={"aud": ["other"]}))


@pytest.mark.parametrize("claim", ["iss", "aud", "sub", "exp", "iat", "tenant", "project", "roles"])
async def test_token_without_a_required_claim_is_refused(site: Site, claim: str) -> None:
    await site.refused(site.provider.token(drop=claim))


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "https://elsewhere.example"},
        {"iss": "placet"},
        {"aud": "other"},
        {"aud": "placet"},
        {"exp": 1},
        {"exp": "never"},
        {"exp": True},
        {"exp": 2**53},
        {"iat": 2**40},
        {"iat": 1},
        {"nbf": 2**40},
        {"nbf": "soon"},
        {"sub": ""},
        {"sub": 7},
        {"sub": "placet:timer"},
        {"sub": "an\u202ena"},
        {"sub": "x" * 257},
        {"tenant": "acme/books"},
        {"tenant": ["acme"]},
        {"project": ""},
        {"roles": "reviewer"},
        {"roles": []},
        {"roles": [7]},
        {"roles": ["reviewer"] * 513},
        {"roles": ["reviewer", "system"]},
        {"roles": ["agent"]},
        {"roles": ["admin"]},
        {"roles": ["/only/groups"]},
        {"agent": "billing"},
        {"agent": ""},
    ],
    ids=lambda claims: str(claims)[:40],
)
async def test_token_with_a_wrong_claim_is_refused(site: Site, claims: dict[str, Any]) -> None:
    await site.refused(site.provider.token(claims=claims))


async def test_token_algorithm_none_is_refused(site: Site) -> None:
    payload = site.provider.token().split(".")[1]
    for algorithm in ("none", "None", "NONE", ""):
        await site.refused(f"{part({'alg': algorithm, 'typ': 'JWT', 'kid': 'RS256'})}.{payload}.")
    assert site.provider.asked() == 0


@pytest.mark.parametrize("form", ["pem", "der", "n"])
async def test_token_hmac_with_the_public_key_is_refused(site: Site, form: str) -> None:
    public = PRIVATE["RS256"].public_key()
    secret = {
        "pem": public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        "der": public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
        "n": site.provider.keys[0]["n"].encode(),
    }[form]
    for algorithm, digest in (("HS256", hashlib.sha256), ("HS384", hashlib.sha384)):
        payload = site.provider.token().split(".")[1]
        head = f"{part({'alg': algorithm, 'typ': 'JWT', 'kid': 'RS256'})}.{payload}"
        mac = base64.urlsafe_b64encode(hmac.new(secret, head.encode(), digest).digest()).rstrip(b"=")
        await site.refused(f"{head}.{mac.decode()}")


async def test_token_algorithm_that_does_not_fit_its_key_is_refused(site: Site) -> None:
    provider = site.provider
    await site.refused(provider.token("PS256", kid="RS256", key=PRIVATE["RS256"]))
    await site.refused(provider.token("RS256", kid="ES256"))
    await site.refused(provider.token("EdDSA", kid="ES256"))
    await site.refused(provider.token("RS256", kid="RS256", key=PRIVATE["PS256"]))


async def test_token_algorithm_that_was_not_allowed_is_refused(site: Site) -> None:
    for algorithm in ("PS256", "ES384"):
        await site.refused(site.provider.token(algorithm), algorithms="RS256 ES256 EdDSA")
    await site.refused(site.provider.token("RS256"), algorithms="ES256")


@pytest.mark.parametrize(
    "header",
    [
        {"typ": "placet-grant+jwt"},
        {"typ": "logout+jwt"},
        {"crit": ["exp"]},
        {"kid": ""},
        {"kid": "x" * 257},
    ],
    ids=lambda header: str(header)[:30],
)
async def test_token_header_that_is_not_believed_is_refused(site: Site, header: dict[str, Any]) -> None:
    await site.refused(site.provider.token(header=header))


async def test_token_may_not_bring_its_own_key(site: Site) -> None:
    own = rsa.generate_private_key(65537, 2048)
    header = {"jwk": jwk_of("RS256", own, "RS256"), "jku": f"{site.provider.url}/elsewhere"}
    await site.refused(site.provider.token(key=own, header=header))
    assert site.provider.asked("/elsewhere") == 0


async def test_local_and_provider_keys_vouch_for_their_own_issuer_only(site: Site) -> None:
    local = load_or_create(site.directory).issuer
    claims = site.provider.claims()
    forged = {
        "local key, provider's issuer": site.provider.token("EdDSA", kid=local.kid, key=local.private_key),
        "provider's key, local issuer": site.provider.token(
            "EdDSA", claims={**claims, "iss": "placet", "aud": "placet", "jti": "t1"}
        ),
        "provider's key under the local key's name": site.provider.token(
            "EdDSA", kid=local.kid, claims={**claims, "iss": "placet", "aud": "placet", "jti": "t1"}
        ),
    }
    for name, token in forged.items():
        assert await site.refused(token), name
    token = issue(site.directory, "bot", ["agent"], "acme", "books", agent="billing")
    assert (await site.believed(token)).actor.agent == "billing"


@pytest.mark.parametrize("text", ["", "x", "a.b.c", "é.é.é", "x" * 9000, ".", "e30.e30.e30"])
async def test_nonsense_is_refused(site: Site, text: str) -> None:
    await site.refused(text)
    assert site.provider.asked() == 0


async def test_believed_token_expires_and_is_refused(site: Site) -> None:
    token = site.provider.token()
    site.now_s = (await site.believed(token)).expires_at_s
    assert "expired" in await site.refused(token)


async def test_key_is_rotated_while_running(site: Site) -> None:
    provider = site.provider
    fresh = rsa.generate_private_key(65537, 2048)
    await site.believed(provider.token())
    provider.keys = [jwk_of("new", fresh, "RS256")]
    site.monotonic_s += 10
    await site.believed(provider.token(kid="new", key=fresh))
    assert provider.asked() == 2
    await site.refused(provider.token(claims={"jti": "signed with the old key, and not seen before"}))


async def test_withdrawn_key_is_believed_no_longer_than_its_set_is_fresh(site: Site) -> None:
    provider = site.provider
    provider.headers = {"Cache-Control": "public, max-age=120"}
    token = provider.token()
    await site.believed(token)
    provider.keys = provider.keys[1:]
    site.now_s += 60
    site.monotonic_s += 60
    await site.believed(token)
    site.now_s += 60
    site.monotonic_s += 60
    await site.refused(token)


@pytest.mark.parametrize(("cache", "fresh_s"), [("max-age=0", 60), ("no-store", 300), ("max-age=99999", 900)])
async def test_how_long_keys_are_fresh_has_bounds(site: Site, cache: str, fresh_s: float) -> None:
    site.provider.headers = {"Cache-Control": cache}
    site.provider.keys[0]["kid"] = "RS256"
    for passed, fetched in ((0.0, 1), (fresh_s - 1, 1), (1.0, 2)):
        site.monotonic_s += passed
        site.now_s += 100
        await site.believed(site.provider.token(claims={"exp": int(site.now_s) + 60}))
        assert site.provider.asked() == fetched


async def test_storm_of_unknown_keys_asks_the_provider_once_in_ten_seconds(site: Site) -> None:
    provider = site.provider
    await site.believed()
    for _ in range(3):
        tokens = [provider.token(kid=f"made-up-{number}") for number in range(40)]
        answers = await asyncio.gather(*(site.door.claims(token) for token in tokens), return_exceptions=True)
        assert {type(answer) for answer in answers} == {Problem}
        await site.believed(provider.token("ES256"))
        site.monotonic_s += 10
    assert provider.asked() <= 3


async def test_first_tokens_wait_for_one_fetch(site: Site) -> None:
    arrived, go = asyncio.Event(), asyncio.Event()

    async def slow() -> Response:
        arrived.set()
        await go.wait()
        return JSONResponse({"keys": site.provider.keys})

    site.provider.answer = slow
    waiting = [asyncio.create_task(site.believed(site.provider.token(name))) for name in ALGORITHMS]
    await arrived.wait()
    waiting[0].cancel()
    go.set()
    found = await asyncio.gather(*waiting, return_exceptions=True)
    assert isinstance(found[0], asyncio.CancelledError)
    assert all(isinstance(one, Claims) for one in found[1:])
    assert site.provider.asked() == 1


async def test_provider_away_last_good_keys_serve_for_an_hour_then_nobody_is_believed(site: Site) -> None:
    provider = site.provider
    await site.believed()
    provider.answer = Response(status_code=500)
    site.monotonic_s += 3_599
    await site.believed(provider.token("ES256"))
    await site.refused(provider.token(kid="unknown"), 503)
    site.monotonic_s += 1
    await site.refused(provider.token("EdDSA"), 503)
    provider.answer = None
    site.monotonic_s += 10
    await site.believed(provider.token("EdDSA"))


async def test_provider_away_from_the_start_is_unavailable_and_local_tokens_are_believed(
    site: Site,
) -> None:
    site.provider.answer = Response(status_code=500)
    with pytest.raises(Problem) as caught:
        await site.believed()
    assert (caught.value.status, caught.value.fields["retry_after"]) == (503, 10)
    await site.believed(issue(site.directory, "anna", ["reviewer"], "acme", "books"))


async def test_provider_that_nobody_answers_for_is_unavailable(tmp_path: Path) -> None:
    provider = Provider()
    provider.script.url = "http://127.0.0.1:9"
    site = Site(provider, tmp_path)
    await site.refused(provider.token(), 503)
    await site.door.close()


async def test_provider_that_never_answers_is_given_up(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.identity.jwks.FETCH_TIMEOUT_S", 0.2)
    never = asyncio.Event()

    async def silent() -> Response:
        await never.wait()
        return Response()

    site.provider.answer = silent
    await site.refused(site.provider.token(), 503)
    never.set()


def _set(*keys: dict[str, Any]) -> Response:
    return JSONResponse({"keys": list(keys)})


WEAK = rsa.generate_private_key(65537, 1024)
GOOD = jwk_of("RS256", PRIVATE["RS256"], "RS256")
UNUSABLE = {
    "too large": Response(b'{"keys":[' + b" " * 300_000 + b"]}"),
    "no JSON": Response(b"<html>"),
    "no object": Response(b"[]"),
    "twice the same key": Response(b'{"keys":[],"keys":[]}'),
    "no keys": JSONResponse({"keys": []}),
    "too many": _set(*[GOOD] * 101),
    "redirect": RedirectResponse("/elsewhere"),
    "redirect to another host": RedirectResponse("http://localhost:9/keys"),
    "encrypting": _set({**GOOD, "use": "enc"}),
    "not for verifying": _set({**GOOD, "key_ops": ["sign"]}),
    "without an id": _set({name: value for name, value in GOOD.items() if name != "kid"}),
    "weak": _set(jwk_of("RS256", WEAK, "RS256")),
    "private": _set({**GOOD, "d": "AQAB"}),
    "secret": _set({"kty": "oct", "kid": "RS256", "k": "c2VjcmV0", "alg": "HS256"}),
    "damaged": _set({**GOOD, "n": "!"}, {**GOOD, "n": 7}, {"kty": "EC", "crv": "P-256", "kid": "x"}),
    "another kind": _set({**GOOD, "alg": "RS512"}),
}


@pytest.mark.parametrize("name", UNUSABLE)
async def test_key_set_that_cannot_be_used_gives_nobody(site: Site, name: str) -> None:
    site.provider.answer = UNUSABLE[name]
    await site.refused(site.provider.token(), 503)
    assert site.provider.asked("/elsewhere") == 0


async def test_key_set_with_one_bad_key_still_serves(site: Site) -> None:
    site.provider.keys = [{**GOOD, "kid": "bad", "n": "!"}, GOOD]
    await site.believed()


async def test_discovery_of_another_issuer_gives_nobody(site: Site) -> None:
    site.provider.issuer = "https://elsewhere.example"
    await site.refused(site.provider.token(claims={"iss": site.provider.url}), 503)
    assert (site.provider.asked(DISCOVERY), site.provider.asked()) == (1, 0)


@pytest.mark.parametrize("uri", ["http://login.example/keys", "file:///etc/passwd", "keys", "https://u:p@x/"])
async def test_discovery_with_keys_where_anybody_could_answer_gives_nobody(site: Site, uri: str) -> None:
    site.provider.jwks_uri = uri
    await site.refused(site.provider.token(), 503)
    assert site.provider.asked() == 0


async def test_keys_at_a_given_address_need_no_discovery(site: Site) -> None:
    await site.believed(jwks_url=f"{site.provider.url}/keys")
    assert (site.provider.asked(DISCOVERY), site.provider.asked()) == (0, 1)


async def test_claims_are_mapped_as_the_settings_say(site: Site) -> None:
    token = site.provider.token(
        drop="roles",
        claims={
            "realm_access": {"roles": ["Placet Admins", "treasurers", "offline_access"]},
            "https://acme.example/unit": "books",
            "email": "anna@acme.example",
        },
    )
    actor = (
        await site.believed(
            token,
            tenant="acme",
            project_claim="https://acme.example/unit",
            roles_claim="realm_access.roles",
            roles_map='{"Placet Admins": "admin", "treasurers": "treasurer", "others": "reviewer"}',
            subject_claim="email",
            subject_prefix="oidc:",
        )
    ).actor
    assert (actor.subject, actor.tenant, actor.project) == ("oidc:anna@acme.example", "acme", "books")
    assert actor.roles == ("admin", "treasurer")


async def test_roles_without_a_map_are_those_that_could_be_roles_and_never_admin(site: Site) -> None:
    token = site.provider.token(claims={"roles": ["admin", "reviewer", "/a/group", "treasurer", "reviewer"]})
    assert (await site.believed(token)).actor.roles == ("reviewer", "treasurer")


async def test_roles_that_no_map_names_give_nobody(site: Site) -> None:
    await site.refused(site.provider.token(), roles_map='{"people": "reviewer"}')


GIVEN = {"oidc_issuer": "https://login.example", "oidc_audience": "placet"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"issuer": ""},
        {"audience": ""},
        {"issuer": "http://login.example"},
        {"issuer": "login.example"},
        {"issuer": "https://user:secret@login.example"},
        {"issuer": "https://login.example?x=1"},
        {"issuer": "https://login.example:99999"},
        {"jwks_url": "http://login.example/keys"},
        {"algorithms": "none"},
        {"algorithms": "RS256 HS256"},
        {"algorithms": "RS256,rs512"},
        {"tenant": "acme", "tenant_claim": "org"},
        {"project": "a/b"},
        {"roles_map": "{}"},
        {"roles_map": "[]"},
        {"roles_map": "{"},
        {"roles_map": '{"everybody": "system"}'},
        {"roles_map": '{"robots": "agent"}'},
        {"roles_map": '{"people": ["reviewer"]}'},
        {"role_claim": "roles"},
    ],
    ids=str,
)
def test_read_oidc_wrong_setting_is_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(OidcSettingsRefused) as caught:
        read_oidc({**GIVEN, **{f"oidc_{name}": text for name, text in wrong.items()}})
    assert "secret@" not in str(caught.value)


def test_read_oidc_nothing_given_is_no_provider() -> None:
    assert read_oidc({"oidc_issuer": "", "gateway_port": "0"}) is None
    read = read_oidc({**GIVEN, "oidc_issuer": "http://localhost:8080/realms/acme"})
    assert read is not None
    assert read.algorithms == ("RS256", "ES256", "EdDSA")
