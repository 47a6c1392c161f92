"""Authentication and permissions: from a bearer token to an identity, and what its roles permit."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from gateway.identity.errors import IssuerUnavailable
from gateway.identity.keys import KeysUnreadable
from gateway.identity.oidc import OidcIssuer
from gateway.problems import Problem
from projections.tables.calls import CallRow
from schemas.actor import Actor, tool_role
from schemas.ids import TENANT_WIDE, is_client_id
from schemas.principals import People
from schemas.refusals import Refusal
from schemas.token import ANY, ISSUER, Claims, PublicKeys, TokenRefused, read_claims, unverified_issuer

logger = logging.getLogger(__name__)

CACHED_TOKENS_MAX = 4_096
# A token is verified again after this time: its key may have been revoked meanwhile.
VERIFIED_FOR_S = 60.0
# How often an idle connection is checked for whether its token and roles are still valid.
RECHECK_S = 5.0
RETRY_AFTER_S = 10
ISSUER_SHOWN_CHARS = 200
READERS = ("reviewer", "operator", "analyst")
# The installer of Placet has a token of this tenant (`placet up` writes it to admin.token).
OWNER_TENANT = "default"
# The project of a token of the whole tenant that names no project.
DEFAULT_PROJECT = "default"
PROJECT_HEADER = "Placet-Project"


class VerifiedToken(NamedTuple):
    """A verified token, with the time until which the verification is valid and the version of the issuers' keys."""

    claims: Claims
    until_s: float
    keys_version: int


class RolesChanged(Problem):
    """The roles of an account are no longer those with which it was authenticated."""

    def __init__(self) -> None:
        super().__init__(Refusal.UNAUTHENTICATED, "the roles of this account have changed: connect again")


@dataclass(slots=True)
class Authenticator:
    """Verifies tokens of trusted issuers: the local one, and an identity provider if one is configured.

    A token names its issuer, and is then verified with the keys of that issuer only. Its expiry is checked every
    time, its signature once a minute and whenever the local issuers' keys have changed (`keys_version` then returns
    another number), and the roles of its subject's principal (`people`) every time.
    """

    public_keys: PublicKeys
    clock: Callable[[], float] = time.time
    oidc: OidcIssuer | None = None
    people: Callable[[], People] = People
    keys_version: Callable[[], int] = lambda: 0
    _verified_tokens: OrderedDict[str, VerifiedToken] = field(default_factory=OrderedDict, init=False)

    async def claims(self, token: str, project: str = "") -> Claims:
        """Return the claims of a token.

        Args:
            token: a compact JWS.
            project: the project to work in, for tokens of the whole tenant; empty or `*` if none is named.

        Raises:
            Problem: 401 unauthenticated; 403 not_authorised, the token is for another project; 503 unavailable, the
                identity provider's keys cannot be fetched.
        """
        return self._resolved((await self.verify(token)).claims, project)

    async def admit(self, token: str, project: str = "") -> Authentication:
        """Authenticate a connection, for as long as it lives; arguments and errors as `claims`."""
        verification = await self.verify(token)
        return Authentication(self, token, self._resolved(verification.claims, project), verification)

    async def verify(self, token: str, before: VerifiedToken | None = None) -> VerifiedToken:
        """Verify a token, unless a recent verification is still valid.

        Args:
            token: a compact JWS.
            before: an earlier verification that the caller has kept.

        Raises:
            Problem: 401 unauthenticated; 503 unavailable, the token cannot be verified now.
        """
        now, version = self.clock(), self.keys_version()
        known = self._verified_tokens.get(token, before)
        stands = known is not None and now < known.until_s
        if known is not None and stands and known.keys_version == version:
            return known
        try:
            claims = await self._verified(token, now)
        except TokenRefused as error:
            self._verified_tokens.pop(token, None)
            raise Problem(Refusal.UNAUTHENTICATED, str(error)) from error
        except (IssuerUnavailable, KeysUnreadable) as error:
            if known is not None and stands:
                # The keys have changed but cannot be read now: the earlier verification counts until its end.
                return known
            self._verified_tokens.pop(token, None)
            raise _unavailable(error) from error
        verification = VerifiedToken(claims, min(claims.expires_at_s, now + VERIFIED_FOR_S), version)
        self._verified_tokens.pop(token, None)
        self._verified_tokens[token] = verification
        if len(self._verified_tokens) > CACHED_TOKENS_MAX:
            self._verified_tokens.popitem(last=False)
        return verification

    def has_same_roles(self, claims: Claims) -> bool:
        """Return True if claims that were verified earlier give the same roles now."""
        # The token's own roles count again once its subject is no longer an account of a principal.
        said = replace(claims, actor=claims.token_actor or claims.actor)
        now = self._resolved(said, claims.asked)
        return (now.actor, now.wide) == (claims.actor, claims.wide)

    def _resolved(self, claims: Claims, project: str) -> Claims:
        """Return the claims in a project, with the roles that count there: a published principal's, if there is one.

        For the whole tenant, only roles that the tenant gives count, never those that one of its projects gives.
        """
        said, people = claims.actor, self.people()
        asked = "" if project == TENANT_WIDE else project
        if said.project != TENANT_WIDE:
            if project and project != said.project:
                raise Problem(Refusal.NOT_AUTHORISED, f"this token is only for the project {said.project}")
            actor = people.of(said.tenant, said.project).resolved(said)
            return claims if actor is said else replace(claims, actor=actor, token_actor=said)
        if asked and not is_client_id(asked):
            raise Problem(Refusal.INVALID, f"the project must be 1 to 128 of A-Za-z0-9._:-, or {TENANT_WIDE}")
        here = said.model_copy(update={"project": asked or DEFAULT_PROJECT})
        return replace(
            claims,
            actor=people.of(said.tenant, here.project).resolved(here),
            token_actor=said,
            wide=people.of(said.tenant).resolved(said),
            asked=asked,
        )

    def fault(self) -> str | None:
        """Return a fault of the identity provider, for the operator; None if there is none, or no provider."""
        return None if self.oidc is None else self.oidc.keys.fault()

    async def close(self) -> None:
        """Close the connections to an identity provider."""
        if self.oidc is not None:
            await self.oidc.close()

    async def _verified(self, token: str, now: float) -> Claims:
        oidc = self.oidc
        if oidc is None:
            return read_claims(token, self.public_keys, now)
        issuer = unverified_issuer(token)
        if issuer == oidc.settings.issuer:
            return await oidc.claims(token, now)
        if issuer == ISSUER:
            return read_claims(token, self.public_keys, now)
        raise TokenRefused(_other_issuer(issuer, oidc.settings.issuer))

    async def of_headers(self, headers: Mapping[str, str]) -> Authentication:
        """Authenticate by the token of the Authorization header, in the project of the header Placet-Project.

        Raises:
            Problem: as `claims`.
        """
        return await self.admit(bearer_token(headers), project_of(headers))


