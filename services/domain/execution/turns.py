"""A conversation: messages to an agent, each answered in a turn, one turn at a time and in their order.

A turn is worked on by one attempt at a time, under a lease. What an attempt does beside its replies are the calls and
questions of the execution, which have ids of their own: so an attempt that takes a turn on after another one finds
what that one did. A turn that waits for a person is given back, and resumes with the event that ends its hold.
"""

from msgspec.structs import replace

from schemas import conversation_commands as k
from schemas.events import conversations as v
from schemas.events import holds as h
from schemas.limits import (
    REPLIES_MAX,
    TURN_LAPSES_MAX,
    TURN_LEASE_MS,
    TURNS_MAX,
    TURNS_OPEN_MAX,
)
from schemas.refusals import Refusal
from services.domain.arguments import object_problem
from services.domain.authority.authority import acts_for_agent, may_steer
from services.domain.context import Context
from services.domain.execution.digests import text_digest
from services.domain.execution.folding import Folds, going_on, with_sender, with_turn
from services.domain.execution.handler import Handlers
from services.domain.execution.joining import FULL, is_full
from services.domain.refusals import Events, refuse
from services.domain.state import ENDED_TURNS, Execution, Turn

Problem = tuple[Refusal, str]
GIVEN_UP = f"its worker was lost {TURN_LAPSES_MAX} times in a row"


def send(state: Execution, command: k.SendMessage, ctx: Context) -> Events:
    """SendMessage: a message to the agent, and with it a turn, which follows those that are open."""
    if not may_steer(ctx.actor, state):
        return refuse(ctx, command, Refusal.NOT_AUTHORISED, "this token cannot send messages to this agent")
    if (problem := _sending_problem(state, command, ctx)) is not None:
        return refuse(ctx, command, *problem, command.turn_id)
    actor = ctx.actor
    return [
        v.MessageSent(turn_id=command.turn_id, text=command.text, by=actor.subject, agent=actor.agent or "")
    ]


def claim(state: Execution, command: k.ClaimTurn, ctx: Context) -> Events:
    """ClaimTurn: one attempt takes on the turn that is next."""
    turn = state.turns.get(command.turn_id)
    if turn is None or not acts_for_agent(ctx.actor, state.agent):
        return refuse(ctx, command, Refusal.NOT_FOUND, "no such turn", command.turn_id)
    if (problem := _claiming_problem(state, turn, command, ctx)) is not None:
        return refuse(ctx, command, *problem, command.turn_id)
    return [
        v.TurnClaimed(
            turn_id=command.turn_id,
            attempt_id=command.attempt_id,
            lease_until_ms=ctx.now_ms + TURN_LEASE_MS,
            by=ctx.actor.subject,
        )
    ]


def renew(state: Execution, command: k.RenewTurn, ctx: Context) -> Events:
    """RenewTurn: its attempt still works on the turn."""
    turn = _own_turn(state, command.turn_id, command.attempt_id, ctx)
    if isinstance(turn, tuple):
        return refuse(ctx, command, *turn, command.turn_id)
    if turn.lease_until_ms - ctx.now_ms > TURN_LEASE_MS // 2:
        detail = "more than half of the lease is left"
        return refuse(ctx, command, Refusal.DUPLICATE, detail, command.turn_id)
    until_ms = ctx.now_ms + TURN_LEASE_MS
    return [
        v.TurnRenewed(
            turn_id=command.turn_id,
            attempt_id=command.attempt_id,
            lease_until_ms=until_ms,
            by=ctx.actor.subject,
        )
    ]


def post(state: Execution, command: k.PostReply, ctx: Context) -> Events:
    """PostReply: the agent says something before its turn is over."""
    turn = _own_turn(state, command.turn_id, command.attempt_id, ctx)
    if isinstance(turn, tuple):
        return refuse(ctx, command, *turn, command.turn_id)
    problem = object_problem("details", command.details) or _reply_problem(turn, command)
    if problem is not None:
        return refuse(ctx, command, *problem, command.turn_id)
    return [_reply(command.turn_id, command.attempt_id, command.number, command.text, command.details, ctx)]


def give_back(state: Execution, command: k.YieldTurn, ctx: Context) -> Events:
    """YieldTurn: the attempt stops, so that another can go on: at once, or when a person has answered."""
    turn = _own_turn(state, command.turn_id, command.attempt_id, ctx)
    if isinstance(turn, tuple):
        return refuse(ctx, command, *turn, command.turn_id)
    if command.hold_id and command.hold_id not in state.holds:
        return refuse(ctx, command, Refusal.INVALID, "hold_id: there is no such hold", command.turn_id)
    yielded = v.TurnYielded(
        turn_id=command.turn_id,
        cause="waiting" if command.hold_id else "stopped",
        hold_id=command.hold_id,
        by=ctx.actor.subject,
    )
    if not command.hold_id or state.holds[command.hold_id].status == "open":
        return [yielded]
    # A person answered before the attempt said that it waits.
    return [yielded, v.TurnResumed(turn_id=command.turn_id, hold_id=command.hold_id)]


