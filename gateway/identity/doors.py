"""Who stands at the door: a bearer token made into an identity, and what its roles let it do."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from gateway.identity.jwks import IssuerUnavailable
from gateway.identity.keys import KeysUnreadable
from gateway.identity.oidc import OidcIssuer
from gateway.problems import Problem
from projections.folds.rows import Row
from schemas.actor import Actor, tool_role
from schemas.principals import People
from schemas.refusals import Refusal
from schemas.token import Claims, PublicKeys, TokenRefused, read_claims, unverified_issuer

logger = logging.getLogger(__name__)

CACHED_TOKENS_MAX = 4_096
# A token is verified again after this: its key may have been withdrawn meanwhile.
BELIEVED_S = 60.0
RETRY_AFTER_S = 10
READERS = ("reviewer", "operator", "analyst")
ANY = "*"
# Whoever installed Placet has a token of this tenant (`placet up` writes it to admin.token).
OWNER_TENANT = "default"


class Believed(NamedTuple):
    """A token that was verified, and until when that stands."""

    claims: Claims
    until_s: float


@dataclass(slots=True)
class Authenticator:
    """Believes tokens of known issuers: the local one, and an identity provider where there is one.

    A token says who issued it, and is then verified with the keys of that issuer only. Its expiry is looked at every
    time, its signature once a minute, and the roles of its subject's principal (`people`) each time.
    """

    public_keys: PublicKeys
    clock: Callable[[], float] = time.time
    oidc: OidcIssuer | None = None
    people: Callable[[], People] = People
    _believed: OrderedDict[str, Believed] = field(default_factory=OrderedDict, init=False)

    async def claims(self, token: str) -> Claims:
        """What a token says.

        Raises:
            Problem: 401 unauthenticated; 503 unavailable, the identity provider's keys cannot be had.
        """
        now = self.clock()
        known = self._believed.get(token)
        if known is not None and now < known.until_s:
            return self._resolved(known.claims)
        self._believed.pop(token, None)
        try:
            claims = await self._verified(token, now)
        except TokenRefused as error:
            raise Problem(Refusal.UNAUTHENTICATED, str(error)) from error
        except IssuerUnavailable as error:
            raise Problem(Refusal.UNAVAILABLE, str(error), retry_after=RETRY_AFTER_S) from error
        except KeysUnreadable as error:
            # Which file it is concerns the operator, not everybody.
            logger.error("no token can be verified: %s", error)
            detail = "the issuers' keys cannot be read: ask the operator"
            raise Problem(Refusal.UNAVAILABLE, detail, retry_after=RETRY_AFTER_S) from error
        self._believed[token] = Believed(claims, min(claims.expires_at_s, now + BELIEVED_S))
        if len(self._believed) > CACHED_TOKENS_MAX:
            self._believed.popitem(last=False)
        return self._resolved(claims)

    def still_stands(self, claims: Claims) -> bool:
        """Whether claims that were believed earlier give the same roles now."""
        # What the token says counts again once its subject is nobody's account any more.
        said = claims.token_actor or claims.actor
        return self.people().of(said.tenant).resolved(said) == claims.actor

    def _resolved(self, claims: Claims) -> Claims:
        """The claims with the roles that count: those of the published principal, where there is one."""
        actor = self.people().of(claims.actor.tenant).resolved(claims.actor)
        return claims if actor is claims.actor else replace(claims, actor=actor, token_actor=claims.actor)

    async def close(self) -> None:
        """Let go of the connections to an identity provider."""
        if self.oidc is not None:
            await self.oidc.close()

    async def _verified(self, token: str, now: float) -> Claims:
        oidc = self.oidc
        if oidc is not None and unverified_issuer(token) == oidc.settings.issuer:
            return await oidc.claims(token, now)
        return read_claims(token, self.public_keys, now)

    async def of_header(self, authorization: str) -> Claims:
        """What the token of an Authorization header says.

        Raises:
            Problem: as `claims`.
        """
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise Problem(Refusal.UNAUTHENTICATED, "send a bearer token in the Authorization header")
        return await self.claims(token.strip())


def reads_project(actor: Actor) -> bool:
    """Whether the actor may read all of its project."""
    return actor.has(*READERS)


def acts_for(actor: Actor, agent: str) -> bool:
    """Whether the actor may act in an agent's name: the agent's own token, an operator, an admin."""
    if actor.agent is not None:
        return actor.agent == agent
    return actor.has("operator")


def check_reads(actor: Actor) -> None:
    """Refuse who may not read the whole project.

    Raises:
        Problem: 403 not_authorised.
    """
    if not reads_project(actor):
        raise Problem(Refusal.NOT_AUTHORISED, f"this needs one of the roles {', '.join(READERS)}")


def check_role(actor: Actor, *roles: str) -> None:
    """Refuse who has none of the roles and is no admin; an agent's token has none of them.

    Raises:
        Problem: 403 not_authorised.
    """
    if actor.agent is not None or not actor.has(*roles):
        raise Problem(Refusal.NOT_AUTHORISED, f"this needs one of the roles {', '.join(roles)}")


def is_owner(actor: Actor) -> bool:
    """Whether the actor is an admin of the installation itself; an agent's token is none."""
    return actor.agent is None and actor.has("admin") and actor.tenant == OWNER_TENANT


def check_owner(actor: Actor) -> None:
    """Refuse who is no admin of the installation itself.

    Raises:
        Problem: 403 not_authorised.
    """
    check_role(actor, "admin")
    if actor.tenant != OWNER_TENANT:
        raise Problem(Refusal.NOT_AUTHORISED, f"this needs an admin of the tenant {OWNER_TENANT}")


def check_sees(actor: Actor, row: Row) -> None:
    """Refuse who may not read one execution, call or hold of its project.

    Raises:
        Problem: 403 not_authorised.
    """
    if not reads_project(actor) and not (actor.agent is not None and row["agent"] == actor.agent):
        raise Problem(Refusal.NOT_AUTHORISED, "this token may only read what is its own agent's")


def check_acts(actor: Actor, agent: str) -> None:
    """Refuse who may not act for an agent.

    Raises:
        Problem: 403 not_authorised.
    """
    if not acts_for(actor, agent):
        raise Problem(Refusal.NOT_AUTHORISED, f"this token cannot act for the agent {agent}")


def check_runs(actor: Actor, row: Row) -> None:
    """Refuse who may not run a call: neither who acts for its agent, nor its tool's server.

    Raises:
        Problem: 403 not_authorised.
    """
    if actor.agent is None and tool_role(row["tool"]) in actor.roles:
        return
    check_acts(actor, row["agent"])


def permitted_scope(claims: Claims, name: str, given: str) -> str:
    """The user or workspace that an execution is started for.

    A claim with a name fixes it: that name is used where none is given, and no other is accepted, so that the
    policies of that user cannot be avoided by leaving it out. The claim `*`, and without a claim the roles
    operator and admin, may give any. Everyone else may give none.

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
