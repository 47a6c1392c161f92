"""The shape of an expression, from its tokens: the values that it reads, and how its work grows.

The binding holds the interpreter lock during an evaluation and cannot be interrupted, so the work is limited in
advance, operation by operation (`cel_work`; docs/policy.md, "Bounded evaluation").
"""

from collections.abc import Iterator
from dataclasses import dataclass

from schemas.linear_patterns import PatternRefused, bounded_size
from schemas.plain_words import nearest
from services.domain.policy.cel_history import HISTORY
from services.domain.policy.cel_memory import MEMORY, argument_of
from services.domain.policy.cel_program import (
    Kinds,
    by_kind,
    checked_values,
    guarded_values,
    is_plain_duration,
    is_size,
    is_size_of_list,
    kinds_of,
    measured_path,
    path_start,
)
from services.domain.policy.cel_times import has_zone
from services.domain.policy.cel_tokens import (
    MACROS,
    Token,
    Unreadable,
    bound_names,
    call_arguments,
    string_value,
)
from services.domain.policy.cel_work import (
    CHECKED_COPIES,
    TEXT_CALLS,
    Read,
    Work,
    checked_weight,
    copies_of,
    growth_of,
    linear_weight,
    merged,
    named_weight,
    parts_copied,
    step_weight,
    turns_of,
)
from services.domain.policy.visible import VISIBLE, no_field

VARIABLES = frozenset(VISIBLE)
# Only these are checked when a policy in force is read: earlier versions published policies with any field of others.
FIELDS = {name: VISIBLE[name].fields or {} for name in ("tool", "execution", "risk", "history")}
TYPES = frozenset({"int", "uint", "double", "bool", "string", "bytes", "list", "map", "null_type", "type"})
OWN_FUNCTIONS = {"url_host": (1, 1), "real_path": (1, 1), "sql_kind": (1, 2)}
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
_LITERAL_KINDS = frozenset({"string", "number"})

# The reads that are copied again, and larger values that are: the depth of each, and how much of it.
Copies = tuple[list[tuple[int, Read]], list[tuple[int, float]]]


@dataclass(frozen=True, slots=True)
class Shape:
    """The values that an expression reads, and how its work grows with their size."""

    reads: frozenset[Read]
    work: Work


def check_words(tokens: tuple[Token, ...]) -> None:
    """Refuse words of other languages and name CEL's: the parser would only report a syntax error.

    Raises:
        Unreadable: with what to write instead.
    """
    bound = bound_names(tokens)
    for index, token in enumerate(tokens):
        is_own = token.kind == "name" and token.text not in bound and _text(tokens, index - 1) != "."
        if is_own and (instead := _FOREIGN_WORDS.get(token.text)) is not None:
            raise Unreadable(f"{token.text!r} is not a word of CEL; write {instead!r}")


def shape_of(tokens: tuple[Token, ...]) -> Shape:
    """Check every name of an expression, and measure it.

    Raises:
        Unreadable: an unknown name or field, or a call in a form that is not read.
    """
    bound = bound_names(tokens)
    reads: set[Read] = set()
    for index, token in enumerate(tokens):
        if token.kind != "name" or token.text in _WORDS or _is_member(tokens, index):
            continue
        if _text(tokens, index + 1) == "(":
            _check_call(tokens, index)
        elif token.text == HISTORY and HISTORY in bound:
            # Policies of earlier versions may have called a value so.
            continue
        elif token.text in VARIABLES:
            reads.add((token.text, _field(tokens, index)))
        elif token.text not in bound and token.text not in TYPES:
            raise Unreadable(_unknown(token.text))
    return Shape(frozenset(reads), _work(tokens))


def _unknown(name: str) -> str:
    near = nearest(name, VARIABLES)
    if near is not None:
        return f"unknown name {name!r}; did you mean {near!r}?"
    return f"unknown name {name!r}; an argument of the call is args.{name}, and a text needs quotes"


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
    """The patterns of the calls of matches(), one for each call; calls in other forms are skipped."""
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
        # As a function it would accept any pattern, including an agent's.
        raise Unreadable("write value.matches('pattern'), not matches(value, …)")
    if name not in OWN_FUNCTIONS:
        return
    arguments = call_arguments(tokens, index + 1)
    least, most = OWN_FUNCTIONS[name]
    if not least <= len(arguments) <= most:
        raise Unreadable(f"{name}() takes {least if least == most else f'{least} or {most}'} argument(s)")
    if len(arguments) == 2 and [token.kind for token in arguments[1]] != ["string"]:
        raise Unreadable(f"{name}() takes the dialect as a string in quotes")