def bearer_token(headers: Mapping[str, str]) -> str:
    """Return the token of the Authorization header.

    Raises:
        Problem: 401 unauthenticated, there is none.
    """
    authorization = headers.get("authorization", "")
    scheme, _, token = authorization.partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise Problem(Refusal.UNAUTHENTICATED, "send a bearer token in the Authorization header")
    return token.strip()


def project_of(headers: Mapping[str, str]) -> str:
    """Return the project that the header Placet-Project names; empty if the header was not sent.

    Raises:
        Problem: 422 invalid, it was sent empty: a caller that means a project but names none would work in another.
    """
    named = headers.get(PROJECT_HEADER.lower())
    if named is not None and not named.strip():
        raise Problem(Refusal.INVALID, f"{PROJECT_HEADER} is empty: name a project, or leave the header out")
    return "" if named is None else named.strip()


@dataclass(slots=True)
class Authentication:
    """The authentication of a connection: its token is checked again for as long as the connection lives.

    `check` is called before every action and message on the connection, and every `RECHECK_S` while it is idle.
    """

    authenticator: Authenticator = field(repr=False)
    token: str = field(repr=False)
    claims: Claims
    verification: VerifiedToken = field(repr=False)
    # The principals with which its roles were last checked: they are another object whenever one is published.
    _people: People | None = field(default=None, init=False, repr=False)

    async def check(self) -> None:
        """Return if the token is still valid and gives the same roles.

        Raises:
            RolesChanged: it gives other roles now.
            Problem: 401 unauthenticated, it has expired or is no longer valid; 503, it cannot be checked now.
        """
        if self.authenticator.clock() >= self.claims.expires_at_s:
            raise Problem(Refusal.UNAUTHENTICATED, "the token has expired: get a new one")
        self.verification = await self.authenticator.verify(self.token, self.verification)
        people = self.authenticator.people()
        if people is self._people:
            return
        if not self.authenticator.has_same_roles(self.claims):
            raise RolesChanged
        self._people = people

    @property
    def recheck_s(self) -> float:
        """The time until the next check of an idle connection."""
        left_s = self.claims.expires_at_s - self.authenticator.clock()
        return min(max(left_s, 0.0), RECHECK_S)

    async def until_invalid(self) -> None:
        """Check repeatedly, until `check` raises."""
        while True:
            await self.check()
            await asyncio.sleep(self.recheck_s)


def _unavailable(error: IssuerUnavailable | KeysUnreadable) -> Problem:
    if isinstance(error, IssuerUnavailable):
        return Problem(Refusal.UNAVAILABLE, str(error), retry_after=RETRY_AFTER_S)
    # The name of the file is for the operator only.
    logger.error("no token can be verified: %s", error)
    detail = "the issuers' keys cannot be read: ask the operator"
    return Problem(Refusal.UNAVAILABLE, detail, retry_after=RETRY_AFTER_S)


