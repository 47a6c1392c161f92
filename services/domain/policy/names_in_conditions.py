"""Names and words of a condition, or of a question, that no call has: publishing refuses them.

`tool.annotations.readonlyHint` is an error for every call, and `"readonlyHint" in tool.annotations` is never true: a
rule with it would never deny. Policies in force are not checked: one that an earlier version published stays
readable, and holds.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from schemas.plain_words import nearest
from schemas.policy_document import ALLOW_WHEN, PolicyDocument, conditions_of
from schemas.policy_problems import PROBLEMS_MAX, Problem
from services.domain.policy.cel_memory import MEMORY
from services.domain.policy.cel_tokens import (
    MACROS,
    Token,
    Unreadable,
    call_arguments,
    string_value,
    tokenize,
)
from services.domain.policy.question import BadTemplate, parse_template
from services.domain.policy.visible import (
    ANSWERS,
    PARTS_OF_HISTORY,
    PARTS_OF_TOOL,
    VISIBLE,
    VISIBLE_IN_BLOCK,
    Kind,
    no_field,
)

_ANY = Kind()
_EQUAL = frozenset({"==", "!="})
# Tokens between which a value stands alone: elsewhere an operator makes another value of it.
_BEFORE_VALUE = frozenset({"(", "[", "{", ",", "?", ":", "&&", "||"})
_AFTER_VALUE = frozenset({")", "]", "}", ",", "?", ":", "&&", "||"})

Tokens = tuple[Token, ...]


class _Path(NamedTuple):
    """The tokens of a path, from first to last, and the kind of its value; `fault` if the path does not exist."""

    first: int
    last: int
    kind: Kind
    text: str
    fault: str = ""


class _Scope(NamedTuple):
    """The part of an expression in which a comprehension's variable is bound to the values of its range."""

    first: int
    last: int
    name: str
    kind: Kind


def unknown_names(document: PolicyDocument) -> Iterator[Problem]:
    """A problem for each field that no call has, and for each word that is compared with a value that never has it.

    Only the first problems are returned: each needs a search for similar names.
    """
    return islice(_unknown_names(document), PROBLEMS_MAX)


def _unknown_names(document: PolicyDocument) -> Iterator[Problem]:
    for path, condition in conditions_of(document):
        visible = VISIBLE_IN_BLOCK if path == ALLOW_WHEN else VISIBLE
        for message in _distinct(_of_condition(condition, visible)):
            yield Problem(path=path, code="unknown_field", message=message)
    for index, rule in enumerate(document.rules):
        for message in _distinct(_of_question((rule.hold and rule.hold.question) or "")):
            yield Problem(path=f"rules[{index}].hold.question", code="unknown_field", message=message)


def _distinct(messages: Iterable[str]) -> Iterator[str]:
    said: set[str] = set()
    for message in messages:
        if message not in said:
            said.add(message)
            yield message


def _of_question(question: str) -> Iterator[str]:
    try:
        parts = parse_template(question)
    except BadTemplate:
        # It cannot be filled; the compiler reports that.
        return
    for names in (part for part in parts if not isinstance(part, str)):
        kind, path = VISIBLE[names[0]], names[0]
        for name in names[1:]:
            if fault := _fault_of(kind, path, name):
                yield fault
                break
            kind, path = _under(kind, name), f"{path}.{name}"


def _of_condition(condition: str, visible: Mapping[str, Kind]) -> Iterator[str]:
    try:
        tokens = tokenize(condition)
    except Unreadable:
        # It does not compile; the compiler reports that.
        return
    scopes: dict[int, _Scope] = {}
    for index in range(len(tokens)):
        found = _begun(tokens, index, scopes.values(), visible)
        # Other values that end here are an argument's, or made in the expression, and can be anything.
        path = _Path(index, index, _ANY, "") if found is None else _followed(tokens, found)
        if path.fault:
            yield path.fault
        else:
            yield from _of_words(tokens, path)
        if (scope := _opened(tokens, path)) is not None:
            scopes.setdefault(scope.first, scope)


def _begun(tokens: Tokens, index: int, scopes: Iterable[_Scope], visible: Mapping[str, Kind]) -> _Path | None:
    """A name, or a function call, with its kind; None if none begins here."""
    token = tokens[index]
    if token.kind != "name" or _text(tokens, index - 1) == ".":
        return None
    if _text(tokens, index + 1) == "(":
        last = tokens[index + 1].mate
        return _Path(index, last, ANSWERS[token.text], f"{token.text}(…)") if token.text in ANSWERS else None
    bound = [one for one in scopes if one.name == token.text and one.first <= index <= one.last]
    if bound:
        # If two comprehensions bind the name, the inner one was opened later.
        return _Path(index, index, bound[-1].kind, token.text)
    if token.text == MEMORY:
        return _remembered(tokens, index)
    kind = visible.get(token.text)
    return None if kind is None else _Path(index, index, kind, token.text)


def _remembered(tokens: Tokens, index: int) -> _Path | None:
    """`memory.approved("to")`: a list of any values."""
    if [token.text for token in tokens[index + 1 : index + 4]] != [".", "approved", "("]:
        return None
    last = tokens[index + 3].mate
    text = "".join(token.text for token in tokens[index : last + 1])
    return _Path(index, last, Kind("a list", items=_ANY), text)