def _field(tokens: tuple[Token, ...], index: int) -> str | None:
    name = tokens[index].text
    if name == MEMORY:
        return argument_of(tokens, index)
    known = FIELDS.get(name)
    if _text(tokens, index + 1) == "." and _text(tokens, index + 3) != "(":
        field = _text(tokens, index + 2)
        if known is not None and field not in known:
            raise Unreadable(no_field(name, field, known))
        return field
    if known is not None and _text(tokens, index + 1) != "[":
        raise Unreadable(
            f"{name!r} is a map; write one of {', '.join(f'{name}.{field}' for field in sorted(known))}"
        )
    return None


def _work(tokens: tuple[Token, ...]) -> Work:
    steps: list[tuple[int, float]] = []
    linear: list[tuple[int, float]] = []
    calls: list[tuple[int, str, int]] = []
    named: list[tuple[int, Read]] = []
    kinds = kinds_of(tokens)
    bound = kinds.bound
    joined = listed = 0
    makes_ranges = False
    for index, token in enumerate(tokens):
        steps.append((token.depth, step_weight(token.kind, token.text)))
        is_call = token.kind == "name" and _text(tokens, index + 1) == "("
        if is_call and token.text in MACROS:
            steps.append(turns_of(token.depth))
            if token.text in ("map", "filter"):
                steps.append(copies_of(token.depth))
                linear += parts_copied(token.depth, _makes_values(tokens, index))
            makes_ranges = makes_ranges or not _is_path(tokens, index - 2)
        elif is_call and token.text in TEXT_CALLS:
            calls.append((token.depth, _as_run(tokens, index, kinds), _program_size(tokens, index)))
        elif has_zone(tokens, index):
            is_now = path_start(tokens, index - 2) == index - 2 and _text(tokens, index - 2) == "now"
            is_now = is_now and "now" not in bound
            calls.append((token.depth, "in_zone_of_now" if is_now else "in_zone", 0))
        elif _is_linear(tokens, index):
            linear.append((token.depth, linear_weight(token.text)))
        elif token.kind == "name" and _text(tokens, index - 1) != "." and not is_call:
            if token.text in bound:
                # All values that a comprehension iterates over are together no more than the value around them.
                linear.append((max(token.depth - 1, 0), named_weight()))
            elif token.text in VARIABLES:
                named.append((token.depth, (token.text, _field(tokens, index))))
        joined += token.text == "+" and _is_linear(tokens, index)
        listed += _listed(tokens, index)
    checked = (
        *(start for start, _, _ in checked_values(tokens)),
        *(operand.start for operand in guarded_values(tokens)),
    )
    steps += [(tokens[start].depth, checked_weight()) for start in checked]
    for again in _copied_again(tokens, kinds):
        named, linear = named + again[0], linear + again[1]
    lengths = [
        len(token.text)
        for index, token in enumerate(tokens)
        if token.kind == "string" and _text(tokens, index - 2) != "matches"
    ]
    has_map = any(token.text == "map" for token in tokens)
    return Work(
        steps=merged(steps),
        linear=merged(linear),
        named=tuple(named),
        calls=tuple(calls),
        literals=sum(token.kind in _LITERAL_KINDS for token in tokens) + listed,
        literal_characters=sum(lengths),
        longest_literal=max(lengths, default=0),
        growth=growth_of(joined + listed, has_map),
        lengthening=growth_of(joined, has_map),
        makes_ranges=makes_ranges,
        makes_texts=any(name == "string_by_kind" for _, name, _ in calls),
    )


def _as_run(tokens: tuple[Token, ...], index: int, kinds: Kinds) -> str:
    """The function that replaces the one called here."""
    name = tokens[index].text
    if name == "size":
        if is_size_of_list(tokens, index):
            return name
        return "code_points" if measured_path(tokens, index) is None else "size_of_path"
    if by_kind(tokens, index, kinds) is not None:
        return f"{name}_by_kind"
    is_checked = name == "duration" and not is_plain_duration(tokens, index)
    return "checked_duration" if is_checked else name


