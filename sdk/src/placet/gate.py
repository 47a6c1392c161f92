"""The steps of one call: proposed, decided, verified, consumed, run and reported.

The order matters:
1. the call is proposed under an id that a restarted process computes again, with a fresh attempt id: the decision
   that releases a call at once consumes it for that attempt, and 5 is done;
2. the client waits for its decision;
3. the grant's digest is computed again locally from what would run;
4. the approved arguments are fitted to the function;
5. the grant is consumed under a fresh attempt id, and its sensitive values are verified and inserted;
6. only then the caller runs the function;
7. its result is reported.
If the process dies between 5 and 7, a person settles the call, or, if its tool is published as idempotent, the next
process that makes it after the lease has ended. A death at any other step has no consequences. For cancellation
see `placet.tries`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from placet import asks, tracing
from placet.canonical import call_digest, canonical, parse_strict
from placet.channel import Channel
from placet.errors import (
    AlreadyConsumed,
    Denied,
    DigestMismatch,
    NotAuthorised,
    NotFound,
    NotReleased,
    OutcomeUnknown,
    OutputNotRecorded,
    Refused,
    StillHeld,
    ToolFailed,
)
from placet.lease import Lease, consumed
from placet.models import Object, ToolCall
from placet.pausing import LOOK_AGAIN_S, wait_for_resume
from placet.proposing import proposed
from placet.recording import UNRECORDED
from placet.secrets import ForgedSecret, handed_over, has_placeholder, masked
from placet.tool_models import Tool
from placet.tries import Attempt, Try

MOST_ROUNDS = 100
MOST_ERROR_CHARS = 4000


@dataclass(frozen=True)
class Proposal:
    """The proposed call: `arguments` as read back from their canonical JSON."""

    execution_id: str
    call_id: str
    tool: str
    arguments: Mapping[str, Any] = field(repr=False)
    agent: str | None = None
    annotations: Object | None = None
    context: Object | None = None
    reason: str = ""

    def body(self) -> dict[str, Any]:
        """The proposal as the interface has it."""
        body: dict[str, Any] = {"call_id": self.call_id, "tool": self.tool, "arguments": self.arguments}
        if self.annotations:
            body["annotations"] = dict(self.annotations)
        if self.context:
            body["context"] = dict(self.context)
        if self.reason:
            body["reason"] = self.reason
        return body


@dataclass(frozen=True)
class Cleared:
    """The permission to run once, with exactly these arguments.

    `lease` is how long the attempt holds the call without a renewal, None if no renewal is needed.
    """

    call: ToolCall
    arguments: Mapping[str, Any] = field(repr=False)
    attempt_id: str
    lease: Lease | None = None


@dataclass(frozen=True)
class Replayed:
    """An earlier attempt succeeded; this is its output."""

    call: ToolCall
    output: Any


async def clear(
    channel: Channel,
    one: Try,
    proposal: Proposal,
    fit: Callable[[Mapping[str, Any]], object],
    timeout_s: float | None = None,
    decided_within_s: float | None = None,
) -> Cleared | Replayed:
    """Bring a call to the point where it can run (steps 1 to 5).

    Args:
        channel: to the gateway.
        one: this try at it.
        proposal: the call.
        fit: raises when approved arguments do not fit the function.
        timeout_s: for another attempt that has the call, or a paused run; None waits as long as they do.
        decided_within_s: for a person's decision; None waits as long as the hold does.

    Raises:
        Denied: it will not run.
        StillHeld: there was no decision in time, or another attempt still has it, or its run was still paused.
        DigestMismatch: the grant is for something else than what would run.
        OutcomeUnknown: another attempt holds it, and its tool is not published as idempotent.
        ToolFailed: another attempt ran it and failed.
    """
    call, leave = await _propose(channel, one, proposal)
    for _ in range(MOST_ROUNDS):
        call = await _decided(channel, one, call, decided_within_s)
        if not one.goes_on(call):
            call = await _left(channel, one, call, timeout_s)
            if call.pending:
                continue
            if call.status not in ("released", "outcome_unknown"):
                return settled(call)
        arguments = await _fitted(channel, call, proposal, fit)
        attempt = await _attempt(one, call)
        try:
            # A person may have decided hours after the span of the proposal had ended.
            with tracing.continuing(one.trace):
                return await _consume(channel, call, arguments, proposal, attempt, leave)
        except NotReleased as error:
            call = await read_call(channel, call.execution_id, call.call_id)
            if call.status == "outcome_unknown" and call.raw.get("attempt_id") == attempt.id:
                # Its lease has ended: a new attempt runs the call again.
                one.lost()
                if not attempt.taken_over:
                    raise OutcomeUnknown(call) from error
            elif call.status in ("released", "outcome_unknown"):
                was_paused = await _resumed(channel, one, call, timeout_s)
                if call.status == "outcome_unknown" and not was_paused:
                    raise OutcomeUnknown(call) from error
            # In any other status the definitions became stricter after the release: the call is held again.
        except AlreadyConsumed as error:
            one.lost()
            call = await read_call(channel, call.execution_id, call.call_id)
            # An attempt left by an earlier try may have consumed an earlier release.
            if not (call.status == "consumed" or (attempt.taken_over and call.status == "released")):
                return _settled_elsewhere(call, error)
        leave = None
    raise StillHeld(call, timeout_s or 0.0, f"its consumption was refused {MOST_ROUNDS} times")


async def _propose(channel: Channel, one: Try, proposal: Proposal) -> tuple[ToolCall, Object | None]:
    """The call from the answer, and the answer itself if it is the permission to run."""
    attempt = one.proposing(proposal.call_id)
    body = proposal.body()
    if attempt.taken_over:
        await one.place.reserve()
    # A call that has to wait for a thread is consumed after that.
    if attempt.taken_over or await one.place.taken_if_free():
        body["attempt_id"] = attempt.id
    facts = tracing.facts_of_call(proposal.execution_id, proposal.call_id, proposal.tool)
    try:
        with tracing.span("placet.propose", facts) as one.trace:
            call = await proposed(channel, proposal.execution_id, body)
    except AlreadyConsumed:
        one.drop(proposal.call_id)
        return await read_call(channel, proposal.execution_id, proposal.call_id), None
    except Refused as refused:
        # It was not proposed, and this attempt is never used again.
        if refused.acts != "retry" and not attempt.taken_over:
            one.drop(proposal.call_id)
        raise
    if one.goes_on(call):
        # Sealed values come only with the answer to a consumption.
        return call, None if has_placeholder(call.approved_arguments) else call.raw
    # Decided without the attempt: then it consumed nothing. It can still consume a call that is not decided yet.
    if call.status != "proposed" and not attempt.taken_over:
        one.drop(call.call_id)
    return call, None


async def _decided(channel: Channel, one: Try, call: ToolCall, within_s: float | None) -> ToolCall:
    if call.pending:
        one.place.leave()
    return await channel.decided(call, within_s)


async def _attempt(one: Try, call: ToolCall) -> Attempt:
    await one.place.reserve()
    return one.consuming(call.call_id)


async def _fitted(
    channel: Channel, call: ToolCall, proposal: Proposal, fit: Callable[[Mapping[str, Any]], object]
) -> Mapping[str, Any]:
    """The arguments to run with, if they are the released ones and fit the function."""
    try:
        arguments = verified(call, proposal)
        fit(arguments)
    except Exception as error:
        if call.status == "consumed":
            await never_ran(channel, call, str(call.raw.get("attempt_id")), error)
        raise
    return arguments


async def never_ran(channel: Channel, call: ToolCall, attempt_id: str, error: object) -> None:
    """Report a call that was consumed and never run as failed, so that no person has to settle it."""
    failed = {"outcome": "failed", "error": f"the tool did not run: {error}"[:MOST_ERROR_CHARS]}
    await report(channel, Cleared(call, {}, attempt_id), failed)


async def _resumed(channel: Channel, one: Try, call: ToolCall, timeout_s: float | None) -> bool:
    """Wait for the end of a pause, without a thread; returns True if there was one."""
    one.place.leave()
    return await wait_for_resume(channel, call, timeout_s)


async def _left(channel: Channel, one: Try, call: ToolCall, timeout_s: float | None) -> ToolCall:
    """Wait until no attempt holds the call, if its tool can run again without a person's decision.

    Raises:
        OutcomeUnknown: another attempt has or had it, and the tool is not published as idempotent.
        StillHeld: after `timeout_s` another attempt still has it.
    """
    one.place.leave()
    if call.status in ("consumed", "outcome_unknown") and not await is_idempotent(channel, call.tool):
        raise OutcomeUnknown(call)
    # It reports, or its lease ends: no other attempt may run beside it.
    found, clock = call, asyncio.get_running_loop().time
    give_up_at = None if timeout_s is None else clock() + timeout_s
    while found.status == "consumed":
        if give_up_at is not None and clock() >= give_up_at:
            raise StillHeld(found, timeout_s or 0.0)
        await asyncio.sleep(LOOK_AGAIN_S)
        found = await channel.patiently(lambda: read_call(channel, call.execution_id, call.call_id))
    return found


async def is_idempotent(channel: Channel, tool: str) -> bool:
    """Returns True if another attempt may run a call of the tool once the lease of this one has ended."""
    try:
        return (await channel.one(Tool, asks.get_tool(tool))).idempotent
    except (NotFound, NotAuthorised):
        # Not published, or not readable with this token: then it must not be run twice.
        return False


async def _consume(
    channel: Channel,
    call: ToolCall,
    arguments: Mapping[str, Any],
    proposal: Proposal,
    attempt: Attempt,
    leave: Object | None,
) -> Cleared:
    """Consume, unless the proposal's answer was already the permission to run (`leave`)."""
    digest = granted_digest(call)
    where = call.execution_id, call.call_id
    # What runs is told the releasing decision's id as its idempotency key, so no later release may be used.
    grant_id = call.grant.grant_id if call.grant is not None else ""

    async def consume() -> Any:
        if leave is not None:
            return leave
        return await channel.ask(asks.consume(*where, digest, attempt.id, grant_id or None))

    answer, lease = await consumed(
        consume,
        lambda: channel.ask(asks.heartbeat(*where, attempt.id)),
        attempt.id,
        attempt.asked_at,
    )
    delivered = answer.get("secrets") or () if isinstance(answer, Mapping) else ()
    if delivered:
        channel.exposed.add()
    try:
        whole = handed_over(arguments, delivered, proposal.arguments, is_edited=call.revision > 1)
        return Cleared(call, whole, attempt.id, lease)
    except ForgedSecret as error:
        await never_ran(channel, call, attempt.id, error)
        raise _mismatch(call, str(error), "") from error


