"""Who calls: the subject of a call's token, which is verified here before the gateway is asked.

All calls reach the gateway from this role's address. If tokens were refused only there, the failures of one client
would be those of all, and of other clients of that machine: so they are counted here, by the clients' own addresses.
The gateway verifies every token again, and decides; what is found here only says whose limits a call counts for.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from pathlib import Path
from typing import NamedTuple

from gateway.identity.authentication import Authenticator, bearer_token
from gateway.problems import Problem
from gateway.rest.failed_authentications import FAILURES_BURST_S, FAILURES_PER_S
from gateway.rpc.metadata import Context, address_of, passed_on
from gateway.shares.rates import Buckets
from schemas.refusals import Refusal

ACCEPTED_MAX = 4_096
# Without keys, every invalid token reaches the gateway, which counts the failures of this role's address: all clients
# together stay below what it permits to one.
UNVERIFIED_SHARE = 0.5


class Caller(NamedTuple):
    """Whose limits a call counts for.

    Attributes:
        tenant, subject: of its token. Where tokens cannot be verified, both are the token.
    """

    tenant: str
    subject: str


class Callers:
    """Tells who calls, and refuses addresses from which too many tokens were invalid.

    A token that was valid before is verified again whatever its sender's address: clients can share one, behind a
    proxy.
    """

    def __init__(self, authenticator: Authenticator | None, issuers: Path | None) -> None:
        """Begin without failures.

        Args:
            authenticator: verifies tokens; None where the installation's public keys are not at hand.
            issuers: the file of these keys. As long as it does not exist, the gateway alone verifies.
        """
        self._authenticator = authenticator
        self._issuers = issuers
        self._failures = Buckets(FAILURES_PER_S, FAILURES_BURST_S)
        self._unverified = Buckets(FAILURES_PER_S * UNVERIFIED_SHARE, FAILURES_BURST_S)
        self._accepted: OrderedDict[str, None] = OrderedDict()
        self._found_keys = False

    def is_known(self, said: str) -> bool:
        """Return True if a token, as `said_in`, was valid before."""
        return said in self._accepted

    async def caller(self, said: str, context: Context) -> Caller | None:
        """Return whose call it is; None if only the gateway can tell, and has not accepted the token yet.

        Args:
            said: the token that the call presents, as `said_in`.
            context: the call.

        Raises:
            Problem: 401 unauthenticated; 400 or 422, its metadata; 429 quota, too many failures of the address;
                503 unavailable, the token cannot be verified now.
        """
        is_known = self.is_known(said)
        if not is_known:
            self._check_address(context)
        try:
            token = bearer_token(passed_on(context))
            if self._authenticator is None or not self._has_keys():
                return Caller(said, said) if is_known else None
            actor = (await self._authenticator.verify(token)).claims.actor
        except Problem as problem:
            if problem.code == Refusal.UNAUTHENTICATED:
                self.failed(said, context)
            raise
        self.accepted(said)
        return Caller(actor.tenant, actor.subject)

    def accepted(self, said: str) -> None:
        """Note that a token is valid."""
        self._accepted[said] = None
        self._accepted.move_to_end(said)
        if len(self._accepted) > ACCEPTED_MAX:
            self._accepted.popitem(last=False)

    def failed(self, said: str, context: Context) -> None:
        """Count a call without a valid token against its sender's address."""
        self._accepted.pop(said, None)
        now = time.monotonic()
        self._failures.charge(address_of(context.peer()), now, 1.0)
        if not self._has_keys():
            self._unverified.charge("", now, 1.0)

    def _check_address(self, context: Context) -> None:
        now = time.monotonic()
        wait_s = self._failures.charge(address_of(context.peer()), now, 0.0)
        if not self._has_keys():
            wait_s = max(wait_s, self._unverified.charge("", now, 0.0))
        if wait_s:
            detail = "too many calls from this address had no valid token"
            raise Problem(Refusal.QUOTA, detail, retry_after=math.ceil(wait_s))

    def _has_keys(self) -> bool:
        """Return True if the installation's public keys are there: a gateway makes them when it first starts."""
        if not self._found_keys and self._issuers is not None:
            self._found_keys = self._issuers.exists()
        return self._found_keys

    async def aclose(self) -> None:
        """Close the connections to an identity provider."""
        if self._authenticator is not None:
            await self._authenticator.close()
