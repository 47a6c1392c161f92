"""The content of a decision, checked before its timing: size, form, and whether the hold accepts it.

A held call is approved, edited, rejected or answered. A request is a question, and its kind decides what answers it:

    permission      approve: true · reject: false · respond: true, false, or one of its options
    decision        respond: one of its options (any value if it has none) · reject: null, no choice
    clarification   respond: any value that is not empty · reject: null, no answer
    env_var         respond: an object of the requested variables, each value sealed · reject: null, no answer

The default, which becomes the answer if nobody answers in time, is checked by the same rules when it is requested.
"""

from collections.abc import Sequence

from schemas.canonical import canonical, parse_strict
from schemas.commands import DecideHold, RequestKind
from schemas.display.escape import revealed
from schemas.refusals import Refusal
from services.domain.arguments import arguments_misfit, json_problem, object_problem
from services.domain.context import Context
from services.domain.execution.secrets import answer_problem
from services.domain.state import Call, Hold

Problem = tuple[Refusal, str]
OPTIONS_NAMED_MAX = 20
OPTIONS_MAX_CHARS = 500


def content_problem(hold: Hold, call: Call | None, command: DecideHold, ctx: Context) -> Problem | None:
    """The first thing wrong with a decision's content, in the refusals' order of precedence."""
    return (
        _malformed(command)
        or _does_not_fit(hold, command)
        or _does_not_answer(hold, command)
        or _arguments_misfit(call, command, ctx)
        or _unknown_option(hold, command)
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
    if hold.kind == "env_var" and command.decision == "respond" and not hold.call_id:
        wrong = answer_problem(hold.input_schema, command.value)
        return None if wrong is None else (Refusal.INVALID_ARGUMENTS, f"$: {wrong}")
    if not hold.call_id and command.decision == "respond" and _is_empty(hold.kind, command.value):
        return Refusal.INVALID, "an answer must say something: answer, or reject"
    if hold.call_id or hold.kind == "permission" or command.decision != "approve":
        return None
    wanted = "one of its options" if _options(hold.options) else "a value"
    return Refusal.INVALID, f"a {hold.kind} cannot be approved: answer with {wanted} (respond), or reject"


def default_problem(kind: RequestKind, options: str, default: str | None) -> Problem | None:
    """The reason why a default is not a possible answer, or None.

    Null means the same as a rejection. A timeout never grants a permission: its default can only refuse, because an
    option of it may mean anything.

    Args:
        kind: the request's kind.
        options: JSON array of the choices.
        default: JSON of the default answer; None if there is none.
    """
    if default is None or parse_strict(default) is None:
        return None
    if kind == "permission" and parse_strict(default) is not False:
        return Refusal.INVALID, "default: only a person can give a permission: send false, or leave it out"
    if _is_empty(kind, default):
        return Refusal.INVALID, "default: an answer must say something: name one, or leave it out"
    unknown = _unknown_answer(kind, options, default)
    return None if unknown is None else (Refusal.UNKNOWN_OPTION, f"default: {unknown}")


def _is_empty(kind: RequestKind, value: str | None) -> bool:
    return kind != "permission" and _says_nothing(value)


def _says_nothing(value: str | None) -> bool:
    """True if an answer is null, or a text of only white space."""
    said = parse_strict(value or "null")
    return said is None or (isinstance(said, str) and not said.strip())


def _arguments_misfit(call: Call | None, command: DecideHold, ctx: Context) -> Problem | None:
    if command.decision != "edit" or call is None or command.edited_arguments is None:
        return None
    misfit = arguments_misfit(call.tool, command.edited_arguments, ctx)
    return None if misfit is None else (Refusal.INVALID_ARGUMENTS, misfit)


def _unknown_option(hold: Hold, command: DecideHold) -> Problem | None:
    if hold.call_id or command.decision != "respond":
        return None
    unknown = _unknown_answer(hold.kind, hold.options, command.value or "null")
    return None if unknown is None else (Refusal.UNKNOWN_OPTION, unknown)


def _unknown_answer(kind: RequestKind, options: str, value: str) -> str | None:
    """The reason why a value is not an answer to a question with these options, or None."""
    known = _options(options)
    answer = canonical(parse_strict(value))
    if kind == "permission" and answer not in {"true", "false", *known}:
        values = _named(("true", "false", *_named_options(options)))
        return f"a permission is either given or not: approve, reject, or answer with one of: {values}"
    if kind == "decision" and known and answer not in known:
        return f"answer with one of the options: {_named(_named_options(options))}"
    return None


def _named_options(options: str) -> tuple[str, ...]:
    """The options in the form in which an answer names them, in their order."""
    return tuple(canonical(o.get("id") if isinstance(o, dict) else o) for o in parse_strict(options))


def _named(options: Sequence[str]) -> str:
    """The options in a sentence, as far as they fit; an agent wrote them, so hidden characters are escaped."""
    shown: list[str] = []
    for option in options:
        if len(shown) == OPTIONS_NAMED_MAX or sum(map(len, shown)) + len(option) > OPTIONS_MAX_CHARS:
            return f"{', '.join([*shown, f'and {len(options) - len(shown)} more'])}"
        shown.append(revealed(option))
    return ", ".join(shown)


def _options(options: str) -> frozenset[str]:
    """The possible answers to a request, as canonical JSON; as text, 1 and true differ."""
    return frozenset(_named_options(options))
