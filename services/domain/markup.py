"""What a text says to who sees it: without the tags of HTML, and with the characters that stand for others.

`evil&#46;com`, `evil<b></b>.com` and `evil%2Ecom` are `evil.com` where they are shown, and so is what has a line
break in the attribute of a tag. Nothing is known of where a text will be shown, so that each reading of it counts.
"""

import html
import re
from collections.abc import Sequence
from urllib.parse import unquote

# Between texts that have nothing to do with each other (`services.domain.codes.APART`) no tag goes on.
_TAG = re.compile(r"<(?:[/?]?([A-Za-z][A-Za-z0-9]*)[^<>\x00]*|!(?:--)?[^<>\x00]{0,200})>")
# What begins a new line where it is shown, or stands between two cells; any other tag joins what is around it.
_BLOCK_TAGS = """
    address article aside blockquote br caption center dd details dialog div dl dt fieldset figcaption figure footer
    form h1 h2 h3 h4 h5 h6 header hr img li main nav ol option p pre section select summary table tbody td textarea
    tfoot th thead title tr ul
"""
_BLOCKS = frozenset(_BLOCK_TAGS.split())
# Browsers leave them out of addresses.
_LEFT_OUT = re.compile(r"[\t\n\r]+")
# Of a URL the percent signs are a part.
_ENCODED = re.compile(r"(?<![^\s\x00])(?![^\s\x00]*://)[^\s%\x00]*+%[0-9A-Fa-f]{2}[^\s\x00]*+")
_SPELT = re.compile(r"\s?[\[({<]\s?(at|dot|[@.])\s?[\])}>]\s?", re.IGNORECASE)
_SIGNS = {"at": "@", "dot": "."}


def readings(text: str) -> Sequence[str]:
    """The text, and what else it can say; each once."""
    found = [text]
    if "<" in text or "&" in text:
        found += [html.unescape(_TAG.sub(_address_of, text)), html.unescape(_TAG.sub(_shown, text))]
    if "%" in text or _SPELT.search(text):
        found.append(_SPELT.sub(_sign, _ENCODED.sub(_decoded, text)))
    return tuple(dict.fromkeys(found))


def _address_of(tag: re.Match[str]) -> str:
    return _LEFT_OUT.sub("", tag[0])


def _shown(tag: re.Match[str]) -> str:
    return " " if tag[1] and tag[1].lower() in _BLOCKS else ""


def _decoded(word: re.Match[str]) -> str:
    return unquote(word[0])


def _sign(spelt: re.Match[str]) -> str:
    return _SIGNS.get(spelt[1].lower(), spelt[1])
