"""`novel(args.to)` and `tainted(args.to)`: what the history of the call's values says of an argument.

They are compiled to a look into the lists of `history`, so their work and shape are those of any other expression:
`(type(args.to) == type(args.to) ? !history.is_whole || "to" in history.novel : false)`. The comparison is always
true, and an error if the call has no such argument. No other form is part of the language.
"""

import json

from services.domain.policy.cel_tokens import Token, Unreadable, bound_names, call_arguments, string_value
from services.domain.policy.leaves import joined

HISTORY_FUNCTIONS = ("novel", "tainted")
HISTORY = "history"


def without_history_calls(tokens: tuple[Token, ...]) -> str | None:
    """The expression with each call of these functions replaced; None if there is none.

    Raises:
        Unreadable: a call with anything but an argument of the call, or where another value has the name `args`.
    """
    if not any(_is_call(tokens, index) for index in range(len(tokens))):
        return None
    if taken := sorted(bound_names(tokens) & {"args", HISTORY, *HISTORY_FUNCTIONS}):
        raise Unreadable(f"novel() and tainted() cannot be used where {taken[0]!r} names another value")
    texts: list[str] = []
    index = 0
    while index < len(tokens):
        if _is_call(tokens, index):
            end = tokens[index + 1].mate
            texts.append(_instead(tokens[index].text, call_arguments(tokens, index + 1)))
            index = end + 1
        else:
            texts.append(tokens[index].text)
            index += 1
    return " ".join(texts)


def _is_call(tokens: tuple[Token, ...], index: int) -> bool:
    if tokens[index].kind != "name" or tokens[index].text not in HISTORY_FUNCTIONS:
        return False
    is_member = index > 0 and tokens[index - 1].text == "."
    return not is_member and index + 1 < len(tokens) and tokens[index + 1].text == "("


def _instead(function: str, arguments: list[tuple[Token, ...]]) -> str:
    argument = arguments[0] if len(arguments) == 1 else ()
    path = json.dumps(_path(function, argument), ensure_ascii=False)
    value = " ".join(token.text for token in argument)
    found = f"!{HISTORY}.is_whole || {path} in {HISTORY}.{function}"
    return f"(type({value}) == type({value}) ? {found} : false)"


def _path(function: str, argument: tuple[Token, ...]) -> str:
    """The path of an argument such as `args.to[0]["address"]`; the items of a list share the list's."""
    path, index = "", 1
    while index + 1 < len(argument):
        following = argument[index + 1]
        if argument[index].text == "." and following.kind == "name":
            path, index = joined(path, following.text), index + 2
        elif argument[index].text == "[" and following.kind == "string" and index + 2 < len(argument):
            path, index = joined(path, string_value(following.text)), index + 3
        elif argument[index].text == "[" and following.kind == "number":
            index += 3
        else:
            break
    if not path or argument[0].text != "args" or index != len(argument):
        raise Unreadable(f"{function}() takes an argument of the call, such as {function}(args.recipient)")
    return path