def end(state: Execution, command: k.EndTurn, ctx: Context) -> Events:
    """EndTurn: the agent has answered, or failed to."""
    turn = _own_turn(state, command.turn_id, command.attempt_id, ctx)
    if isinstance(turn, tuple):
        return refuse(ctx, command, *turn, command.turn_id)
    said: Events = []
    if command.reply:
        said = [_reply(command.turn_id, command.attempt_id, turn.replies + 1, command.reply, "{}", ctx)]
    ended = v.TurnEnded(
        turn_id=command.turn_id, outcome=command.outcome, error=command.error, by=ctx.actor.subject
    )
    return [*said, ended]


def lapsed(turn: Turn, by: str) -> Events:
    """The events of a turn whose lease has ended. Its attempt is taken to be lost, and after some it is given up."""
    yielded = v.TurnYielded(turn_id=turn.turn_id, cause="lease", hold_id="", by=by)
    if turn.lapses + 1 < TURN_LAPSES_MAX:
        return [yielded]
    return [yielded, v.TurnEnded(turn_id=turn.turn_id, outcome="failed", error=GIVEN_UP, by=by)]


def ended_turns(state: Execution, reason: str) -> Events:
    """The ends of all open turns, at the end of the execution."""
    return [
        v.TurnEnded(turn_id=turn_id, outcome="cancelled", error=reason, by="") for turn_id in state.open_turns
    ]


def with_resumed(state: Execution, events: Events) -> Events:
    """The events of a decision, with the resumption of the turn that waited for a hold which they close.

    Like `with_views`, this is done in one place, so that no path that closes a hold can omit it.

    Args:
        state: the state before the events.
        events: the events of one decision.
    """
    turn = state.turns[state.open_turns[0]] if state.open_turns else None
    if turn is None or turn.status != "suspended" or not _closes(events, turn.waits_for):
        return events
    if any(isinstance(event, v.TurnEnded) for event in events):
        return events
    return [*events, v.TurnResumed(turn_id=turn.turn_id, hold_id=turn.waits_for)]


def _reply(
    turn_id: str, attempt_id: str, number: int, text: str, details: str, ctx: Context
) -> v.ReplyPosted:
    return v.ReplyPosted(
        turn_id=turn_id,
        attempt_id=attempt_id,
        number=number,
        text=text,
        details=details,
        lease_until_ms=ctx.now_ms + TURN_LEASE_MS,
        by=ctx.actor.subject,
    )


def _closes(events: Events, hold_id: str) -> bool:
    for event in events:
        match event:
            case h.HoldExpired() | h.HoldCancelled():
                closed = event.hold_id
            case h.DecisionRecorded() if event.resolves:
                closed = event.hold_id
            case _:
                continue
        if closed == hold_id:
            return True
    return False


def _sending_problem(state: Execution, command: k.SendMessage, ctx: Context) -> Problem | None:
    earlier = state.turns.get(command.turn_id)
    if earlier is not None and earlier.message_digest == text_digest(command.text):
        return Refusal.DUPLICATE, "already sent"
    if state.closed:
        return Refusal.EXECUTION_CLOSED, f"the execution is {state.lifecycle}"
    if earlier is not None:
        return Refusal.ID_REUSED, "the message's id was used with another text"
    waiting = len(state.open_turns)
    own = sum(state.turns[turn_id].sent_by == ctx.actor.subject for turn_id in state.open_turns)
    # Each sender leaves as many places free as it has (`gateway.shares.open_limit` has the source of the rule).
    if own >= TURNS_OPEN_MAX - waiting:
        detail = (
            f"{waiting} messages wait for the agent's answer, {own} of them yours: send the next one later"
        )
        return Refusal.QUOTA, detail
    if len(state.turns) >= TURNS_MAX:
        return Refusal.QUOTA, f"a conversation has at most {TURNS_MAX} messages: start another one"
    return FULL if is_full(state, ctx.actor.subject) else None


def _claiming_problem(state: Execution, turn: Turn, command: k.ClaimTurn, ctx: Context) -> Problem | None:
    if turn.status in ENDED_TURNS:
        return Refusal.NOT_OPEN, f"the turn has ended: {turn.status}"
    if state.open_turns[0] != turn.turn_id:
        return Refusal.NOT_OPEN, "an earlier turn of the conversation is open"
    if turn.status == "claimed":
        is_same = (turn.attempt_id, turn.claimed_by) == (command.attempt_id, ctx.actor.subject)
        return (
            (Refusal.DUPLICATE, "this attempt works on it")
            if is_same
            else (Refusal.ALREADY_CONSUMED, "another attempt works on the turn")
        )
    if turn.attempt_id == command.attempt_id:
        return Refusal.ALREADY_CONSUMED, "this attempt has given the turn back: take it on under a new id"
    if turn.status == "suspended":
        return Refusal.NOT_RELEASED, "the turn waits for a person"
    if state.lifecycle == "paused":
        return Refusal.NOT_RELEASED, "the execution is paused"
    return None


