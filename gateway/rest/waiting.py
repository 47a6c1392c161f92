"""Requests that wait (`wait=`): for the requested time, while their sender is authenticated."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Hashable
from typing import Any

from starlette.requests import ClientDisconnect, Request

from gateway.identity.authentication import RolesChanged
from gateway.problems import Problem
from gateway.rest.request_context import RequestContext
from schemas.refusals import Refusal


async def wait_until(
    context: RequestContext, subject: Hashable, done: Callable[[], bool], wait_s: float
) -> None:
    """Wait until a condition holds that can become true only when a subject changes; at most `wait_s`.

    The request counts among those of its sender that wait, and no longer than its client is there.

    Raises:
        ClientDisconnect: the client is gone.
        Problem: 429 quota, the sender has the maximum number of requests that wait; otherwise as `_wait`.
    """
    if wait_s <= 0:
        await _wait(context, subject, done, wait_s)
        return
    with context.gateway.waiting_limit.open(context.actor):
        await while_connected(context.request, _wait(context, subject, done, wait_s))


async def _wait(context: RequestContext, subject: Hashable, done: Callable[[], bool], wait_s: float) -> None:
    """Wait as `wait_until`.

    Raises:
        Problem: at the end of the wait, and every `RECHECK_S` before it: 401, the token is no longer valid;
            503, its subject now has other roles: the request must be repeated with them.
    """
    watch, until_s = context.gate.live.watch, time.monotonic() + wait_s
    left_s = wait_s
    while not await watch.until(subject, done, min(left_s, context.authentication.recheck_s)):
        left_s = until_s - time.monotonic()
        if left_s <= 0 or watch.is_closed:
            break
        await _check_still_authenticated(context)
    await _check_still_authenticated(context)


async def while_connected(request: Request, waiting: Coroutine[Any, Any, None]) -> None:
    """Wait for as long as the client is there: what is given to a client that is gone is lost to others.

    Args:
        request: its body has been read.
        waiting: is cancelled if the client goes.

    Raises:
        ClientDisconnect: it is gone.
    """
    gone, waited = asyncio.ensure_future(_gone(request)), asyncio.ensure_future(waiting)
    try:
        await asyncio.wait((gone, waited), return_when=asyncio.FIRST_COMPLETED)
        if not waited.done():
            raise ClientDisconnect
        await waited
    finally:
        for task in (gone, waited):
            task.cancel()
        await asyncio.gather(gone, waited, return_exceptions=True)


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        continue


async def _check_still_authenticated(context: RequestContext) -> None:
    try:
        await context.authentication.check()
    except RolesChanged as error:
        detail = "the roles of this account have changed: send the request again"
        raise Problem(Refusal.UNAVAILABLE, detail, retry_after=1) from error