async def read_call(channel: Channel, execution_id: str, call_id: str) -> ToolCall:
    """A call as it is now."""
    return await channel.one(ToolCall, asks.get_call(execution_id, call_id, None, None))


def _settled_elsewhere(call: ToolCall, error: AlreadyConsumed) -> Replayed:
    if call.status == "released":
        # The view is behind the log: what counts is that another attempt has the grant.
        raise OutcomeUnknown(call) from error
    return settled(call)


def settled(call: ToolCall) -> Replayed:
    """The result for the caller of a call that cannot run any more.

    Raises:
        Denied, ToolFailed, OutputNotRecorded, OutcomeUnknown: by its status.
    """
    if call.stopped:
        raise Denied(call)
    if call.status == "failed":
        raise ToolFailed(call, call.error)
    if call.status != "succeeded":
        raise OutcomeUnknown(call)
    if isinstance(call.output, Mapping) and UNRECORDED in call.output:
        raise OutputNotRecorded(call, str(call.output[UNRECORDED]))
    return Replayed(call, call.output)


def granted_digest(call: ToolCall) -> str:
    """The digest that the release names."""
    return call.grant.digest if call.grant is not None else call.digest


def verified(call: ToolCall, proposal: Proposal) -> Mapping[str, Any]:
    """The arguments to run with, after a check that the grant's digest is that of exactly these arguments.

    Args:
        call: the released call, as the gateway sent it.
        proposal: what was proposed here; its arguments count unless a later revision was approved.

    Returns:
        The approved arguments, read back from their canonical bytes.

    Raises:
        DigestMismatch: the release is for something else.
    """
    chosen = proposal.arguments if call.approved_arguments is None else call.approved_arguments
    asked = (proposal.execution_id, proposal.call_id, proposal.tool, proposal.agent or call.agent)
    if (call.execution_id, call.call_id, call.tool, call.agent) != asked:
        raise _mismatch(call, "it names another call", "")
    try:
        expected = call_digest(call.tenant, call.agent, call.tool, call.tool_version, chosen)
        same = call.revision > 1 or canonical(chosen) == canonical(masked(proposal.arguments, chosen))
        arguments = parse_strict(canonical(chosen))
    except (TypeError, ValueError) as error:
        raise _mismatch(call, f"its arguments have no digest ({error})", "") from error
    if not same:
        raise _mismatch(call, "its arguments were changed without a new revision", expected)
    if granted_digest(call) != expected:
        raise _mismatch(call, "its digest is not that of the call that would run", expected)
    assert isinstance(arguments, dict)
    return arguments


def _mismatch(call: ToolCall, why: str, expected: str) -> DigestMismatch:
    detail = f"the release of {call.tool} was not used: {why}"
    fields = {"call_id": call.call_id, "granted": granted_digest(call), "expected": expected}
    return DigestMismatch("digest_mismatch", 0, detail, fields)


async def report(channel: Channel, cleared: Cleared, body: Mapping[str, Any]) -> None:
    """Report what became of a call that was consumed."""
    call = cleared.call
    await channel.ask(
        asks.result(call.execution_id, call.call_id, {"attempt_id": cleared.attempt_id, **body})
    )