def _copied_again(tokens: tuple[Token, ...], kinds: Kinds) -> Iterator[Copies]:
    """The copies made by the program that runs in place of the expression."""
    for index in range(len(tokens)):
        if is_size(tokens, index) and (path := measured_path(tokens, index)) is not None:
            # The program names it twice, once to test its type.
            yield _named_again(tokens, path[0], kinds.bound)
        elif by_kind(tokens, index, kinds) is not None:
            yield _joined_again(tokens, index + 2, tokens[index + 1].mate - 1, kinds.bound)
    for start, last, may_be_joined in checked_values(tokens):
        if may_be_joined:
            yield _joined_again(tokens, start, last, kinds.bound)
    for operand in guarded_values(tokens):
        yield _joined_again(tokens, operand.start, operand.last, kinds.bound)


def _named_again(tokens: tuple[Token, ...], index: int, bound: set[str]) -> Copies:
    """The work to copy the value at the beginning of a path once more."""
    first = tokens[index]
    if first.text in VARIABLES and first.text not in bound:
        return [(first.depth, (first.text, _field(tokens, index)))], []
    # All values that a comprehension iterates over are together no more than the value around them.
    return [], [(max(first.depth - 1, 0), named_weight())]


def _joined_again(tokens: tuple[Token, ...], start: int, last: int, bound: set[str]) -> Copies:
    """The work to test the kind of a value or sum: if it is a list or a text, the test copies it."""
    named: list[tuple[int, Read]] = []
    linear: list[tuple[int, float]] = []
    for first, end in _summands(tokens, start, last):
        if path_start(tokens, end) == first:
            again = _named_again(tokens, first, bound)
            named += again[0] * CHECKED_COPIES
            linear += again[1] * CHECKED_COPIES
        elif first != end or tokens[first].kind != "number":
            linear.append((tokens[start].depth, named_weight() * CHECKED_COPIES))
    return named, linear


def _summands(tokens: tuple[Token, ...], start: int, last: int) -> Iterator[tuple[int, int]]:
    index = start
    while index <= last:
        if tokens[index].mate >= 0:
            index = tokens[index].mate
        elif tokens[index].text == "+":
            yield start, index - 1
            start = index + 1
        index += 1
    yield start, last


def _program_size(tokens: tuple[Token, ...], index: int) -> int:
    """The size of a call's pattern, which `_check_matches` has compiled; 0 for other calls."""
    if tokens[index].text != "matches":
        return 0
    return bounded_size(string_value(call_arguments(tokens, index + 1)[0][0].text))


def _makes_values(tokens: tuple[Token, ...], index: int) -> bool:
    """True if a `map` makes values that may be larger than those it iterates over."""
    if tokens[index].text != "map":
        return False
    inside = tokens[index + 2 : tokens[index + 1].mate]
    return any(token.text in VARIABLES or token.text in MACROS or token.text in "[{+" for token in inside)


def _is_path(tokens: tuple[Token, ...], index: int) -> bool:
    """True if a name with its fields (`args.a.b`) ends here: a value that is read, not one that is made."""
    while index >= 0 and tokens[index].kind == "name":
        if _text(tokens, index - 1) != ".":
            return True
        index -= 2
    return False


def _listed(tokens: tuple[Token, ...], index: int) -> int:
    """The number of values in a list or map that begins here, unless they are all literals."""
    token, before = tokens[index], _text(tokens, index - 1)
    is_value = index > 0 and (tokens[index - 1].kind != "op" or before in (")", "]", "}")) and before != "in"
    if token.text == "{" or (token.text == "[" and not is_value and not _is_literal_list(tokens, index)):
        return len(call_arguments(tokens, index))
    return 0


def _is_linear(tokens: tuple[Token, ...], index: int) -> bool:
    token = tokens[index]
    if token.kind == "op":
        if token.text not in _COMPARISONS and token.text != "+":
            return False
        kinds = _LITERAL_KINDS if token.text != "+" else frozenset({"number"})
        return not (_is_literal(tokens, index - 1, kinds) or _is_literal(tokens, index + 1, kinds))
    return token.text == "in" and not _is_literal_list(tokens, index + 1)


def _is_literal(tokens: tuple[Token, ...], index: int, kinds: frozenset[str]) -> bool:
    if not 0 <= index < len(tokens):
        return False
    return tokens[index].kind in kinds or tokens[index].text in ("true", "false", "null")


def _is_literal_list(tokens: tuple[Token, ...], index: int) -> bool:
    if _text(tokens, index) != "[":
        return False
    inside = tokens[index + 1 : tokens[index].mate]
    plain = TYPES - bound_names(tokens)
    return all(token.kind in _LITERAL_KINDS or token.text == "," or token.text in plain for token in inside)
