"""Answers: the JSON Schema that the answer to a request must fit, and the reason why one does not.

A request's hold has the schema as its `input_schema`, so that a form can be drawn from it:

    permission      true, false or one of the options; with `remember` also {"granted": …, "remember": …}
    decision        one of the options (any value if there are none); with `allow_custom` also a text;
                    with `multiple` a list of these
    clarification   any value that is not empty; options are suggestions
    env_var         an object of the requested variables, each value sealed
"""

from collections.abc import Mapping, Sequence
from typing import Any

from schemas import commands as k
from schemas.blank import is_blank
from schemas.canonical import canonical, parse_strict
from schemas.commands import RequestKind
from schemas.display.escape import revealed
from schemas.questions.variables import variables_schema
from schemas.refusals import Refusal

Problem = tuple[Refusal, str]
Schema = Mapping[str, Any]
OPTIONS_NAMED_MAX = 20
OPTIONS_MAX_CHARS = 500
# A form needs no more to be drawn: blank texts of other characters than white space are refused by `is_empty`.
CUSTOM: Schema = {"type": "string", "pattern": r"\S"}
# Whatever says something: not null, and no blank text.
ANYTHING: Schema = {"anyOf": [CUSTOM, {"type": ["array", "boolean", "number", "object"]}]}
REMEMBERED: Schema = {
    "type": "object",
    "properties": {"granted": {"type": "boolean"}, "remember": {"type": "boolean"}},
    "required": ["granted", "remember"],
    "additionalProperties": False,
}


def answer_schema(command: k.RequestHumanInput) -> str:
    """The JSON Schema of a request's answer, as canonical JSON."""
    if command.kind == "env_var":
        return variables_schema(command.fields)
    named = [parse_strict(name) for name in named_options(command.options)]
    if command.kind == "permission":
        plain: Schema = {"enum": [True, False, *named]}
        return canonical({"anyOf": [plain, REMEMBERED]} if command.remember else plain)
    if command.kind == "clarification" or not named:
        return canonical(ANYTHING)
    one: Schema = {"enum": named}
    if command.allow_custom:
        one = {"anyOf": [one, CUSTOM]}
    many = {"type": "array", "items": one, "minItems": 1, "uniqueItems": True}
    return canonical(many if command.multiple else one)


def answer_problem(kind: RequestKind, options: str, input_schema: str, value: str) -> Problem | None:
    """The reason why a value (JSON) does not answer a request, or None.

    Not for `env_var`, whose values are checked where they are sealed.

    Args:
        kind: the request's kind.
        options: JSON array of the choices.
        input_schema: what `answer_schema` made; `{}` from an earlier version.
        value: JSON of the answer.
    """
    schema, answer = parse_strict(input_schema), parse_strict(value)
    if kind != "permission" and is_empty(answer):
        return Refusal.INVALID, "an answer must say something: answer, or reject"
    if kind == "permission":
        return _permission_problem(options, "anyOf" in schema, answer)
    if kind != "decision" or not parse_strict(options):
        return None
    if schema.get("type") == "array":
        return _several_problem(options, schema["items"], answer)
    if isinstance(answer, list):
        return Refusal.INVALID, "one answer is requested, not a list: give one of the options"
    return _one_problem(options, schema, answer)


def grants(kind: RequestKind, value: str) -> bool:
    """Returns True if an answer (JSON) gives a permission: any but false, by itself or in `granted`.

    Only for an answer that `answer_problem` permits.
    """
    if kind != "permission":
        return False
    answer = parse_strict(value)
    return (answer.get("granted") if isinstance(answer, dict) else answer) is not False


def default_problem(
    kind: RequestKind, options: str, input_schema: str, default: str | None
) -> Problem | None:
    """The reason why a default is not a possible answer, or None.

    Null means the same as a rejection. A timeout never grants a permission: its default can only refuse, because an
    option of it may mean anything.

    Args:
        kind: the request's kind.
        options: JSON array of the choices.
        input_schema: the schema of an answer, as `answer_schema` makes it.
        default: JSON of the default answer; None if there is none.
    """
    if default is None or parse_strict(default) is None:
        return None
    if kind == "permission" and parse_strict(default) is not False:
        return Refusal.INVALID, "default: only a person can give a permission: send false, or leave it out"
    problem = answer_problem(kind, options, input_schema, default)
    return None if problem is None else (problem[0], f"default: {problem[1]}")


def is_empty(answer: Any) -> bool:
    """Returns True if an answer is null, or a blank text."""
    return answer is None or (isinstance(answer, str) and is_blank(answer))


def named_options(options: str) -> tuple[str, ...]:
    """The options in the form in which an answer names them, as canonical JSON, in their order."""
    return tuple(canonical(o.get("id") if isinstance(o, dict) else o) for o in parse_strict(options))


def _permission_problem(options: str, may_be_remembered: bool, answer: Any) -> Problem | None:
    if may_be_remembered and isinstance(answer, dict):
        if answer.keys() == {"granted", "remember"} and all(
            isinstance(part, bool) for part in answer.values()
        ):
            return None
        return Refusal.INVALID, "an object answers with exactly granted and remember, each true or false"
    if canonical(answer) in {"true", "false", *named_options(options)}:
        return None
    remembered = (canonical({"granted": True, "remember": True}),) if may_be_remembered else ()
    values = _listed(("true", "false", *named_options(options), *remembered))
    return (
        Refusal.UNKNOWN_OPTION,
        f"a permission is either given or not: approve, reject, or answer with one of: {values}",
    )


def _one_problem(options: str, schema: Schema, answer: Any) -> Problem | None:
    if canonical(answer) in named_options(options):
        return None
    allows_text = "anyOf" in schema
    if allows_text and isinstance(answer, str) and not is_empty(answer):
        return None
    or_text = ", or a text of your own" if allows_text else ""
    listed = _listed(named_options(options))
    return Refusal.UNKNOWN_OPTION, f"answer with one of the options{or_text}: {listed}"


def _several_problem(options: str, schema: Schema, answer: Any) -> Problem | None:
    if not isinstance(answer, list) or not answer:
        return Refusal.INVALID, "answer with a list of one or more options"
    if len({canonical(one) for one in answer}) != len(answer):
        return Refusal.INVALID, "the answer has the same option twice"
    return next(filter(None, (_one_problem(options, schema, one) for one in answer)), None)


def _listed(options: Sequence[str]) -> str:
    """The options in a sentence, as far as they fit; an agent wrote them, so hidden characters are escaped."""
    shown: list[str] = []
    for option in options:
        if len(shown) == OPTIONS_NAMED_MAX or sum(map(len, shown)) + len(option) > OPTIONS_MAX_CHARS:
            return f"{', '.join([*shown, f'and {len(options) - len(shown)} more'])}"
        shown.append(revealed(option))
    return ", ".join(shown)
