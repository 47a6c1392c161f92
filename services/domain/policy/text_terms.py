"""The terms of a text in a class of calls: what it names, and how much, but not what it says."""

import re
from collections.abc import Iterable, Sequence

from services.domain.ibans import is_iban
from services.domain.markup import is_opaque
from services.domain.policy.addresses import Address, Disputed
from services.domain.policy.class_values import digest_of, value_of
from services.domain.policy.leaves import MAX_NAME_CHARS, leaf_at
from services.domain.policy.quantities import MAX_CHARS, amounts_in
from services.domain.policy.text_reading import read_text
from services.domain.prose import prose_of
from services.domain.words import TooManyWords, lowered, plain

# Of what one text names; of a text with more, only equal ones are alike.
MAX_TERMS = 8
# A number with a unit: an account has more digits, or letters in its midst.
_MAY_COUNT = re.compile(r"[A-Z]{0,4}\d{1,13}[A-Z]*\d{0,2}")
_NUMBER_AS_NAME = re.compile(r"[\d_]+\.[^\W\d]+|0X[0-9A-F]{1,24}")
# No IBAN has such words: `DE24 payout to Eve 10 EUR`.
_LONG_WORD = re.compile(r"[^\W\d_]{5}")
_WORDS = re.compile(r"[\s/]+")
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
        form, is_prose = plain(text), _is_prose(names, text)
        texts = _texts(text, form, is_prose=is_prose)
        found = _named(form, texts, is_prose=is_prose) if texts else set()
    except (TooManyWords, Disputed):
        texts = ()
    # Nobody knows what is in such a text, so that only equal ones are alike.
    return found or {"text"} if texts and len(found) <= MAX_TERMS else {digest_of(text)}


def _texts(text: str, form: str, *, is_prose: bool) -> tuple[str, ...]:
    """What is searched for addresses and codes; empty for what may hide some."""
    if is_prose:
        return prose_of(text, form)
    # The text is a value as a whole.
    return () if is_opaque(form) else (text, form)


def _named(form: str, texts: Sequence[str], *, is_prose: bool) -> set[str]:
    read = [read_text(one) for one in dict.fromkeys(texts)]
    addresses = {_term_of(address) for one in read for address in one.addresses}
    codes = [*dict.fromkeys(code.text for one in read for code in one.codes if code.is_strong)]
    if is_prose:
        return addresses | set(map(_term_of_code, codes))
    found = addresses | _kinds(form, codes)
    if len(short := form.strip()) > MAX_CHARS:
        return found
    return found | amounts_in(_without(codes, read_text(short).rest))


def _kinds(form: str, codes: Sequence[str]) -> set[str]:
    """The kinds of the codes in a text that is no prose; an account or id by itself is a name like another."""
    written = _joined(form)
    # A part of an account can have the form of one as well.
    kinds = {_kind_of_code(code) for code in codes if written not in codes or code not in written}
    return kinds.difference(["~code"]) if len(form.split()) == 1 else kinds


def _joined(text: str) -> str:
    return "".join(filter(str.isalnum, text)).upper()


def _term_of(address: Address) -> str:
    return f"@{value_of(address.place[1:])}" if address.is_mail else _host(address.place)


def _host(name: str) -> str:
    # Without a dot it could pass for another term.
    return value_of(name) if "." in name or ":" in name else f"//{value_of(name)}"


def _term_of_code(code: str) -> str:
    """In prose: the name of a host or file; otherwise the kind of a code, an IBAN or any other."""
    if _is_name(code):
        return _host(lowered(code))
    return "~iban" if is_iban(code) else "~code"


def _kind_of_code(code: str) -> str:
    """Elsewhere the text is a value as a whole: what new names of files say, they say of other new ones."""
    return "~name" if _is_name(code) else "~code"


def _is_name(code: str) -> bool:
    return "." in code or ":" in code or _HEX_HOST.fullmatch(code) is not None


def _without(codes: Iterable[str], text: str) -> str:
    """A short text without the codes in it, but for what may be an amount by itself, in them or beside them."""
    if _LONG_AMOUNT.fullmatch(text):
        return text
    for code in codes:
        if _may_count(code) or _NUMBER_AS_NAME.fullmatch(code):
            continue
        if _is_name(code):
            text = re.sub(re.escape(code), " ", text, flags=re.IGNORECASE)
        elif is_iban(code):
            text = re.sub(r"[\W_]*".join(code), _unless_words, text, flags=re.IGNORECASE)
        else:
            text = " ".join(word for word in _WORDS.split(text) if not _is_of_code(_joined(word), code))
    return text


def _unless_words(found: re.Match[str]) -> str:
    return found[0] if _LONG_WORD.search(found[0]) else " "


def _is_of_code(word: str, code: str) -> bool:
    """True for a word of a code's groups, or for a code with letters before it: no amount is in it."""
    return not _may_count(word) and (word in code or word.replace(code, "").isalpha())


def _may_count(word: str) -> bool:
    return not word or _MAY_COUNT.fullmatch(word) is not None


def _is_prose(names: tuple[str, ...], text: str) -> bool:
    """True if only the addresses and codes in a text are values, by its argument's name and what it is.

    As to a tool that writes, whatever the tool: to others, a query is prose, and its class says more than it must.
    """
    leaf = leaf_at(names, text)
    return not leaf.is_named and leaf.is_prose(("writes",))
