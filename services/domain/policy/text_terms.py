"""The terms of a text in a class of calls: what it names, and how much, but not what it says."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from services.domain.codes import Code, codes_in
from services.domain.markup import is_opaque
from services.domain.policy.addresses import Address, Disputed, addresses_in
from services.domain.policy.class_values import digest_of, value_of
from services.domain.policy.described import Vague
from services.domain.policy.identifying import MAX_NAME_CHARS, TooMany, identifying_of
from services.domain.policy.quantities import MAX_CHARS, amount_term, has_amount
from services.domain.words import TooManyWords, lowered, plain

# Of what one text names; of a text with more, only equal ones are alike.
MAX_TERMS = 8
_SOME_WORDS, _SOME_DATE = "some words", "3 May"
_IBAN = re.compile(r"[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}")
_NUMBER = re.compile(r"\d+")
# An IP address in hexadecimal digits.
_HEX_HOST = re.compile(r"0X[0-9A-F]{1,8}")


def terms_of_text(names: Sequence[str], text: str) -> set[str]:
    """The terms of a text that is no number and is not blank.

    Args:
        names: of the argument, and of those around it.
        text: the text.

    Raises:
        Vague: it has an address that programs could read differently.
    """
    try:
        form = plain(text)
        if is_opaque(form):
            # Nobody knows what is in it, so that only equal texts are alike.
            return {digest_of(text)}
        found = _named(names, text, form)
    except TooManyWords:
        return {digest_of(text)}
    return {digest_of(text)} if len(found) > MAX_TERMS else found or {"text"}


def _named(names: Sequence[str], text: str, form: str) -> set[str]:
    addresses, rest = _addresses(text)
    if form != text:
        # Some programs take `\uff20` for an @, and some do not.
        more, rest = _addresses(form)
        addresses |= more
    codes = dict.fromkeys(code for code in codes_in(rest) if code.is_strong)
    names = tuple(name[:MAX_NAME_CHARS] for name in names)
    is_prose = _says_prose(names)
    found = addresses | {_term_of_code(code.text, is_prose) for code in codes}
    if not is_prose and len(short := form.strip()) <= MAX_CHARS:
        about = _without(codes, _addresses(short)[1])
        if has_amount(about) and not _is_time(names, text):
            found.add(amount_term(about))
    return found


def _addresses(text: str) -> tuple[set[str], str]:
    """The terms of the addresses in a text, and the text without them."""
    found: set[str] = set()
    rest, at = [], 0
    try:
        for address in addresses_in(text):
            found.add(_term_of(address))
            rest.append(text[at : address.start])
            at = address.start + len(address.text)
    except Disputed as error:
        raise Vague from error
    return found, "\n".join([*rest, text[at:]])


def _term_of(address: Address) -> str:
    return f"@{value_of(address.place[1:])}" if address.is_mail else _host(address.place)


def _host(name: str) -> str:
    # Without a dot it could pass for another term.
    return value_of(name) if "." in name or ":" in name else f"//{value_of(name)}"


def _term_of_code(code: str, is_prose: bool) -> str:
    """The name of a host or file in prose; otherwise the kind of a code: an IBAN, a name, or any other."""
    if "." not in code and ":" not in code and not _HEX_HOST.fullmatch(code):
        return "~iban" if _is_iban(code) else "~code"
    # Elsewhere a text is a value as a whole: what new names of files say, they say of other new ones.
    return _host(lowered(code)) if is_prose else "~name"


def _is_iban(code: str) -> bool:
    if not _IBAN.fullmatch(code):
        return False
    # ISO 7064: letters count from 10, and what it begins with counts as its end.
    return int("".join(str(int(one, 36)) for one in code[4:] + code[:4])) % 97 == 1


def _without(codes: Iterable[Code], text: str) -> str:
    """A short text without the codes in it, however their groups are separated, but for those that are one number."""
    for code in codes:
        if len(_NUMBER.findall(code.text)) > 1 or not code.text.isalnum():
            pattern = r"[\W_]*".join(code.text) if code.text.isalnum() else re.escape(code.text)
            text = re.sub(pattern, " ", text, flags=re.IGNORECASE)
    return text


@lru_cache(maxsize=1_024)
def _says_prose(names: tuple[str, ...]) -> bool:
    """True if a text is prose by the name of its argument: then only the addresses and codes in it are values."""
    return _SOME_WORDS not in _values(names, _SOME_WORDS)


@lru_cache(maxsize=1_024)
def _says_time(names: tuple[str, ...]) -> bool:
    """True if a date or time is expected by the name of its argument: then it is no value."""
    return not any(_values(names, _SOME_DATE))


def _is_time(names: tuple[str, ...], text: str) -> bool:
    return _says_time(names) and not any(_values(names, text))


def _values(names: Iterable[str], text: str) -> Iterator[str]:
    arguments: Any = text
    for name in reversed([*names]):
        arguments = {name: arguments}
    try:
        yield from (value.text for value in identifying_of(arguments).values)
    except TooMany:
        # Nor is the call looked at.
        yield text