def _followed(tokens: Tokens, path: _Path) -> _Path:
    """The path with all following names and indices, to its end or its first fault."""
    while path.kind.what and not path.fault:
        following = _text(tokens, path.last + 1)
        if following == ")" and _is_grouped(tokens, path):
            path = path._replace(first=path.first - 1, last=path.last + 1)
        elif following == "." and _text(tokens, path.last + 3) != "(" and path.last + 2 < len(tokens):
            path = _stepped(path, tokens[path.last + 2].text, path.last + 2)
        elif following == "[":
            last = tokens[path.last + 1].mate
            path = _indexed(path, tokens[path.last + 2 : last], last)
        else:
            break
    return path


def _is_grouped(tokens: Tokens, path: _Path) -> bool:
    """True if the path stands alone in brackets that do not belong to a function."""
    before = tokens[path.first - 2] if path.first > 1 else None
    is_call = before is not None and before.kind == "name" and before.text != "in"
    return not is_call and path.first > 0 and tokens[path.first - 1].mate == path.last + 1


def _indexed(path: _Path, inside: Tokens, last: int) -> _Path:
    if len(inside) == 1 and inside[0].kind == "string":
        return _stepped(path, string_value(inside[0].text), last)
    if path.kind.items is not None:
        return path._replace(last=last, kind=path.kind.items, text=f"{path.text}[…]")
    if len(inside) == 1 and inside[0].kind == "number":
        return _stepped(path, inside[0].text, last)
    # The index decides at run time which of its fields that is.
    return path._replace(last=last, kind=_ANY)


def _stepped(path: _Path, name: str, last: int) -> _Path:
    fault = _fault_of(path.kind, path.text, name)
    return path._replace(last=last, kind=_under(path.kind, name), text=f"{path.text}.{name}", fault=fault)


def _under(kind: Kind, name: str) -> Kind:
    return (kind.fields or {}).get(name, _ANY)


def _fault_of(kind: Kind, path: str, name: str) -> str:
    if kind.fields is not None:
        return "" if name in kind.fields else no_field(path, name, kind.fields)
    return f"{path} is {kind.what} and has no field {name!r}" if kind.what else ""


def _opened(tokens: Tokens, path: _Path) -> _Scope | None:
    """The comprehension over the value that ends here."""
    if _text(tokens, path.last + 1) != "." or _text(tokens, path.last + 2) not in MACROS:
        return None
    opening = path.last + 3
    if _text(tokens, opening) != "(" or tokens[opening + 1].kind != "name":
        return None
    through = path.kind.items or _ANY
    if path.kind.fields is not None:
        through = Kind("a text", values=frozenset(path.kind.fields))
    return _Scope(opening + 1, tokens[opening].mate, tokens[opening + 1].text, through)


def _of_words(tokens: Tokens, path: _Path) -> Iterator[str]:
    """The problems of quoted words that are compared with the value, or searched for in it."""
    before, after = _text(tokens, path.first - 1), _text(tokens, path.last + 1)
    ends = path.last + 1 >= len(tokens) or after in _AFTER_VALUE
    begins = path.first == 0 or before in _BEFORE_VALUE
    if ends and before == "in" and (word := _word_before(tokens, path.first - 2)) is not None:
        yield from _of_sought(path, word)
    compared: list[str | None] = []
    if ends and before in _EQUAL:
        compared.append(_word_before(tokens, path.first - 2))
    if begins and after in _EQUAL:
        compared.append(_word_after(tokens, path.last + 2))
    if begins and after == "in" and _text(tokens, path.last + 2) == "[":
        listed = call_arguments(tokens, path.last + 2)
        compared += [string_value(one[0].text) for one in listed if [part.kind for part in one] == ["string"]]
    for word in compared:
        if word is not None and path.kind.values is not None and word not in path.kind.values:
            yield f"{path.text} is never {word!r}{_instead(word, path.kind.values)}"


def _of_sought(path: _Path, word: str) -> Iterator[str]:
    if path.kind.fields is not None and word not in path.kind.fields:
        yield no_field(path.text, word, path.kind.fields)
    items = path.kind.items
    if items is not None and items.values is not None and word not in items.values:
        yield f"{path.text} never has {word!r}{_instead(word, items.values)}"


def _instead(word: str, values: frozenset[str]) -> str:
    if values == PARTS_OF_TOOL and word in PARTS_OF_HISTORY:
        return f" in a rule, only in allow_when; write {word}(args.NAME), or {word!r} in history.parts"
    near = nearest(word, values)
    return f"; did you mean {near!r}?" if near is not None else f"; write one of {', '.join(sorted(values))}"


def _word_before(tokens: Tokens, index: int) -> str | None:
    """The quoted text here, unless an operator before it makes another value of it."""
    alone = index == 0 or (index > 0 and tokens[index - 1].text in _BEFORE_VALUE)
    return string_value(tokens[index].text) if alone and tokens[index].kind == "string" else None


def _word_after(tokens: Tokens, index: int) -> str | None:
    alone = index + 1 == len(tokens) or _text(tokens, index + 1) in _AFTER_VALUE
    is_text = alone and index < len(tokens) and tokens[index].kind == "string"
    return string_value(tokens[index].text) if is_text else None


def _text(tokens: Tokens, index: int) -> str:
    return tokens[index].text if 0 <= index < len(tokens) else ""