def _other_issuer(found: str, expected: str) -> str:
    same_but = found.rstrip("/") == expected.rstrip("/")
    why = ": they differ in the trailing slash, and must be identical" if same_but else ""
    return f"the token is from the issuer {found[:ISSUER_SHOWN_CHARS]!r}, expected is {expected!r}{why}"


def reads_project(actor: Actor) -> bool:
    """Return True if the actor may read all of its project; an agent's token never may."""
    return actor.has(*READERS)


def acts_for(actor: Actor, agent: str | None) -> bool:
    """Return True if the actor may act in an agent's name: the agent's own token, an operator, an admin."""
    if actor.agent is not None:
        return actor.agent == agent
    return actor.has("operator")


def check_reads(actor: Actor) -> None:
    """Refuse an actor that may not read the whole project.

    Raises:
        Problem: 403 not_authorised.
    """
    if not reads_project(actor):
        raise Problem(Refusal.NOT_AUTHORISED, f"this needs one of the roles {', '.join(READERS)}")


def check_reads_tools(actor: Actor) -> None:
    """Refuse an actor that may not read the tools: it neither reads the project nor is an agent, which calls them.

    Raises:
        Problem: 403 not_authorised.
    """
    if actor.agent is None:
        check_reads(actor)


def check_role(actor: Actor, *roles: str) -> None:
    """Refuse an actor that has none of the roles and is not an admin; an agent's token has none of them.

    Raises:
        Problem: 403 not_authorised.
    """
    if not actor.has(*roles):
        raise Problem(Refusal.NOT_AUTHORISED, f"this needs one of the roles {', '.join(roles)}")


def is_owner(claims: Claims) -> bool:
    """Return True if the token is of an admin of the installation itself: of its own tenant, and for all projects."""
    wide = claims.wide
    return wide is not None and wide.has("admin") and wide.tenant == OWNER_TENANT


def check_owner(claims: Claims) -> None:
    """Refuse a token that is not of an admin of the installation itself.

    Raises:
        Problem: 403 not_authorised.
    """
    if not is_owner(claims):
        raise Problem(
            Refusal.NOT_AUTHORISED,
            f"this needs an admin of the whole tenant {OWNER_TENANT} (project {TENANT_WIDE})",
        )


def check_sees(actor: Actor, agent: str | None) -> None:
    """Refuse an actor that may not read an execution, call or hold of an agent in its project.

    Raises:
        Problem: 403 not_authorised.
    """
    if not reads_project(actor) and not (actor.agent is not None and agent == actor.agent):
        raise Problem(Refusal.NOT_AUTHORISED, "this token may only read what belongs to its own agent")


def check_acts(actor: Actor, agent: str) -> None:
    """Refuse an actor that may not act for an agent.

    Raises:
        Problem: 403 not_authorised.
    """
    if not acts_for(actor, agent):
        whose = f"the roles {', '.join(actor.roles)}" if actor.agent is None else f"the agent {actor.agent}"
        # The agent is not named: it can be that of a run which the caller may not see.
        detail = f"a token of {whose} cannot act for this agent: it takes the agent's own, or an operator's"
        raise Problem(Refusal.NOT_AUTHORISED, detail)


def check_runs(actor: Actor, row: CallRow) -> None:
    """Refuse an actor that may not run a call: it neither acts for the call's agent nor is the tool's server.

    Raises:
        Problem: 403 not_authorised.
    """
    if _serves(actor, row["tool"]):
        return
    check_acts(actor, row["agent"])


def check_receives_secrets(actor: Actor, agent: str, tool: str | None = None) -> None:
    """Refuse sensitive values to an actor that is neither the agent they are for nor the server of the tool.

    Operators act for agents, but no person may read sealed values.

    Raises:
        Problem: 403 not_authorised.
    """
    if actor.agent == agent or (tool is not None and _serves(actor, tool)):
        return
    raise Problem(
        Refusal.NOT_AUTHORISED,
        "sensitive values are delivered only to a token of the agent that they are for, not to people",
    )


def _serves(actor: Actor, tool: str) -> bool:
    """Return True if the actor is a server that runs a tool."""
    return actor.agent is None and tool_role(tool) in actor.roles


def permitted_scope(claims: Claims, name: str, given: str) -> str:
    """Return the user or workspace that an execution is started for.

    A claim with a name fixes it: that name is used if none is given, and no other is accepted, so that the policies
    of that user cannot be avoided by leaving it out. The claim `*`, and without a claim the roles operator and admin,
    permit any name. All other tokens may give none.

    Raises:
        Problem: 403 not_authorised.
    """
    claim = claims.user if name == "user" else claims.workspace
    if claim is not None and claim != ANY:
        if given and given != claim:
            raise Problem(Refusal.NOT_AUTHORISED, f"this token is for the {name} {claim} only")
        return claim
    if given and claim is None and not claims.actor.has("operator"):
        raise Problem(Refusal.NOT_AUTHORISED, f"this token may not name a {name}: it has no {name} claim")
    return given
