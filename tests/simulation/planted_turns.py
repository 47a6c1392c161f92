"""Bugs of conversations to plant, as in `planted`."""

from __future__ import annotations

from typing import Any

import pytest

from schemas.conversation_commands import YieldTurn
from schemas.refusals import Refusal
from services.domain.authority import authority
from services.domain.execution import execution, folding, steering, turns

Patch = pytest.MonkeyPatch


def leave_a_turn_suspended(patch: Patch) -> None:
    """Forget the turn that waits for a hold when that hold ends."""
    patch.setattr(turns, "with_resumed", lambda state, events: events)


def wait_for_an_answer_that_has_come(patch: Patch) -> None:
    """Suspend a turn though its hold ended before it was given back."""

    def careless(state: Any, command: Any, ctx: Any) -> Any:
        return turns.give_back(state, command, ctx)[:1]

    handlers: dict[Any, Any] = {**execution._HANDLERS, YieldTurn: careless}
    patch.setattr(execution, "_HANDLERS", handlers)


def take_a_resumed_turn_for_a_suspended_one(patch: Patch) -> None:
    problem = turns._claiming_problem

    def careless(state: Any, turn: Any, command: Any, ctx: Any) -> Any:
        if turn.status == "waiting" and turn.attempt_id and not turn.lapses:
            return Refusal.NOT_RELEASED, "the turn waits for a person"
        return problem(state, turn, command, ctx)

    patch.setattr(turns, "_claiming_problem", careless)


def let_two_attempts_at_a_turn(patch: Patch) -> None:
    _claim_in_spite_of(patch, "another attempt works")


def take_turns_on_in_any_order(patch: Patch) -> None:
    _claim_in_spite_of(patch, "an earlier turn")


def believe_who_names_the_attempt(patch: Patch) -> None:
    """Let another account speak for an attempt whose id it has read off."""
    own = turns._own_turn

    def careless(state: Any, turn_id: str, attempt_id: str, ctx: Any) -> Any:
        turn = state.turns.get(turn_id)
        is_named = turn is not None and turn.status == "claimed" and turn.attempt_id == attempt_id
        return turn if is_named else own(state, turn_id, attempt_id, ctx)

    patch.setattr(turns, "_own_turn", careless)


def post_a_reply_under_any_number(patch: Patch) -> None:
    patch.setattr(turns, "_reply_problem", lambda turn, command: None)


def never_end_a_lease(patch: Patch) -> None:
    patch.setattr(folding, "turn_due", lambda turn: None)


def leave_turns_open_at_the_end(patch: Patch) -> None:
    patch.setattr(steering, "ended_turns", lambda state, reason: [])


def let_senders_grant_what_they_asked_for(patch: Patch) -> None:
    """Forget who wrote to the agent when it is told whose request a call is."""
    patch.setattr(authority, "senders_before", lambda state, asked: ())


def _claim_in_spite_of(patch: Patch, reason: str) -> None:
    problem = turns._claiming_problem

    def careless(state: Any, turn: Any, command: Any, ctx: Any) -> Any:
        found = problem(state, turn, command, ctx)
        return None if found is not None and found[1].startswith(reason) else found

    patch.setattr(turns, "_claiming_problem", careless)
