"""I12: once faults have stopped and time has passed, everything has ended or waits for somebody."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ops.checker.calls import CallSeen, RunSeen
from ops.checker.hold_seen import HoldSeen
from ops.checker.partition import CLOSED
from ops.checker.turn_seen import TurnSeen
from ops.checker.violations import Violation

# How much later than its moment something may be ended: nudges are repeated every few seconds.
GRACE_MS = 30_000


def check_rest(runs: Iterable[tuple[str, RunSeen]], now_ms: int, report: Callable[[Violation], None]) -> None:
    """Look for what is neither ended nor waiting.

    Args:
        runs: the executions, with their keys.
        now_ms: the log's time when everything should have come to rest.
        report: takes the violations.
    """
    for key, run in runs:
        for call_id, call in run.calls.items():
            if problem := _unsettled(run, call_id, call, now_ms):
                report(Violation("I12", f"{key}/{call_id}", problem, (call.state, f"now {now_ms}")))
        for turn_id, turn in run.turns.items():
            if problem := _unanswered(run, turn, now_ms):
                report(Violation("I12", f"{key}/{turn_id}", problem, (turn.state, f"now {now_ms}")))
        for hold_id, hold in run.holds.items():
            if problem := _leaked(run, hold, now_ms):
                report(
                    Violation("I12", f"{key}/{hold_id}", problem, (str(hold.deadline_at_ms), f"now {now_ms}"))
                )


def _unsettled(run: RunSeen, call_id: str, call: CallSeen, now_ms: int) -> str:
    due_ms = now_ms - GRACE_MS
    if call.planted is not None and call.planted.over and not call.planted.told:
        return "the hold of a planted call ended, and what it was is not told"
    if call.state == "released" and call.expires_at_ms <= due_ms:
        return "a release outlived its time"
    if call.state == "consumed" and call.run_deadline_at_ms <= due_ms:
        return "a run outlived its deadline"
    if call.state == "proposed" and run.facts.state != "paused":
        return "a call was never judged"
    if call.state in ("held", "outcome_unknown") and not _waits(run, call_id):
        return "a call waits, but nobody is asked"
    if call.state in ("proposed", "held", "released") and run.facts.state in CLOSED and not call.attempts:
        return "a call that never ran outlived its execution"
    return ""


def _waits(run: RunSeen, call_id: str) -> bool:
    return any(hold.state == "open" and hold.opened.call_id == call_id for _, hold in run.holds.items())


def _leaked(run: RunSeen, hold: HoldSeen, now_ms: int) -> str:
    if hold.state != "open":
        return ""
    if hold.deadline_at_ms is not None and hold.deadline_at_ms <= now_ms - GRACE_MS:
        return "a hold outlived its deadline"
    call = run.calls.get(hold.opened.call_id)
    if call is not None and call.state not in ("held", "outcome_unknown"):
        return f"a hold is open for a call that is {call.state}"
    if run.facts.state in CLOSED and hold.opened.cause != "outcome_unknown":
        return f"a hold is open in an execution that is {run.facts.state}"
    return ""


def _unanswered(run: RunSeen, turn: TurnSeen, now_ms: int) -> str:
    if turn.state not in ("waiting", "claimed", "suspended"):
        return ""
    if run.facts.state in CLOSED:
        return f"a turn is open in an execution that is {run.facts.state}"
    if turn.state == "claimed" and turn.lease_until_ms <= now_ms - GRACE_MS:
        return "an attempt at a turn outlived its lease"
    hold = run.holds.get(turn.hold_id)
    if turn.state == "suspended" and (hold is None or hold.state != "open"):
        return "a turn waits for a hold that is not open"
    return ""
