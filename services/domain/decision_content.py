"""What a decision says, before it matters whether it may still be made: size, form, and what the hold can take."""

from schemas.canonical import parse_strict
from schemas.commands import DecideHold
from schemas.refusals import Refusal
from services.domain.context import Context
from services.domain.proposals import arguments_problem, json_problem
from services.domain.state import Call, Hold

Problem = tuple[Refusal, str]


def content_problem(hold: Hold, call: Call | None, command: DecideHold, ctx: Context) -> Problem | None:
    """The first thing wrong with a decision's content, in the refusals' order of precedence."""
    return (
        _malformed(command)
        or _does_not_fit(hold, command)
        or _arguments_misfit(call, command, ctx)
        or _unknown_option(hold, command)
    )


def _malformed(command: DecideHold) -> Problem | None:
    if command.edited_arguments is not None:
        problem = arguments_problem(command.edited_arguments)
        if problem is not None:
            return problem
    malformed = json_problem(command.value or "null")
    return None if malformed is None else (Refusal.MALFORMED, f"value: {malformed}")


def _does_not_fit(hold: Hold, command: DecideHold) -> Problem | None:
    if command.scope != "once":
        return Refusal.INVALID, f"scope {command.scope} is not supported in this version: use once"
    if command.decision == "edit" and (not hold.call_id or command.edited_arguments is None):
        return Refusal.INVALID, "edit needs a held call and edited_arguments"
    if command.decision == "edit" and hold.cause == "outcome_unknown":
        return Refusal.INVALID, "a call that may have run cannot be edited: approve, reject or respond"
    if command.decision == "respond" and command.value is None:
        return Refusal.INVALID, "respond needs a value"
    return None


def _arguments_misfit(call: Call | None, command: DecideHold, ctx: Context) -> Problem | None:
    if command.decision != "edit" or call is None or command.edited_arguments is None:
        return None
    tool = ctx.tool(call.tool)
    misfit = tool.validate(parse_strict(command.edited_arguments)) if tool else None
    return None if misfit is None else (Refusal.INVALID_ARGUMENTS, misfit)


def _unknown_option(hold: Hold, command: DecideHold) -> Problem | None:
    if hold.call_id or hold.kind != "decision" or command.decision != "respond":
        return None
    options = parse_strict(hold.options)
    known = [option.get("id") if isinstance(option, dict) else option for option in options]
    if known and parse_strict(command.value or "null") not in known:
        return Refusal.UNKNOWN_OPTION, "answer with one of the options"
    return None
