"""What an expression reads and how its work grows, from its tokens.

The binding holds the interpreter while it evaluates and cannot be interrupted, so the work is bounded
beforehand: it grows at most with size ** exponent (docs/policy.md, "Bounded evaluation").
"""

from collections.abc import Iterator
from dataclasses import dataclass

from schemas.linear_patterns import PatternRefused, bounded_size
from schemas.plain_words import did_you_mean
from services.domain.policy.cel_memory import MEMORY, argument_of
from services.domain.policy.cel_tokens import MACROS, Token, Unreadable, call_arguments, string_value

VARIABLES = frozenset(
    {
        *("tool", "args", "proposed", "edited", "agent", "user", "workspace"),
        *("execution", "risk", "trust", "now", MEMORY),
    }
)
FIELDS = {
    "tool": frozenset({"name", "version", "known", "annotations"}),
    "execution": frozenset({"id", "tenant", "project", "context", "request"}),
    "risk": frozenset({"score", "level", "parts", "required"}),
}
TYPES = frozenset({"int", "uint", "double", "bool", "string", "bytes", "list", "map", "null_type", "type"})
OWN_FUNCTIONS = {"url_host": (1, 1), "real_path": (1, 1), "sql_kind": (1, 2)}
# A variable and the field of it that is read; None is the whole variable.
Read = tuple[str, str | None]
_WORDS = frozenset({"true", "false", "null", "in"})
_FOREIGN_WORDS = {
    "and": "&&",
    "or": "||",
    "not": "!",
    "is": "==",
    "True": "true",
    "False": "false",
    "None": "null",
    "TRUE": "true",
    "FALSE": "false",
}
_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
_CONSTANT_TIME_CALLS = frozenset({"has", "type", "dyn", "int", "uint", "double"})
_LITERAL_KINDS = frozenset({"string", "number"})


@dataclass(frozen=True, slots=True)
class Shape:
    """What an expression reads, and how its work grows with what it reads."""

    reads: frozenset[Read]
    exponent: int
    literals: int
    concatenations: int


def check_words(tokens: tuple[Token, ...]) -> None:
    """Refuse the words of other languages, with CEL's own: the parser would only say that it stumbled.

    Raises:
        Unreadable: with what to write instead.
    """
    bound = _bound_names(tokens)
    for index, token in enumerate(tokens):
        is_own = token.kind == "name" and token.text not in bound and _text(tokens, index - 1) != "."
        if is_own and (instead := _FOREIGN_WORDS.get(token.text)) is not None:
            raise Unreadable(f"{token.text!r} is no word of conditions; write {instead!r}")


def shape_of(tokens: tuple[Token, ...]) -> Shape:
    """Check every name of an expression, and measure it.

    Raises:
        Unreadable: an unknown name or field, or a call in a form that is not read.
    """
    bound = _bound_names(tokens)
    reads: set[Read] = set()
    for index, token in enumerate(tokens):
        if token.kind != "name" or token.text in _WORDS or _is_member(tokens, index):
            continue
        if _text(tokens, index + 1) == "(":
            _check_call(tokens, index)
        elif token.text in VARIABLES:
            reads.add((token.text, _field(tokens, index)))
        elif token.text not in bound and token.text not in TYPES:
            raise Unreadable(_unknown(token.text))
    exponent = max((_growth(tokens, index) for index in range(len(tokens))), default=0)
    pluses = sum(token.text == "+" for token in tokens)
    literals = sum(token.kind in _LITERAL_KINDS for token in tokens)
    return Shape(frozenset(reads), max(exponent, 1), literals, pluses)


def _unknown(name: str) -> str:
    return f"unknown name {name!r}{did_you_mean(name, VARIABLES)}"


def _text(tokens: tuple[Token, ...], index: int) -> str:
    return tokens[index].text if 0 <= index < len(tokens) else ""


def _is_member(tokens: tuple[Token, ...], index: int) -> bool:
    if _text(tokens, index - 1) != ".":
        return False
    before = tokens[index - 2] if index >= 2 else None
    if before is None or (before.kind == "op" and before.text not in (")", "]", "}")):
        raise Unreadable("a name does not begin with a dot; remove it")
    if tokens[index].text in OWN_FUNCTIONS:
        raise Unreadable(f"write {tokens[index].text}(value), not value.{tokens[index].text}()")
    if tokens[index].text == "matches":
        _check_matches(tokens, index)
    return True


