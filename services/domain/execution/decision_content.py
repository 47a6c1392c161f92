"""The content of a decision, checked before its timing: size, form, and whether the hold accepts it.

A held call is approved, edited, rejected or answered. A request is a question, and its kind decides what answers it:

    permission      approve: true · reject: false · respond: see `schemas.questions.answers`
    decision        respond · reject: null, no choice
    clarification   respond · reject: null, no answer
    env_var         respond: an object of the requested variables, each value sealed · reject: null, no answer
"""

from schemas.canonical import parse_strict
from schemas.commands import DecideHold
from schemas.questions.answers import answer_problem
from schemas.questions.variables import variables_misfit
from schemas.refusals import Refusal
from services.domain.arguments import arguments_misfit, json_problem, object_problem
from services.domain.context import Context
from services.domain.state import Call, Hold

Problem = tuple[Refusal, str]


def content_problem(hold: Hold, call: Call | None, command: DecideHold, ctx: Context) -> Problem | None:
    """The first thing wrong with a decision's content, in the refusals' order of precedence."""
    return (
        _malformed(command)
        or _does_not_fit(hold, command)
        or _does_not_answer(hold, command)
        or _arguments_misfit(call, command, ctx)
    )


def _malformed(command: DecideHold) -> Problem | None:
    if command.edited_arguments is not None:
        problem = object_problem("edited_arguments", command.edited_arguments)
        if problem is not None:
            return problem
    malformed = json_problem("null" if command.value is None else command.value)
    return None if malformed is None else (Refusal.MALFORMED, f"value: {malformed}")


def _does_not_fit(hold: Hold, command: DecideHold) -> Problem | None:
    if command.decision == "edit" and not hold.call_id:
        return Refusal.INVALID, "a question has no arguments to edit: answer it (respond), or reject"
    if command.decision == "edit" and command.edited_arguments is None:
        return Refusal.INVALID, "edit needs edited_arguments"
    if command.decision == "edit" and hold.cause == "outcome_unknown":
        return Refusal.INVALID, "a call that may have run cannot be edited: approve, reject or respond"
    if command.decision == "respond" and command.value is None:
        return Refusal.INVALID, "respond needs a value"
    if command.decision != "edit" and command.edited_arguments is not None:
        return (
            Refusal.INVALID,
            f"{command.decision} takes no edited_arguments: decide edit, or leave them out",
        )
    if command.decision != "respond" and (command.value or "null") != "null":
        return Refusal.INVALID, f"{command.decision} takes no value: decide respond, or leave it out"
    return None


def _does_not_answer(hold: Hold, command: DecideHold) -> Problem | None:
    if hold.call_id or command.decision == "reject":
        return None
    if command.decision == "respond":
        return _answer_problem(hold, command.value or "null")
    if hold.kind == "permission":
        return None
    wanted = "one of its options" if parse_strict(hold.options) else "a value"
    return Refusal.INVALID, f"a {hold.kind} cannot be approved: answer with {wanted} (respond), or reject"


def _answer_problem(hold: Hold, value: str) -> Problem | None:
    if hold.kind == "env_var":
        wrong = variables_misfit(hold.input_schema, value)
        return None if wrong is None else (Refusal.INVALID_ARGUMENTS, f"$: {wrong}")
    return answer_problem(hold.kind, hold.options, hold.input_schema, value)


def _arguments_misfit(call: Call | None, command: DecideHold, ctx: Context) -> Problem | None:
    if command.decision != "edit" or call is None or command.edited_arguments is None:
        return None
    misfit = arguments_misfit(call.tool, command.edited_arguments, ctx)
    return None if misfit is None else (Refusal.INVALID_ARGUMENTS, misfit)
