"""`memory.approved("argument")`: the values of an argument that people have approved by standing rules.

It is compiled to `memory["argument"]`, a list that is never absent, so its work and shape are those of any other
variable. No other use of `memory` is part of the language.
"""

import re

from services.domain.policy.cel_tokens import Token, Unreadable

MEMORY = "memory"
_FORM = (".", "approved", "(")
_ARGUMENT = re.compile(r"""(["'])[^"'\\]{1,128}\1""")


def without_calls(tokens: tuple[Token, ...]) -> str | None:
    """The expression with each call of `approved` replaced by an index; None if it does not use `memory`.

    Raises:
        Unreadable: `memory` in another form.
    """
    if not any(_is_memory(tokens, index) for index in range(len(tokens))):
        return None
    texts: list[str] = []
    index = 0
    while index < len(tokens):
        if _is_memory(tokens, index):
            texts.append(f"{MEMORY}[{_argument(tokens, index)}]")
            index += len(_FORM) + 3
        else:
            texts.append(tokens[index].text)
            index += 1
    return " ".join(texts)


def argument_of(tokens: tuple[Token, ...], index: int) -> str:
    """The argument that an index of `memory` names; `tokens` are those after `without_calls`."""
    return tokens[index + 2].text[1:-1]


def _is_memory(tokens: tuple[Token, ...], index: int) -> bool:
    is_member = index > 0 and tokens[index - 1].text == "."
    return tokens[index].text == MEMORY and tokens[index].kind == "name" and not is_member


def _argument(tokens: tuple[Token, ...], index: int) -> str:
    following = tokens[index + 1 : index + 1 + len(_FORM) + 2]
    form = tuple(token.text for token in following[: len(_FORM)])
    if len(following) < len(_FORM) + 2 or form != _FORM or following[-1].text != ")":
        raise Unreadable('read remembered values with memory.approved("argument")')
    argument = following[-2]
    if argument.kind != "string" or not _ARGUMENT.fullmatch(argument.text):
        raise Unreadable("memory.approved() takes the name of an argument in quotes")
    return argument.text
