"""The checker's own model of a conversation: turns in their order, one attempt at each at a time, each ended once."""

from __future__ import annotations

from collections.abc import Callable

from ops.checker.calls import RunSeen
from ops.checker.facts import Fact
from ops.checker.turn_seen import TurnSeen

# Event → the states of its turn in which it may be recorded. "" is a turn that does not exist yet.
PERMITTED_TURNS: dict[str, frozenset[str]] = {
    "MessageSent": frozenset({""}),
    "TurnClaimed": frozenset({"waiting"}),
    "TurnRenewed": frozenset({"claimed"}),
    "ReplyPosted": frozenset({"claimed"}),
    "TurnYielded": frozenset({"claimed"}),
    "TurnResumed": frozenset({"suspended"}),
    "TurnEnded": frozenset({"waiting", "claimed", "suspended"}),
}
TIMER = "placet:timer"


def turn_event(run: RunSeen, fact: Fact) -> None:
    """Take an event about a turn."""
    name = fact.body.turn_id
    turn = run.turns.setdefault(name, TurnSeen())
    if turn.state not in PERMITTED_TURNS[fact.type]:
        run.say("I4", fact, f"{fact.type} of a turn that is {turn.state!r}", name)
    _STEPS[fact.type](run, turn, fact)


def check_resumption(run: RunSeen, fact: Fact) -> None:
    """Look whether the command that ended the hold for which a turn waits has resumed that turn.

    Args:
        run: the execution, before the fact.
        fact: the next one about it.
    """
    if run.facts.resumed_by in ("", fact.command_id):
        return
    run.say("I4", fact, "a hold ended without resuming the turn that waits for it", run.facts.waits_for)
    run.facts.waits_for = run.facts.resumed_by = ""


def hold_ended(run: RunSeen, fact: Fact) -> None:
    """Take the end of a hold, for the turn that waits for it."""
    if fact.body.hold_id == run.facts.waits_for:
        run.facts.resumed_by = fact.command_id


def _sent(run: RunSeen, turn: TurnSeen, fact: Fact) -> None:
    turn.state = "waiting"
    run.facts.open_turns.append(fact.body.turn_id)
    _has_a_say(run, fact.body.by)


def user_joined(run: RunSeen, fact: Fact) -> None:
    """Take a user for whom a token was used."""
    _has_a_say(run, fact.body.user)


def _has_a_say(run: RunSeen, subject: str) -> None:
    if subject not in run.facts.senders:
        run.facts.senders.append(subject)


def _claimed(run: RunSeen, turn: TurnSeen, fact: Fact) -> None:
    if run.facts.open_turns[:1] != [fact.body.turn_id]:
        run.say("I4", fact, "a turn was taken on before an earlier one had ended", *run.facts.open_turns[:1])
    if run.facts.state == "paused":
        run.say("I5", fact, "a turn was taken on in an execution that is paused")
    if fact.body.attempt_id == turn.attempt_id:
        run.say("I3", fact, "an attempt took a turn on twice", fact.body.attempt_id)
    turn.state, turn.attempt_id, turn.by = "claimed", fact.body.attempt_id, fact.body.by
    turn.lease_until_ms = fact.body.lease_until_ms


def _renewed(run: RunSeen, turn: TurnSeen, fact: Fact) -> None:
    _check_attempt(run, turn, fact)
    turn.lease_until_ms = fact.body.lease_until_ms


def _posted(run: RunSeen, turn: TurnSeen, fact: Fact) -> None:
    _check_attempt(run, turn, fact)
    if fact.body.number != turn.replies + 1:
        run.say("I6", fact, "a reply's number does not follow the last one", turn.replies, fact.body.number)
    turn.replies, turn.lease_until_ms = fact.body.number, fact.body.lease_until_ms


def _yielded(run: RunSeen, turn: TurnSeen, fact: Fact) -> None:
    lapsed = fact.body.cause == "lease"
    if lapsed and fact.at_ms < turn.lease_until_ms:
        run.say("I5", fact, "a turn's lease ended early", turn.lease_until_ms, fact.at_ms)
    turn.state = "suspended" if fact.body.cause == "waiting" else "waiting"
    turn.hold_id = run.facts.waits_for = fact.body.hold_id
    hold = run.holds.get(turn.hold_id)
    if hold is not None and hold.state != "open":
        run.facts.resumed_by = fact.command_id


def _resumed(run: RunSeen, turn: TurnSeen, fact: Fact) -> None:
    hold = run.holds.get(turn.hold_id)
    if hold is None or hold.state == "open" or fact.body.hold_id != turn.hold_id:
        run.say("I4", fact, "a turn resumed before the hold that it waits for had ended", turn.hold_id)
    turn.state, turn.hold_id = "waiting", ""
    run.facts.waits_for = run.facts.resumed_by = ""


def _ended(run: RunSeen, turn: TurnSeen, fact: Fact) -> None:
    given_up = fact.body.outcome == "failed" and fact.body.by == TIMER
    if fact.body.outcome != "cancelled" and not given_up:
        if turn.state != "claimed":
            run.say("I3", fact, f"an attempt ended a turn that is {turn.state}", fact.body.turn_id)
        _check_attempt(run, turn, fact)
    turn.state = fact.body.outcome
    run.facts.waits_for = run.facts.resumed_by = ""
    if fact.body.turn_id in run.facts.open_turns:
        run.facts.open_turns.remove(fact.body.turn_id)


def _check_attempt(run: RunSeen, turn: TurnSeen, fact: Fact) -> None:
    named = getattr(fact.body, "attempt_id", turn.attempt_id)
    if named != turn.attempt_id or fact.body.by != turn.by:
        run.say("I3", fact, "another attempt than the one that works on the turn", named, fact.body.by)
    if fact.at_ms >= turn.lease_until_ms:
        run.say("I5", fact, "an attempt acted after its lease had ended", turn.lease_until_ms, fact.at_ms)


_STEPS: dict[str, Callable[[RunSeen, TurnSeen, Fact], None]] = {
    "MessageSent": _sent,
    "TurnClaimed": _claimed,
    "TurnRenewed": _renewed,
    "ReplyPosted": _posted,
    "TurnYielded": _yielded,
    "TurnResumed": _resumed,
    "TurnEnded": _ended,
}
