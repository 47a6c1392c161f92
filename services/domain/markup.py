"""Texts that say something else where they are shown than what is written: with markup, entities or escapes.

`evil&#46;com`, `evil<b></b>.com`, `**evil**.com` and `evil%2Ecom` are `evil.com` to who sees them. How a text is
shown depends on the program, and no list of its ways is complete. So where prose is expected, `services.domain.prose`
defines prose; any other text is a value as a whole, and one with markup (`is_opaque`) is alike only to itself. Of
what a tool returns, the most common reading is looked at as well (`shown`).
"""

import html
import re
from html.entities import html5

# URLs, in which percent signs are none that hide something, and what stands between them.
_PIECES = re.compile(r"[^\s,;<>()\[\]\"'`|]+")
# A word in angle brackets that stands by itself, such as `<name>`: it joins nothing, and has no address in it.
_PLACEHOLDER = (
    r"(?<!\S)<(?!(?:script|style|template|iframe|object|embed|svg|math|plaintext|xmp|noscript|textarea|title)>)"
    r"[A-Za-z]{1,40}>(?=[.,;:!?]*+(?:\s|\Z))"
)
_MARKS = re.compile(
    # A tag or a comment, but no address in angle brackets.
    rf"(?!{_PLACEHOLDER})"
    r"<(?![^\s<>@\"'=]+@[^\s<>@\"'=]+>|https?://[^\s<>\"']+>)[A-Za-z/!?]"
    # Emphasis, code and links of Markdown within a word or a name.
    r"|\w[*`~]+\w|[*`~\])]\.[\w*`~\[]|\w\.[*`~\[]"
    # Signs that are spelt, and an address whose name stands apart.
    r"|[\[({<]\s{0,9}(?:at|dot|punkt|[@.])\s{0,9}[\])}>]|(?<!\w)@[\w-]+\.\w"
    # Escapes of JSON and of quoted-printable.
    r"|\\[ux][0-9A-Fa-f]{2}|[a-z]=(?:2D|2E|40)[a-z]|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]",
    re.IGNORECASE,
)
_ENTITY = re.compile(r"&(#|[A-Za-z][A-Za-z0-9]*;?)")
# Also without a semicolon, and then whatever letters follow.
_OLD_ENTITIES = tuple(name for name in html5 if not name.endswith(";"))
_ENCODED = re.compile(r"%[0-9A-Fa-f]{2}")

_LONG_NUMBER = re.compile(r"&#(?:[xX]0*+[0-9A-Fa-f]{7,}+|0*+[0-9]{8,}+);?")
_ATTRIBUTES = r"(?>[^<>\"'\x00]+|\"[^\"\x00]*\"|'[^'\x00]*')*+"
_TAG = re.compile(rf"</?([A-Za-z][^\s/<>\x00]*+){_ATTRIBUTES}>|<[/!?][^<>\x00]*+>")
# What begins a new line where it is shown, or stands between two cells; any other tag joins what is around it.
_BLOCK_TAGS = """
    address article aside blockquote br caption center dd details dialog div dl dt fieldset figcaption figure footer
    form h1 h2 h3 h4 h5 h6 header hr img li main nav ol option p pre section select summary table tbody td textarea
    tfoot th thead title tr ul
"""
_BLOCKS = frozenset(_BLOCK_TAGS.split())


def is_opaque(text: str) -> bool:
    """True if a plain text (`services.domain.words.plain`) may be shown as another one.

    Percent signs are a part of a URL.
    """
    if _MARKS.search(text) or ("&" in text and any(map(has_entity, text.split()))):
        return True
    if "%" not in text:
        return False
    return any("://" not in piece and _ENCODED.search(piece) for piece in _PIECES.findall(text))


def has_entity(piece: str) -> bool:
    """True if some program shows a part of it as another character.

    Args:
        piece: what stands between spaces. Parameters of a URL are compared as they are.
    """
    names = _ENTITY.findall(piece)
    if "://" in piece:
        return any(name == "#" or name.endswith(";") for name in names)
    return any(name == "#" or name in html5 or name.startswith(_OLD_ENTITIES) for name in names)


def shown(text: str) -> str:
    """The text without the tags of HTML, and with the characters that its entities stand for."""
    if "<" not in text and "&" not in text:
        return text
    return html.unescape(_LONG_NUMBER.sub("\ufffd", _TAG.sub(_between, _without_comments(text))))


def _without_comments(text: str) -> str:
    kept, at = [], 0
    while (begin := text.find("<!--", at)) >= 0 and (end := text.find("-->", begin + 4)) >= 0:
        kept.append(text[at:begin])
        at = end + 3
    return "".join([*kept, text[at:]])


def _between(tag: re.Match[str]) -> str:
    return " " if tag[1] and tag[1].lower() in _BLOCKS else ""
