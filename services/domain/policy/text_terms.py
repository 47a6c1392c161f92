"""The terms of a text in a class of calls: what it names, and how much, but not what it says."""

import re
from collections.abc import Iterable, Sequence

from services.domain.codes import Code, codes_in
from services.domain.markup import is_opaque
from services.domain.policy.addresses import Address, Disputed, addresses_in
from services.domain.policy.class_values import digest_of, value_of
from services.domain.policy.leaves import MAX_NAME_CHARS, leaf_at
from services.domain.policy.quantities import MAX_CHARS, amount_term, has_amount
from services.domain.prose import prose_of
from services.domain.words import TooManyWords, lowered, plain

# Of what one text names; of a text with more, only equal ones are alike.
MAX_TERMS = 8
_SOME_DATE = "3 May"
_IBAN = re.compile(r"[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}")
# A number with a unit of a few letters: an account has more digits, or letters in its midst.
_MAY_COUNT = re.compile(r"[A-Z]{0,4}\d{1,13}[A-Z]{0,4}")
# In the smallest units of a currency.
_LONG_AMOUNT = re.compile(r"\W{0,3}\d{14,40}\s*[^\W\d_]{1,12}\W{0,3}")
# An IP address in hexadecimal digits.
_HEX_HOST = re.compile(r"0X[0-9A-F]{1,8}")


def terms_of_text(names: Sequence[str], text: str) -> set[str]:
    """The terms of a text that is no number and is not blank.

    Args:
        names: of the argument, and of those around it.
        text: the text.

    """
    names = tuple(name[:MAX_NAME_CHARS] for name in names)
    try:
        form = plain(text)
        texts = _read(names, text, form)
        found = _named(names, text, form, texts) if texts else set()
    except (TooManyWords, Disputed):
        texts = ()
    # Nobody knows what is in such a text, so that only equal ones are alike.
    return found or {"text"} if texts and len(found) <= MAX_TERMS else {digest_of(text)}


def _read(names: tuple[str, ...], text: str, form: str) -> tuple[str, ...]:
    """What is searched for addresses, last of all what is searched for codes; empty for what may hide some."""
    if _is_prose(names, text):
        return prose_of(text, form)[::-1]
    # The text is a value as a whole.
    return () if is_opaque(form) else (text, form)


def _named(names: tuple[str, ...], text: str, form: str, texts: Sequence[str]) -> set[str]:
    read = [_addresses(one) for one in dict.fromkeys(texts)]
    addresses = {term for terms, _ in read for term in terms}
    codes = dict.fromkeys(code for code in codes_in(read[-1][1]) if code.is_strong)
    if _is_prose(names, text):
        return addresses | {_term_of_code(code.text) for code in codes}
    found = addresses | _kinds(form, codes)
    if len(short := form.strip()) <= MAX_CHARS:
        about = _without(codes, _addresses(short)[1])
        if has_amount(about) and not _is_time(names, text):
            found.add(amount_term(about))
    return found


def _kinds(form: str, codes: Iterable[Code]) -> set[str]:
    """The kinds of the codes in a text that is no prose; an account or id by itself is a name like another."""
    written = "".join(filter(str.isalnum, form)).upper()
    kinds = {_kind_of_code(code.text) for code in codes if code.text != written}
    return kinds.difference(["~code"]) if len(form.split()) == 1 else kinds


def _addresses(text: str) -> tuple[set[str], str]:
    """The terms of the addresses in a text, and the text without them.

    Raises:
        Disputed: programs could read one of them differently.
    """
    found: set[str] = set()
    rest, at = [], 0
    for address in addresses_in(text):
        found.add(_term_of(address))
        rest.append(text[at : address.start])
        at = address.start + len(address.text)
    return found, "\n".join([*rest, text[at:]])


def _term_of(address: Address) -> str:
    return f"@{value_of(address.place[1:])}" if address.is_mail else _host(address.place)


def _host(name: str) -> str:
    # Without a dot it could pass for another term.
    return value_of(name) if "." in name or ":" in name else f"//{value_of(name)}"


def _term_of_code(code: str) -> str:
    """In prose: the name of a host or file; otherwise the kind of a code, an IBAN or any other."""
    if _is_name(code):
        return _host(lowered(code))
    return "~iban" if _is_iban(code) else "~code"


def _kind_of_code(code: str) -> str:
    """Elsewhere the text is a value as a whole: what new names of files say, they say of other new ones."""
    return "~name" if _is_name(code) else "~code"


def _is_name(code: str) -> bool:
    return "." in code or ":" in code or _HEX_HOST.fullmatch(code) is not None


def _is_iban(code: str) -> bool:
    if not _IBAN.fullmatch(code):
        return False
    # ISO 7064: letters count from 10, and what it begins with counts as its end.
    return int("".join(str(int(one, 36)) for one in code[4:] + code[:4])) % 97 == 1


def _without(codes: Iterable[Code], text: str) -> str:
    """A short text without the codes in it, however their groups are separated, but for those that may be amounts."""
    if _LONG_AMOUNT.fullmatch(text):
        return text
    for code in codes:
        if _MAY_COUNT.fullmatch(code.text):
            continue
        pattern = r"[\W_]*".join(code.text) if code.text.isalnum() else re.escape(code.text)
        text = re.sub(pattern, " ", text, flags=re.IGNORECASE)
    return text


def _is_time(names: tuple[str, ...], text: str) -> bool:
    """True if a date or time is expected by the name of the argument, and is one: then it is no value."""
    return _is_prose(names, _SOME_DATE) and _is_prose(names, text)


def _is_prose(names: tuple[str, ...], text: str) -> bool:
    """True if only the addresses and codes in a text are values, by its argument's name and what it is.

    As to a tool that writes, whatever the tool: to others, a query is prose, and its class says more than it must.
    """
    leaf = leaf_at(names, text)
    return not leaf.is_named and leaf.is_prose(("writes",))