def _own_turn(state: Execution, turn_id: str, attempt_id: str, ctx: Context) -> Turn | Problem:
    """The turn that an attempt works on, or the reason why it does not.

    Everyone who can read the conversation sees the attempt's id, so the subject must match too.
    """
    turn = state.turns.get(turn_id)
    if turn is None or not acts_for_agent(ctx.actor, state.agent):
        return Refusal.NOT_FOUND, "no such turn"
    is_theirs = (turn.attempt_id, turn.claimed_by) == (attempt_id, ctx.actor.subject)
    if turn.status == "claimed" and is_theirs:
        return turn
    if turn.status in ENDED_TURNS:
        return Refusal.NOT_OPEN, f"the turn has ended: {turn.status}"
    if turn.status == "claimed":
        return Refusal.ALREADY_CONSUMED, "another attempt works on the turn"
    return Refusal.NOT_RELEASED, "this attempt has given the turn back, or its lease has ended"


def _reply_problem(turn: Turn, command: k.PostReply) -> Problem | None:
    if not command.text and command.details == "{}":
        return Refusal.INVALID, "a reply has a text, or details"
    if command.number < 1 or command.number > turn.replies + 1:
        return Refusal.INVALID, f"number: the turn's next reply is number {turn.replies + 1}"
    if command.number > REPLIES_MAX:
        return Refusal.QUOTA, f"a turn has at most {REPLIES_MAX} replies"
    if command.number <= turn.replies:
        is_last = command.number == turn.replies
        if is_last and turn.reply_digest == text_digest(command.text, command.details):
            return Refusal.DUPLICATE, "already posted"
        return Refusal.ID_REUSED, f"reply {command.number} was posted before, with another text"
    return None


def _sent(state: Execution, event: v.MessageSent, at_ms: int) -> Execution:
    digest = text_digest(event.text)
    turn = Turn(turn_id=event.turn_id, message_digest=digest, text=event.text, sent_by=event.by)
    open_turns = (*state.open_turns, event.turn_id)
    # An account that acts as the agent does not speak for people: what it says, it may have read.
    words = state.words if _is_agents(state, event) else state.words.with_said(event.text)
    return with_turn(
        replace(with_sender(going_on(state), event.by), open_turns=open_turns, words=words), turn
    )


def _is_agents(state: Execution, event: v.MessageSent) -> bool:
    account = event.by
    # An event of an earlier version does not say whose token it was.
    if event.agent or any(account == turn.claimed_by for turn in state.turns.values()):
        return True
    return any(account == call.requesters[0] for call in state.calls.values())


def _claimed(state: Execution, event: v.TurnClaimed, at_ms: int) -> Execution:
    turn = replace(
        state.turns[event.turn_id],
        status="claimed",
        attempt_id=event.attempt_id,
        claimed_by=event.by,
        lease_until_ms=event.lease_until_ms,
        waits_for="",
    )
    return with_turn(going_on(state), turn)


def _renewed(state: Execution, event: v.TurnRenewed, at_ms: int) -> Execution:
    # No sign of progress: a function that ends its process late renews, too.
    return with_turn(state, replace(state.turns[event.turn_id], lease_until_ms=event.lease_until_ms))


def _posted(state: Execution, event: v.ReplyPosted, at_ms: int) -> Execution:
    digest = text_digest(event.text, event.details)
    turn = replace(
        state.turns[event.turn_id],
        replies=event.number,
        reply_digest=digest,
        lease_until_ms=event.lease_until_ms,
        lapses=0,
    )
    return with_turn(going_on(state), turn)


def _yielded(state: Execution, event: v.TurnYielded, at_ms: int) -> Execution:
    turn = state.turns[event.turn_id]
    lapses = turn.lapses + 1 if event.cause == "lease" else 0
    status = "suspended" if event.cause == "waiting" else "waiting"
    return with_turn(state, replace(turn, status=status, waits_for=event.hold_id, lapses=lapses))


def _resumed(state: Execution, event: v.TurnResumed, at_ms: int) -> Execution:
    return with_turn(state, replace(state.turns[event.turn_id], status="waiting", waits_for=""))


def _ended(state: Execution, event: v.TurnEnded, at_ms: int) -> Execution:
    turn = Turn(
        turn_id=event.turn_id,
        message_digest=state.turns[event.turn_id].message_digest,
        status=event.outcome,
    )
    rest = tuple(turn_id for turn_id in state.open_turns if turn_id != event.turn_id)
    return with_turn(replace(going_on(state), open_turns=rest), turn)


HANDLERS: Handlers = {
    k.SendMessage: send,
    k.ClaimTurn: claim,
    k.RenewTurn: renew,
    k.PostReply: post,
    k.YieldTurn: give_back,
    k.EndTurn: end,
}
FOLDS: Folds = {
    v.MessageSent: _sent,
    v.TurnClaimed: _claimed,
    v.TurnRenewed: _renewed,
    v.ReplyPosted: _posted,
    v.TurnYielded: _yielded,
    v.TurnResumed: _resumed,
    v.TurnEnded: _ended,
}
