"""The variables of an env_var request: which are requested, and whether an answer has them."""

import re
from typing import Any

from schemas import commands as k
from schemas.canonical import canonical, parse_strict
from schemas.display.escape import revealed
from schemas.linear_patterns import PatternRefused, linear_pattern
from schemas.sensitive import MARK, PATTERN_WORK_MAX, is_placeholder

# In RE2's instructions, of which it needs some dozens for each \w or `.` of a repetition: values of 3,000 characters
# together can be matched with the largest.
PATTERN_MAX_SIZE = PATTERN_WORK_MAX // 3_000
# POSIX names of environment variables.
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_TYPES: dict[str, type] = {
    "name": str,
    "description": str,
    "required": bool,
    "secret": bool,
    "pattern": str,
}


def variables_problem(command: k.RequestHumanInput) -> str | None:
    """The reason why an env_var request is invalid, or None."""
    if command.default is not None or parse_strict(command.options):
        return "an env_var request takes neither options nor a default: they would be written down"
    fields = parse_strict(command.fields)
    if not fields:
        return "the fields of an env_var request name one or more environment variables"
    if (wrong := next(filter(None, map(_field_problem, fields)), None)) is not None:
        return wrong
    names = [_described(field)["name"] for field in fields]
    return "two fields name the same variable" if len(set(names)) != len(names) else None


def variables_schema(fields: str) -> str:
    """The JSON Schema of the answer: every variable is a text and sealed; all but the optional ones are required."""
    described = [_described(field) for field in parse_strict(fields)]
    schema = {
        "type": "object",
        "properties": {field["name"]: _property(field) for field in described},
        "required": [field["name"] for field in described if field.get("required", True)],
        "additionalProperties": False,
        "minProperties": 1,
    }
    return canonical(schema)


def variables_misfit(input_schema: str, value: str | None) -> str | None:
    """The reason why a value is no answer to an env_var request, or None. It is not quoted: it may be unsealed."""
    answer, schema = parse_strict(value or "null"), parse_strict(input_schema)
    if (
        not isinstance(answer, dict)
        or not set(schema["required"]) <= answer.keys() <= schema["properties"].keys()
    ):
        return "answer with an object of the requested variables, with at least those that are required"
    if not answer:
        return "answer with one or more of the variables, or reject"
    if not all(map(is_placeholder, answer.values())):
        return "the values of variables must be sealed: answer through the gateway"
    return None


def _described(field: Any) -> dict[str, Any]:
    return {"name": field} if isinstance(field, str) else dict(field)


def _field_problem(field: Any) -> str | None:
    if not isinstance(field, str | dict):
        return "a field of an env_var request is the name of a variable, or an object with a name"
    described = _described(field)
    if not isinstance(described.get("name"), str) or not _NAME.fullmatch(described["name"]):
        named = revealed(str(described.get("name")))[:40]
        return f"a variable's name has letters of A-Z and a-z, digits and _, and begins with no digit: not {named!r}"
    for key, value in described.items():
        if key not in _TYPES:
            return f"a variable has a name, description, required, secret and pattern, but no {key[:40]!r}"
        if type(value) is not _TYPES[key]:
            return f"the {key} of a variable must be {'true or false' if _TYPES[key] is bool else 'a text'}"
    return _pattern_problem(described.get("pattern"))


def _pattern_problem(pattern: str | None) -> str | None:
    if pattern is None:
        return None
    try:
        size = linear_pattern(pattern).programsize
    except PatternRefused as error:
        return f"the pattern of a variable cannot be used: {error}"
    if size > PATTERN_MAX_SIZE:
        return (
            "the pattern of a variable cannot be used: it is too large; shorten its repetitions and classes"
        )
    return None


def _property(field: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "string", MARK: True}
    for key in ("description", "pattern"):
        if field.get(key):
            found[key] = field[key]
    if field.get("secret") is False:
        # Sealed all the same: it says only that a person may see what is typed.
        found["secret"] = False
    return found
