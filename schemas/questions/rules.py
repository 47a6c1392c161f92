"""The rules for a question, whatever the state of its execution: why one cannot be asked.

The gateway asks them before it opens an execution for a question, and the decider before it asks the person.
"""

from unicodedata import normalize

from schemas import commands as k
from schemas.blank import is_blank
from schemas.canonical import MalformedJson, canonical, parse_new, parse_strict
from schemas.limits import ARGUMENTS_MAX_BYTES, DEADLINE_MAX_S, ITEMS_MAX
from schemas.questions.answers import Problem, answer_schema, default_problem, is_empty
from schemas.questions.variables import variables_problem
from schemas.refusals import Refusal

DEFAULT_TIMEOUT_MS = 300_000
TIMEOUT_MAX_MS = DEADLINE_MAX_S * 1000
# How the answers that every permission has are written, at a terminal as well.
GIVEN_OR_NOT = frozenset({"true", "false", "yes", "no"})
# The fields that only one kind has.
ONLY_OF = {
    "decision": ("allow_custom", "multiple"),
    "permission": ("tool", "action", "risk", "remember"),
}


def question_problem(command: k.RequestHumanInput) -> Problem | None:
    """The reason why a question is refused in any state, or None."""
    if (malformed := _not_json(command)) is not None:
        return Refusal.MALFORMED, malformed
    if max(len(parse_strict(text)) for text in (command.options, command.fields)) > ITEMS_MAX:
        return Refusal.INVALID, f"there are at most {ITEMS_MAX} options, and at most {ITEMS_MAX} fields"
    if (large := _too_large_together(command)) is not None:
        return Refusal.TOO_LARGE, large
    if (wrong := _vague_option(command) or _foreign_field(command)) is not None:
        return Refusal.INVALID, wrong
    if command.kind == "env_var" and (wrong := variables_problem(command)) is not None:
        return Refusal.INVALID, wrong
    if (unanswerable := _default_problem(command)) is not None:
        return unanswerable
    untimely = _untimely(command)
    return None if untimely is None else (Refusal.INVALID, untimely)


def timeout_ms(command: k.RequestHumanInput) -> int:
    """How long a question waits for its answer."""
    return DEFAULT_TIMEOUT_MS if command.timeout_ms is None else command.timeout_ms


def _default_problem(command: k.RequestHumanInput) -> Problem | None:
    if command.default is None:
        return None
    return default_problem(command.kind, command.options, answer_schema(command), command.default)


def _untimely(command: k.RequestHumanInput) -> str | None:
    if command.timeout_ms is not None and not 0 < command.timeout_ms <= TIMEOUT_MAX_MS:
        return f"timeout_seconds must be above 0 and at most {TIMEOUT_MAX_MS // 1000}"
    ends_ms, remind_ms = timeout_ms(command), command.remind_after_ms
    if remind_ms is not None and not 0 < remind_ms < ends_ms:
        return f"remind_after_seconds must be above 0, and before the question's time is over ({ends_ms / 1000:g} s)"
    return None


def _too_large_together(command: k.RequestHumanInput) -> str | None:
    """The reason why options and fields are too large for the events that repeat them, or None."""
    size = len(command.options.encode()) + len(command.fields.encode())
    if size <= ARGUMENTS_MAX_BYTES:
        return None
    return (
        f"options and fields: {size:,} bytes of JSON are over their limit together, {ARGUMENTS_MAX_BYTES:,}"
    )


def _foreign_field(command: k.RequestHumanInput) -> str | None:
    """The reason why a field does not belong to a request of this kind, or None."""
    for kind, names in ONLY_OF.items():
        for name in names:
            if kind != command.kind and getattr(command, name):
                return f"{name} is only for a {kind}"
    if (command.allow_custom or command.multiple) and not parse_strict(command.options):
        return "allow_custom and multiple are about options: give some"
    return None


def _vague_option(command: k.RequestHumanInput) -> str | None:
    """The reason why options cannot be told apart by their answers: the option itself, or the `id` of an object."""
    named = [
        option.get("id") if isinstance(option, dict) else option for option in parse_strict(command.options)
    ]
    if any(isinstance(name, list | dict) or is_empty(name) for name in named):
        return "options: each is a text that is not blank, a number, true, false, or an object with an id that is one"
    # A person who types `1` cannot tell the number from the text.
    typed = {name if isinstance(name, str) else canonical(name) for name in named}
    if len(typed) != len(named):
        return 'options: two have the same id, or ids that are written the same, such as 1 and "1"'
    if len({_as_seen(name) for name in typed}) != len(typed):
        return (
            "options: the ids of two look the same, such as one with and one without an invisible character"
        )
    if command.kind == "permission" and GIVEN_OR_NOT & {_as_read(name) for name in typed | _labels(command)}:
        return "options: a permission has the answers true and false (yes and no) already: call none so"
    return None


def _labels(command: k.RequestHumanInput) -> set[str]:
    labels = (option.get("label") for option in parse_strict(command.options) if isinstance(option, dict))
    return {label for label in labels if isinstance(label, str)}


def _as_seen(text: str) -> str:
    """A text as it looks: with one space for several, and without what else is not seen."""
    shown = "".join(char for char in text if char.isspace() or not is_blank(char))
    return normalize("NFC", " ".join(shown.split()))


def _as_read(text: str) -> str:
    """A text as a person reads it: without what is not seen, in one case and one width."""
    return normalize("NFKC", "".join(char for char in text if not is_blank(char))).casefold()


def _not_json(command: k.RequestHumanInput) -> str | None:
    try:
        if not all(isinstance(parse_new(text), list) for text in (command.options, command.fields)):
            return "options and fields must be arrays"
        parse_new("null" if command.default is None else command.default)
    except MalformedJson as error:
        return str(error)
    return None
