"""The keys of an identity provider: rotated, unknown, withdrawn, too old, out of reach, of no use."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from starlette.responses import JSONResponse, RedirectResponse, Response

from gateway.identity.issuer import issue
from gateway.identity.oidc_settings import ALGORITHMS
from gateway.problems import Problem
from schemas.token import Claims
from tests.gateway.provider import DISCOVERY, PRIVATE, Provider, jwk_of
from tests.gateway.trusted_issuer import Site, serving_trusted_issuer


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with serving_trusted_issuer(Provider(), tmp_path) as made:
        yield made


async def test_key_is_rotated_while_running(site: Site) -> None:
    provider = site.provider
    fresh = rsa.generate_private_key(65537, 2048)
    await site.claims_of(provider.token())
    provider.keys = [jwk_of("new", fresh, "RS256")]
    site.monotonic_s += 10
    await site.claims_of(provider.token(kid="new", key=fresh))
    assert provider.asked() == 2
    await site.refused(provider.token(claims={"jti": "signed with the old key, and not seen before"}))


async def test_withdrawn_key_is_believed_no_longer_than_its_set_is_fresh(site: Site) -> None:
    provider = site.provider
    provider.headers = {"Cache-Control": "public, max-age=120"}
    token = provider.token()
    await site.claims_of(token)
    provider.keys = provider.keys[1:]
    site.now_s += 60
    site.monotonic_s += 60
    await site.claims_of(token)
    site.now_s += 60
    site.monotonic_s += 60
    await site.refused(token)


async def test_admission_ends_with_the_providers_key(site: Site) -> None:
    provider = site.provider
    provider.headers = {"Cache-Control": "public, max-age=120"}
    authentication = await site.authenticator.admit(provider.token())
    provider.keys = provider.keys[1:]
    site.now_s += 60
    site.monotonic_s += 60
    await authentication.check()
    site.now_s += 60
    site.monotonic_s += 60
    with pytest.raises(Problem) as caught:
        await authentication.check()
    assert caught.value.status == 401


async def test_admission_ends_when_the_providers_keys_cannot_be_had_for_an_hour(site: Site) -> None:
    authentication = await site.authenticator.admit(site.provider.token())
    site.provider.answer = Response(status_code=500)
    site.now_s += 61
    site.monotonic_s += 3_599
    await authentication.check()
    site.now_s += 61
    site.monotonic_s += 61
    with pytest.raises(Problem) as caught:
        await authentication.check()
    assert caught.value.status == 503


@pytest.mark.parametrize(("cache", "fresh_s"), [("max-age=0", 60), ("no-store", 300), ("max-age=99999", 900)])
async def test_how_long_keys_are_fresh_has_bounds(site: Site, cache: str, fresh_s: float) -> None:
    site.provider.headers = {"Cache-Control": cache}
    site.provider.keys[0]["kid"] = "RS256"
    for passed, fetched in ((0.0, 1), (fresh_s - 1, 1), (1.0, 2)):
        site.monotonic_s += passed
        site.now_s += 100
        await site.claims_of(site.provider.token(claims={"exp": int(site.now_s) + 60}))
        assert site.provider.asked() == fetched


async def test_storm_of_unknown_keys_asks_the_provider_once_in_ten_seconds(site: Site) -> None:
    provider = site.provider
    await site.claims_of()
    for _ in range(3):
        tokens = [provider.token(kid=f"made-up-{number}") for number in range(40)]
        answers = await asyncio.gather(
            *(site.authenticator.claims(token) for token in tokens), return_exceptions=True
        )
        assert {type(answer) for answer in answers} == {Problem}
        await site.claims_of(provider.token("ES256"))
        site.monotonic_s += 10
    assert provider.asked() <= 3


async def test_first_tokens_wait_for_one_fetch(site: Site) -> None:
    arrived, go = asyncio.Event(), asyncio.Event()

    async def slow() -> Response:
        arrived.set()
        await go.wait()
        return JSONResponse({"keys": site.provider.keys})

    site.provider.answer = slow
    waiting = [asyncio.create_task(site.claims_of(site.provider.token(name))) for name in ALGORITHMS]
    await arrived.wait()
    waiting[0].cancel()
    go.set()
    found = await asyncio.gather(*waiting, return_exceptions=True)
    assert isinstance(found[0], asyncio.CancelledError)
    assert all(isinstance(one, Claims) for one in found[1:])
    assert site.provider.asked() == 1


async def test_provider_away_last_good_keys_serve_for_an_hour_then_nobody_is_believed(site: Site) -> None:
    provider = site.provider
    await site.claims_of()
    provider.answer = Response(status_code=500)
    site.monotonic_s += 3_599
    await site.claims_of(provider.token("ES256"))
    await site.refused(provider.token(kid="unknown"), 503)
    site.monotonic_s += 1
    await site.refused(provider.token("EdDSA"), 503)
    provider.answer = None
    site.monotonic_s += 10
    await site.claims_of(provider.token("EdDSA"))


async def test_provider_that_has_just_failed_is_not_waited_for_by_whom_it_knows(site: Site) -> None:
    provider = site.provider
    await site.claims_of()
    provider.answer = Response(status_code=500)
    site.monotonic_s += 1_000
    await site.claims_of(provider.token("ES256"))
    arrived, go = asyncio.Event(), asyncio.Event()

    async def silent() -> Response:
        arrived.set()
        await go.wait()
        return JSONResponse({"keys": provider.keys})

    provider.answer = silent
    site.monotonic_s += 10
    await site.claims_of(provider.token("EdDSA"))
    await arrived.wait()
    unknown = asyncio.create_task(site.refused(provider.token(kid="unknown"), 401))
    go.set()
    await unknown
    assert provider.asked() == 3


async def test_provider_away_from_the_start_is_unavailable_and_local_tokens_are_believed(
    site: Site,
) -> None:
    site.provider.answer = Response(status_code=500)
    with pytest.raises(Problem) as caught:
        await site.claims_of()
    assert (caught.value.status, caught.value.fields["retry_after"]) == (503, 10)
    await site.claims_of(issue(site.directory, "anna", ["reviewer"], "acme", "books"))


async def test_provider_that_nobody_answers_for_is_unavailable(tmp_path: Path) -> None:
    provider = Provider()
    provider.script.url = "http://127.0.0.1:9"
    site = Site(provider, tmp_path)
    await site.refused(provider.token(), 503)
    await site.authenticator.close()


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
NO_KEY_SET = {
    "too large": Response(b'{"keys":[' + b" " * 300_000 + b"]}"),
    "no JSON": Response(b"<html>"),
    "no object": Response(b"[]"),
    "twice the same key": Response(b'{"keys":[],"keys":[]}'),
    "without keys": JSONResponse({}),
    "keys null": JSONResponse({"keys": None}),
    "keys an object": JSONResponse({"keys": {}}),
    "a key that is no object": JSONResponse({"keys": [GOOD, None]}),
    "an error of the provider's": JSONResponse({"keys": []}, 500),
    "too many": _set(*[GOOD] * 101),
    "redirect": RedirectResponse("/elsewhere"),
    "redirect to another host": RedirectResponse("http://localhost:9/keys"),
}
NONE_USABLE = {
    "no keys": _set(),
    "encrypting": _set({**GOOD, "use": "enc"}),
    "not for verifying": _set({**GOOD, "key_ops": ["sign"]}),
    "without an id": _set({name: value for name, value in GOOD.items() if name != "kid"}),
    "weak": _set(jwk_of("RS256", WEAK, "RS256")),
    "private": _set({**GOOD, "d": "AQAB"}),
    "secret": _set({"kty": "oct", "kid": "RS256", "k": "c2VjcmV0", "alg": "HS256"}),
    "damaged": _set({**GOOD, "n": "!"}, {**GOOD, "n": 7}, {"kty": "EC", "crv": "P-256", "kid": "x"}),
    "another kind": _set({**GOOD, "alg": "RS512"}),
}


@pytest.mark.parametrize("name", NO_KEY_SET)
async def test_answer_that_is_no_key_set_gives_nobody_and_takes_from_nobody(site: Site, name: str) -> None:
    site.provider.answer = NO_KEY_SET[name]
    await site.refused(site.provider.token(), 503)
    assert site.provider.asked("/elsewhere") == 0

    site.provider.answer = None
    site.monotonic_s += 10
    await site.claims_of()
    site.provider.answer = NO_KEY_SET[name]
    site.monotonic_s += 900
    for _ in range(2):
        await site.claims_of(site.provider.token(claims={"jti": "verification by the keys of before"}))
    assert site.authenticator.fault() is None


@pytest.mark.parametrize("name", NONE_USABLE)
async def test_key_set_without_a_usable_key_withdraws_those_of_before(
    site: Site, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    site.provider.headers = {"Cache-Control": "max-age=120"}
    token = site.provider.token()
    authentication = await site.authenticator.admit(token)
    site.provider.answer = NONE_USABLE[name]
    site.now_s += 60
    site.monotonic_s += 60
    await site.claims_of(token)
    assert site.authenticator.fault() is None
    for _ in range(2):
        site.now_s += 60
        site.monotonic_s += 60
        await site.refused(token)
        with pytest.raises(Problem) as caught:
            await authentication.check()
        assert caught.value.status == 401
    said = f"the key set of {site.provider.url} has no key that can be used"
    assert site.authenticator.fault() == f"{said}: none of its tokens is accepted"
    assert [record.levelname for record in caplog.records if said in record.message] == ["ERROR"]

    site.provider.answer = None
    site.monotonic_s += 10
    await site.claims_of(site.provider.token(claims={"jti": "signed with a key that is published again"}))
    assert site.authenticator.fault() is None


@pytest.mark.parametrize("name", NONE_USABLE)
async def test_key_set_without_a_usable_key_gives_nobody(site: Site, name: str) -> None:
    site.provider.answer = NONE_USABLE[name]
    await site.refused(site.provider.token())


async def test_key_set_with_one_bad_key_still_serves(site: Site) -> None:
    site.provider.keys = [{**GOOD, "kid": "bad", "n": "!"}, GOOD]
    await site.claims_of()


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
    await site.claims_of(jwks_url=f"{site.provider.url}/keys")
    assert (site.provider.asked(DISCOVERY), site.provider.asked()) == (0, 1)