def patterns_of(tokens: tuple[Token, ...]) -> Iterator[str]:
    """The patterns of the calls of matches(), each once a call; of a call in another form, nothing."""
    for index, token in enumerate(tokens):
        if token.text == "matches" and _text(tokens, index + 1) == "(":
            arguments = call_arguments(tokens, index + 1)
            if len(arguments) == 1 and [part.kind for part in arguments[0]] == ["string"]:
                yield string_value(arguments[0][0].text)


def _check_matches(tokens: tuple[Token, ...], index: int) -> None:
    # A pattern taken from the arguments would let the agent choose what matches.
    if _text(tokens, index + 1) == "(":
        arguments = call_arguments(tokens, index + 1)
        if len(arguments) != 1 or [token.kind for token in arguments[0]] != ["string"]:
            raise Unreadable("matches() takes its pattern as one string in quotes")
        try:
            bounded_size(string_value(arguments[0][0].text))
        except PatternRefused as error:
            raise Unreadable(f"the pattern of matches() cannot be used: {error}") from error


def _check_call(tokens: tuple[Token, ...], index: int) -> None:
    name = tokens[index].text
    if name == "matches":
        # As a function it would take any pattern, an agent's too.
        raise Unreadable("write value.matches('pattern'), not matches(value, …)")
    if name not in OWN_FUNCTIONS:
        return
    arguments = call_arguments(tokens, index + 1)
    least, most = OWN_FUNCTIONS[name]
    if not least <= len(arguments) <= most:
        raise Unreadable(f"{name}() takes {least if least == most else f'{least} or {most}'} argument(s)")
    if len(arguments) == 2 and [token.kind for token in arguments[1]] != ["string"]:
        raise Unreadable(f"{name}() takes the dialect as a string in quotes")


def _bound_names(tokens: tuple[Token, ...]) -> set[str]:
    names: set[str] = set()
    for index, token in enumerate(tokens):
        if token.text in MACROS and _text(tokens, index + 1) == "(" and _text(tokens, index - 1) == ".":
            first = call_arguments(tokens, index + 1)[:1]
            names.update(argument[0].text for argument in first if len(argument) == 1)
    return names


def _field(tokens: tuple[Token, ...], index: int) -> str | None:
    name = tokens[index].text
    if name == MEMORY:
        return argument_of(tokens, index)
    known = FIELDS.get(name)
    if _text(tokens, index + 1) == "." and _text(tokens, index + 3) != "(":
        field = _text(tokens, index + 2)
        if known is not None and field not in known:
            raise Unreadable(f"{name} has no field {field!r}{did_you_mean(field, known)}")
        return field
    if known is not None and _text(tokens, index + 1) != "[":
        raise Unreadable(
            f"{name!r} is a map; write one of {', '.join(f'{name}.{field}' for field in sorted(known))}"
        )
    return None


def _growth(tokens: tuple[Token, ...], index: int) -> int:
    """The exponent of the work at this token: its depth, and one more where it is linear itself."""
    token = tokens[index]
    depth = token.depth
    if token.text in MACROS and _text(tokens, index + 1) == "(":
        # The binding copies the list that map and filter build, once an element.
        return depth + (2 if token.text in ("map", "filter") else 1)
    return depth + 1 if depth and _is_linear(tokens, index) else depth


def _is_linear(tokens: tuple[Token, ...], index: int) -> bool:
    token = tokens[index]
    if token.kind == "op":
        if token.text not in _COMPARISONS and token.text != "+":
            return False
        kinds = _LITERAL_KINDS if token.text != "+" else frozenset({"number"})
        return not (_is_literal(tokens, index - 1, kinds) or _is_literal(tokens, index + 1, kinds))
    if token.text == "in":
        return not _is_literal_list(tokens, index + 1)
    return _is_linear_call(tokens, index)


def _is_linear_call(tokens: tuple[Token, ...], index: int) -> bool:
    if tokens[index].kind != "name" or _text(tokens, index + 1) != "(":
        return False
    if tokens[index].text in ("startsWith", "endsWith"):
        return not _is_literal(tokens, index + 2, frozenset({"string"}))
    return tokens[index].text not in _CONSTANT_TIME_CALLS


def _is_literal(tokens: tuple[Token, ...], index: int, kinds: frozenset[str]) -> bool:
    if not 0 <= index < len(tokens):
        return False
    return tokens[index].kind in kinds or tokens[index].text in ("true", "false", "null")


def _is_literal_list(tokens: tuple[Token, ...], index: int) -> bool:
    if _text(tokens, index) != "[":
        return False
    inside = tokens[index + 1 : tokens[index].mate]
    return all(token.kind in _LITERAL_KINDS or token.text == "," for token in inside)
