"""The settings of the identity provider: the trusted issuer, and the meaning of its tokens' claims."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from host.errors import SettingsRefused
from schemas.ids import TENANT_WIDE, is_client_id

# Signatures by a key pair. None by a shared secret: every verifier could sign.
ALGORITHMS = ("RS256", "PS256", "ES256", "ES384", "EdDSA")
DEFAULT_ALGORITHMS = ("RS256", "ES256", "EdDSA")
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
# Roles that no group of an identity provider can give: agents' tokens are of the local issuer.
NEVER_MAPPED = frozenset({"system", "agent"})
PREFIX = "oidc_"
NAMES = (
    "issuer",
    "audience",
    "jwks_url",
    "algorithms",
    "tenant",
    "tenant_claim",
    "project",
    "project_claim",
    "tenant_wide",
    "roles_claim",
    "roles_map",
    "subject_claim",
    "subject_prefix",
)


NOT_TEXTS = frozenset({"algorithms", "roles_map", "tenant_wide"})


@dataclass(frozen=True, slots=True)
class OidcSettings:
    """One OpenID Connect provider.

    Attributes:
        issuer: its `iss`, and the address of its discovery document.
        audience: the `aud` of tokens for this installation.
        jwks_url: the address of its keys; empty: it is in the discovery document.
        algorithms: the permitted signature algorithms.
        tenant: the tenant of all its people; empty: it is in `tenant_claim`.
        project: the same for the project; `*` if all of them are of the whole tenant.
        tenant_wide: groups of `roles_claim` whose members are of the whole tenant, whatever their project is. A claim
            can never give this: anyone who sets the project claim could then set it too.
        roles_claim: a list of names; dots lead into objects.
        roles_map: from group to role: then only these groups count. None: each name is a role.
        subject_claim: the person's identity; it must never pass to another person.
        subject_prefix: is put before it, if subjects of the local issuer could be the same.
    """

    issuer: str
    audience: str
    jwks_url: str = ""
    algorithms: tuple[str, ...] = DEFAULT_ALGORITHMS
    tenant: str = ""
    tenant_claim: str = "tenant"
    project: str = ""
    project_claim: str = "project"
    tenant_wide: tuple[str, ...] = ()
    roles_claim: str = "roles"
    roles_map: Mapping[str, str] | None = field(default=None)
    subject_claim: str = "sub"
    subject_prefix: str = ""


def read_oidc(settings: Mapping[str, str]) -> OidcSettings | None:
    """Return the identity provider in a role's settings (`oidc_issuer`, …); None if there is none.

    Raises:
        SettingsRefused: a setting is missing, unknown or wrong.
    """
    given = {
        name.removeprefix(PREFIX): text for name, text in settings.items() if name.startswith(PREFIX) and text
    }
    if not given:
        return None
    _check_names(given)
    issuer = given["issuer"]
    check_url(issuer, "oidc_issuer", is_loopback(issuer))
    if jwks_url := given.get("jwks_url", ""):
        check_url(jwks_url, "oidc_jwks_url", is_loopback(jwks_url))
    texts = {name: given[name] for name in NAMES if name in given and name not in NOT_TEXTS}
    return OidcSettings(
        **texts,
        tenant_wide=_groups(given["tenant_wide"]) if "tenant_wide" in given else (),
        algorithms=_algorithms(given.get("algorithms", "")),
        roles_map=_roles_map(given["roles_map"]) if "roles_map" in given else None,
    )


def is_loopback(url: str) -> bool:
    """Return True if an address is of this machine."""
    return urlsplit(url).hostname in LOOPBACK


def check_url(url: str, what: str, may_be_http: bool) -> None:
    """Refuse an address at which an attacker in between could answer.

    Raises:
        SettingsRefused: it is not https (http if `may_be_http`), or has more than scheme, host and path.
    """
    try:
        split = urlsplit(url)
        has_more = bool(split.query or split.fragment or split.username or split.password)
        is_whole = bool(split.hostname) and split.port != 0
    except ValueError as error:
        raise SettingsRefused(f"{what} is not an address") from error
    schemes = ("https", "http") if may_be_http else ("https",)
    if split.scheme not in schemes or has_more or not is_whole:
        raise SettingsRefused(
            f"{what} must be an https address with only host and path (http only for this machine itself)"
        )


def _check_names(given: Mapping[str, str]) -> None:
    if unknown := sorted(set(given) - set(NAMES)):
        raise SettingsRefused(f"there is no setting {PREFIX}{unknown[0]}: {', '.join(NAMES)}")
    for name in ("issuer", "audience"):
        if name not in given:
            raise SettingsRefused(
                f"{PREFIX}{name} is missing: name the issuer and the audience of the tokens"
            )
    for name in ("tenant", "project"):
        if name in given and f"{name}_claim" in given:
            raise SettingsRefused(f"give {PREFIX}{name} or {PREFIX}{name}_claim, not both")
        may_be_all = name == "project" and given.get(name) == TENANT_WIDE
        if name in given and not may_be_all and not is_client_id(given[name]):
            raise SettingsRefused(f"{PREFIX}{name} must be 1 to 128 of A-Za-z0-9._:-")


def _groups(text: str) -> tuple[str, ...]:
    try:
        found = json.loads(text) if text.lstrip().startswith("[") else text.replace(",", " ").split()
    except ValueError as error:
        raise SettingsRefused(f"oidc_tenant_wide is not JSON: {error}") from error
    if not found or not all(isinstance(group, str) and group for group in found):
        raise SettingsRefused("oidc_tenant_wide must be names of groups, or a JSON list of them")
    return tuple(found)


def _algorithms(text: str) -> tuple[str, ...]:
    named = tuple(text.replace(",", " ").split()) or DEFAULT_ALGORITHMS
    if refused := [name for name in named if name not in ALGORITHMS]:
        raise SettingsRefused(
            f"oidc_algorithms: {refused[0][:32]!r} is not one of {', '.join(ALGORITHMS)}; "
            "algorithms with a shared secret are not supported"
        )
    return named


def _roles_map(text: str) -> dict[str, str]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise SettingsRefused(f"oidc_roles_map is not JSON: {error}") from error
    if not isinstance(found, dict) or not found:
        raise SettingsRefused('oidc_roles_map must be an object {"group": "role", …}')
    for group, role in found.items():
        if not isinstance(role, str) or not is_client_id(role) or role in NEVER_MAPPED:
            raise SettingsRefused(
                f"oidc_roles_map: {group[:64]!r} must be mapped to a role, and never to {sorted(NEVER_MAPPED)}"
            )
    return found
