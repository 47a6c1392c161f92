"""Consumes a grant once, through the gateway, before the tool runs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import httpx

from placet import asks
from placet.config import SettingRefused, checked_source, checked_token
from placet.errors import NotReleased, Unreachable, is_passing, refusal
from placet.grants.refusals import Code, GrantRefused
from placet.grants.token import Grant
from placet.ids import InvalidId
from placet.ids import attempt_id as new_attempt_id
from placet.lease import Lease, consumed
from placet.transport.port import Request

TRIES = 2
PAUSE_S = 0.2
ANSWER_MAX_BYTES = 4 * 1024 * 1024
# The gateway's codes of conflicts, and the refusals that they mean for the grant.
CONFLICTS: Mapping[str, Code] = {
    "already_consumed": "already_consumed",
    "digest_mismatch": "digest_mismatch",
    "expired": "expired",
}


@dataclass(frozen=True)
class Attempt:
    """A consumed grant: the tool runs now, and then its result is reported (`GatewayConsumer.report`).

    `lease_s` is the time after which the attempt must have been renewed (`GatewayConsumer.renew`), and `lease` knows
    when that should be done. `decision_id` is the decision that released the call.
    """

    grant: Grant
    attempt_id: str
    lease_s: float | None = None
    decision_id: str = ""
    lease: Lease | None = field(default=None, repr=False, compare=False)

    @property
    def idempotency_key(self) -> str:
        """The idempotency key for external systems, so that they recognise a repeat.

        It is the releasing decision's id, or the grant's id if a custom consumer names no decision. A call's id would
        be unique in its execution only.
        """
        return self.decision_id or self.grant.grant_id

    def may_begin(self) -> bool:
        """Ask, on any thread, right before the effect of a tool whose handler can have waited since the consumption.

        Such as for a thread: Starlette has 40 of them for handlers that are no `async def`.

        Returns:
            False if the lease is over, or can no longer be renewed: then another attempt may run, and this one must
            have no effect and report nothing.
        """
        return self.lease is None or self.lease.permits_begin()


Consume = Callable[[Grant], Awaitable[Attempt]]


class GatewayConsumer:
    """Consumes grants through a gateway, with a token that can act for the agents whose calls arrive.

    Args:
        url: the gateway's address.
        client: the HTTP client; its time-outs bound how long a call waits.
        token: the bearer token, or a function that returns a new one. It must be of the grant's own project.

    Raises:
        SettingRefused: no header can carry the token.
    """

    def __init__(self, url: str, client: httpx.AsyncClient, token: str | Callable[[], str]) -> None:
        self._url = f"{url.rstrip('/')}/v1"
        self._client = client
        self._token: Callable[[], str]
        if callable(token):
            self._token = checked_source(token)
        else:
            stripped = checked_token("The token that was given (token=)", token)
            self._token = lambda: stripped

    async def __call__(self, grant: Grant) -> Attempt:
        """Consume a grant under a new attempt id.

        Raises:
            GrantRefused: it was consumed or revoked, or the gateway did not answer: then the tool must not run.
        """
        attempt = new_attempt_id()
        try:
            request = asks.consume(grant.execution_id, grant.call_id, grant.digest, attempt, grant.grant_id)
        except InvalidId as error:
            raise GrantRefused("malformed", "the grant names no call") from error
        sign = asks.heartbeat(grant.execution_id, grant.call_id, attempt)
        try:
            told, lease = await consumed(
                lambda: self._consumption(request, grant, attempt),
                lambda: self._consumption(sign, grant, attempt),
                attempt,
            )
        except NotReleased as error:
            raise GrantRefused("not_released", error.detail) from error
        return Attempt(grant, attempt, lease.length_s if lease else None, _decision_of(told), lease)

    async def _consumption(self, request: Request, grant: Grant, attempt: str) -> Mapping[str, Any]:
        answer = await self._answer(request.path, request.body or {})
        if answer.status_code != httpx.codes.OK:
            raise _refusal(answer)
        told = _object(answer)
        _check_consumed(told, grant, attempt)
        return told

    async def renew(self, attempt: Attempt) -> Mapping[str, Any]:
        """Renew the lease of an attempt that still runs.

        Returns:
            The call.

        Raises:
            PlacetError: the gateway refuses it, or does not answer.
        """
        grant = attempt.grant
        return await self._told(asks.heartbeat(grant.execution_id, grant.call_id, attempt.attempt_id))

    async def report(
        self,
        attempt: Attempt,
        outcome: Literal["succeeded", "failed", "unknown"],
        *,
        output: Any = None,
        error: str = "",
        duration_ms: int = 0,
    ) -> Mapping[str, Any]:
        """Report the outcome of an attempt. The gateway accepts it only from the subject that consumed the grant.

        Args:
            attempt: the consumed grant.
            outcome: how it ended; after "unknown" a person is asked.
            output: the tool's output, as JSON.
            error: why it failed, or why the outcome is unknown.
            duration_ms: how long it ran.

        Returns:
            The call.

        Raises:
            PlacetError: the gateway refuses it, or does not answer.
        """
        grant = attempt.grant
        body: dict[str, Any] = {
            "attempt_id": attempt.attempt_id,
            "outcome": outcome,
            "duration_ms": duration_ms,
        }
        body.update({"error": error} if error else {"output": output})
        return await self._told(asks.result(grant.execution_id, grant.call_id, body))

    async def _told(self, request: Request) -> Mapping[str, Any]:
        try:
            answer = await self._answer(request.path, request.body or {})
        except GrantRefused as error:
            raise Unreachable(str(error)) from error
        if answer.status_code != httpx.codes.OK:
            raise refusal(answer.status_code, _object(answer))
        return _object(answer)

    async def _answer(self, path: str, body: Mapping[str, Any]) -> httpx.Response:
        # The same attempt gets the same answer, so a lost answer can be requested again.
        try:
            headers = {"Authorization": f"Bearer {self._token()}"}
        except SettingRefused as error:
            raise GrantRefused("unavailable", f"{error} Nothing runs") from error
        failure: httpx.HTTPError | None = None
        for number in range(TRIES):
            if number:
                await asyncio.sleep(PAUSE_S)
            try:
                answer = await self._client.post(
                    f"{self._url}{path}",
                    json=dict(body),
                    headers=headers,
                    follow_redirects=False,
                )
            except httpx.HTTPError as error:
                failure = error
                continue
            if number == TRIES - 1 or not is_passing(answer.status_code):
                return answer
        raise GrantRefused("unavailable", "the gateway cannot be reached: nothing runs") from failure


def _refusal(answer: httpx.Response) -> GrantRefused:
    said = _object(answer).get("code")
    if answer.status_code == httpx.codes.CONFLICT:
        code = CONFLICTS.get(str(said), "not_released")
        return GrantRefused(code, f"the gateway refuses the grant: {_word(said)}")
    if answer.status_code in (httpx.codes.FORBIDDEN, httpx.codes.NOT_FOUND):
        detail = f"the tool server's token may not use this grant: {_word(said)}"
        return GrantRefused("not_authorised", detail)
    if answer.status_code == httpx.codes.UNAUTHORIZED:
        return GrantRefused("unavailable", "the gateway does not accept the tool server's own token")
    return GrantRefused("unavailable", f"the gateway answered {answer.status_code}: nothing runs")


def _check_consumed(call: Mapping[str, Any], grant: Grant, attempt_id: str) -> None:
    """Refuse if another release than this grant's was consumed: a call of another project can have the same ids."""
    told = call.get("grant")
    shown = {
        "tenant": call.get("tenant"),
        "project": call.get("project"),
        "attempt_id": call.get("attempt_id"),
        "digest": told.get("digest") if isinstance(told, Mapping) else None,
        "grant_id": told.get("grant_id") if isinstance(told, Mapping) else None,
    }
    wanted = {
        "tenant": grant.tenant,
        "project": grant.project,
        "attempt_id": attempt_id,
        "digest": grant.digest,
        "grant_id": grant.grant_id,
    }
    if shown != wanted:
        raise GrantRefused("not_authorised", "the gateway consumed a release other than the grant's")


def _decision_of(call: Mapping[str, Any]) -> str:
    told = call.get("grant")
    said = told.get("decision_id") if isinstance(told, Mapping) else None
    return said if isinstance(said, str) else ""


def _object(answer: httpx.Response) -> Mapping[str, Any]:
    if len(answer.content) > ANSWER_MAX_BYTES:
        return {}
    try:
        value = json.loads(answer.content)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _word(said: Any) -> str:
    return said if isinstance(said, str) and said.isidentifier() else "no reason given"
