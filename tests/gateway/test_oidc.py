"""Whose tokens are claims_of, and what they are taken to say."""

from __future__ import annotations

import base64
import hashlib
import hmac
import shlex
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from gateway.identity.issuer import issue
from gateway.identity.keys import load_or_create
from gateway.identity.oidc_settings import ALGORITHMS, read_oidc
from host.errors import SettingsRefused
from ops.options import oidc_environment
from tests.gateway.provider import AUDIENCE, PRIVATE, Provider, jwk_of, part
from tests.gateway.trusted_issuer import Site, serving_trusted_issuer


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with serving_trusted_issuer(Provider(), tmp_path) as made:
        yield made


@pytest.mark.parametrize("algorithm", ALGORITHMS)
async def test_token_of_the_provider_is_believed(site: Site, algorithm: str) -> None:
    claims = await site.claims_of(site.provider.token(algorithm, header={"typ": "at+jwt"}))
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
    await site.claims_of(site.provider.token(claims={"aud": ["other", AUDIENCE]}))
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
    assert (await site.claims_of(token)).actor.agent == "billing"


@pytest.mark.parametrize("text", ["", "x", "a.b.c", "é.é.é", "x" * 9000, ".", "e30.e30.e30"])
async def test_nonsense_is_refused(site: Site, text: str) -> None:
    await site.refused(text)
    assert site.provider.asked() == 0


async def test_believed_token_expires_and_is_refused(site: Site) -> None:
    token = site.provider.token()
    site.now_s = (await site.claims_of(token)).expires_at_s
    assert "expired" in await site.refused(token)


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
        await site.claims_of(
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
    assert (await site.claims_of(token)).actor.roles == ("reviewer", "treasurer")


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
    with pytest.raises(SettingsRefused) as caught:
        read_oidc({**GIVEN, **{f"oidc_{name}": text for name, text in wrong.items()}})
    assert "secret@" not in str(caught.value)


def test_read_oidc_nothing_given_is_no_provider() -> None:
    assert read_oidc({"oidc_issuer": "", "gateway_port": "0"}) is None
    read = read_oidc({**GIVEN, "oidc_issuer": "http://localhost:8080/realms/acme"})
    assert read is not None
    assert read.algorithms == ("RS256", "ES256", "EdDSA")


@pytest.mark.parametrize("bound", [{"jkt": "x"}, {"x5t#S256": "x"}, {"jwk": {}}, {}, None])
async def test_token_that_is_bound_to_a_key_is_refused(site: Site, bound: Any) -> None:
    assert "bound to a key" in await site.refused(site.provider.token(claims={"cnf": bound}))


async def test_token_whose_issuer_differs_in_a_slash_is_told_so(site: Site) -> None:
    told = await site.refused(site.provider.token(claims={"iss": site.provider.claims()["iss"] + "/"}))

    issuer = site.provider.claims()["iss"]
    assert f"'{issuer}/'" in told
    assert f"'{issuer}'" in told
    assert "differ in the trailing slash" in told


@pytest.mark.parametrize("wide", ["treasurers", '["treasurers", "Platform Team"]'])
async def test_token_of_a_group_that_is_of_the_whole_tenant(site: Site, wide: str) -> None:
    token = site.provider.token(claims={"roles": ["reviewer", "treasurers"]})

    assert (await site.claims_of(token, tenant_wide=wide)).wide is not None
    assert (await site.claims_of(token, tenant_wide="others")).wide is None


async def test_claim_that_says_the_whole_tenant_is_refused_and_the_setting_is_not(site: Site) -> None:
    assert "oidc_tenant_wide" in await site.refused(site.provider.token(claims={"project": "*"}))
    assert (await site.claims_of(site.provider.token(), project="*")).wide is not None


PAGE = Path(__file__).parents[2] / "docs" / "identity.md"
OF_GOOGLE = {"sub": "110169484474386276334", "hd": "acme.example", "email": "mia@acme.example"}
# What each provider's token says beside what every token does.
PROVIDERS: dict[str, tuple[dict[str, Any], str, tuple[str, ...]]] = {
    "Keycloak": (
        {"aud": ["placet", "account"], "realm_access": {"roles": ["offline_access", "placet-reviewer"]}},
        "anna",
        ("reviewer",),
    ),
    "Microsoft Entra ID": (
        {"oid": "3a1e", "roles": ["Placet.Operator"], "ver": "2.0", "scp": "access"},
        "3a1e",
        ("operator",),
    ),
    "Okta": ({"uid": "00u1", "groups": ["Everyone", "Placet reviewers"]}, "00u1", ("reviewer",)),
    "Google": (OF_GOOGLE, "110169484474386276334", ("staff",)),
}


def exported(heading: str) -> dict[str, str]:
    """What the page's example for a provider exports, by the names of the settings."""
    section = PAGE.read_text("utf-8").split(f"\n### {heading}\n")[1].split("\n#")[0]
    lines = [line for line in section.splitlines() if line.startswith("    export ")]
    words = [word for line in lines for word in shlex.split(line)]
    return oidc_environment(dict(word.split("=", 1) for word in words if word.startswith("PLACET_OIDC_")))


@pytest.mark.parametrize("heading", PROVIDERS)
async def test_example_of_the_documents_believes_a_token_of_its_provider(site: Site, heading: str) -> None:
    settings = exported(heading)
    assert settings.pop("issuer").startswith("https://")
    said, subject, roles = PROVIDERS[heading]
    own = {"aud": settings["audience"], "roles": [], **said}

    actor = (await site.claims_of(site.provider.token(claims=own), **settings)).actor

    assert (actor.subject, actor.tenant, actor.project, actor.roles) == (subject, "acme", "default", roles)
    stranger = {**own, "hd": "other.example", "realm_access": {"roles": []}, "groups": [], "roles": []}
    await site.refused(site.provider.token(claims=stranger), 401, **settings)


async def test_one_text_in_place_of_groups_counts_by_a_map_only(site: Site) -> None:
    token = site.provider.token(claims={"roles": "reviewer"})
    await site.refused(token)
    assert (await site.claims_of(token, roles_map='{"reviewer": "analyst"}')).actor.roles == ("analyst",)
