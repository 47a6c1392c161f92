"""Prose: a text that every program shows as it is written.

`evil&#46;com`, `evil<b></b>.com`, `evil[.com](#)` and `evil%2Ecom` are `evil.com` to who sees them, and no list of
such ways is complete. So this module names what prose is made of, and not what it must not have. Between spaces stand
words, numbers, names with dots, addresses, and signs, each by itself, with punctuation around it; programs, JSON and
most markup are no prose. What is none is a value as a whole (`services.domain.policy.identifying`).

A text of ordinary words can still be a program or a setting (`replicas: 1`): the names around it say so.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

from services.domain.markup import has_entity
from services.domain.words import APART

# They change the order in which a text is shown.
_REORDERED = re.compile("[\u202a-\u202e\u2066-\u2069]")
# They are not shown, so that what is around them is joined.
_DEFINITION = re.compile(r"^\s{0,3}>?\s?\[[^\]\n]{1,999}\]:", re.MULTILINE)
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029]")
# Signs that are spelt: `eve (at) example (dot) com`.
_SPELT = re.compile(r"[\[({<«\"'“‘]\s{0,9}(?:at|dot|punkt|[@.])\s{0,9}[\])}>»\"'”’]", re.IGNORECASE)
# Code of Markdown: a space within its signs is not shown, nor is a line of them.
_SPAN = re.compile(r"(?<![\w`])(`+)(?![\s`])[^`\n]*(?<![\s`])\1(?![\w`])")
_FENCE = re.compile(r"^[ >]*```[a-z]{0,12}[ ]*$", re.MULTILINE | re.IGNORECASE)
_MENTION = re.compile(
    r"<([@#][UCW][A-Z0-9]{6,12}|!(?:here|channel|everyone))(?:\|([\w-]{1,80}))?>", re.IGNORECASE
)
# What is not shown around the words of a link of Markdown or of a chat, and what HTML takes for a tag.
_MARKS = r"^[ \t>]*>[ \t>]*|\|\||\$\$|(?<![^\W_])[*_~`]+(?=\S)|(?<=\S)[*_~`]+(?![^\W_])"
_LINK = re.compile(
    rf"!?\[(?=[^\]\n]*\]\()|\]\({APART}\)|<(?:{APART}|[@#]\w+|!\w+)\|?|(?<=[\w!?.])>|{_MARKS}", re.MULTILINE
)
_HTML = re.compile(rf"<[/!?@#A-Za-z{APART}][^<>]*+>|{_MARKS}", re.MULTILINE)
_MAY_HIDE = re.compile(r"[<>*_~`|$]|\]\(")
_URL_PIECE = re.compile(r"(?<![^\s(\[<])[A-Za-z][A-Za-z0-9+.-]*+://[^\s<>|)\]]*+")
# Of other scripts all but spaces: letters have marks, and signs join nothing.
_W = r"(?:[A-Za-z0-9]|[^\x00-\x7f])"
# `AT&T`, `and/or`, `don't`, `file_name`, `item(s)`, `run()`, `wait...what`, `C++`
_WORD = rf"{_W}++(?:(?:\.\.\.|[-'/&_+,;:!?]){_W}++)*+(?:\({_W}*+\))?+\+*+"
_CURRENCY = r"[$\u20a0-\u20bf\u00a3\u00a5]"
# `-1,234.56`, `10:30-11:00`, `05.03.2026`, `50%`, `1.5kg`, `#42`, `(0)30`, `US$5`, `$5k-$10k`, `10,-`, `<5`,
# `2026-01-05T10:30:00.5Z`
_NUMBER = (
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{1,9}(?:Z|[+-]\d\d:?\d\d)?+|"
    rf"(?:[#~+<-]|[A-Z]{{1,2}}(?=\$))?+{_CURRENCY}?+[+-]?+[0-9]++"
    rf"(?:[km]?[-.,:/'+\u2012-\u2015\u00d7]{_CURRENCY}?+[0-9]++)*+"
    rf"(?:%(?![0-9A-Fa-f]{{2}}))?+(?:-?{_W}++)*+(?:[,.]?[-\u2012-\u2015]{{1,2}})?+{_CURRENCY}?+(?:/[A-Za-z]++\.?)?+"
)
# Underscores at the ends of a label are emphasis.
_DOTTED = r"(?!_)[\w-]++(?<!_)(?:\.(?!_)[\w-]++(?<!_))++"
_IN_URL = r"[\w.!?:@#$&*+=%/~-]"
_URL = rf"[A-Za-z][A-Za-z0-9+.-]*+://{_IN_URL}++"
# `t.me/friend`, `198.51.100.7:8080`
_HOST = r"(?:(?:[\w-]++\.)+(?:xn--[\w-]+|[^\W\d_]{2,})|\d{1,3}(?:\.\d{1,3}){3})"
_PLACE = rf"{_HOST}(?::\d+(?:[/?#]{_IN_URL}*+)?+|[/?#]{_IN_URL}++)"
_MAIL = r"[\w.+-]++@[A-Za-z0-9_-]++(?:\.[A-Za-z0-9_-]++)*+"
_TAG = r"[@#][\w]++(?:-[\w]++)*+"
# By itself it joins nothing; but these hide what follows them.
_PLACEHOLDER = (
    r"(?!(?:applet|audio|base|canvas|datalist|details|dialog|embed|frame|frameset|head|iframe|link|map|math|meta|meter"
    r"|noembed|noframes|noscript|object|optgroup|option|plaintext|progress|rp|script|select|style|svg|template|textarea"
    r"|title|video|xmp)>)[A-Za-z]{1,40}"
)
_QUOTES = "\"'`\u2018-\u201f\u00ab\u00bb\u2039\u203a\u3008-\u3011\u3014-\u301b"
_BEFORE, _AFTER = rf"[(\[{_QUOTES}]*+", rf"[)\].,;:!?{_QUOTES}]*+"
_PIECE = re.compile(
    # Emphasis and headings stand around words and numbers alone, and so do signs of lists without a space.
    rf"(?-i:-(?=[^\W\da-z_]))?+(?:\(\d{{1,4}}\)(?=\d))?+[(\[{_QUOTES}\u00bf\u00a1*_~>#]*+(?:{_WORD}|{_NUMBER})[)\].,;:!?{_QUOTES}*_~%]*+"
    rf"|{_BEFORE}(?:{_URL}|{_PLACE}|(?:{_MAIL}|{_DOTTED})(?:['\u2019]s)?+|{_TAG}){_AFTER}"
    rf"|\(?+<(?:{_MAIL}|{_URL}|{_PLACEHOLDER})>[).,;:!?]*+"
    # Mentions and links of chats.
    rf"|<(?:[@#][UCW][A-Z0-9]{{6,12}}(?:\|[\w-]++)?+|!(?:here|channel|everyone)|{_URL}\|(?:{_WORD}|{_DOTTED}|#\d+))>{_AFTER}|<{_URL}\|{_WORD}|{_WORD}>{_AFTER}"
    rf"|```[a-z]{{0,12}}|[CF]#{_AFTER}|\.NET{_AFTER}|[^\W\d_]++(?:\*|/-)innen{_AFTER}|{_WORD}(?:\[\d{{1,3}}\])+{_AFTER}"
    # Without the space before it, and faces.
    rf"|(?:[,;:]-?|\.\.\.)[^\W\d_]++{_AFTER}|(?:\d{{1,2}}|[^\W\d_]{{1,3}})\./(?:\d{{1,2}}|[^\W\d_]{{1,3}})\."
    # The last word of a link of Markdown, and its address.
    rf"|{_BEFORE}(?:{_WORD}[!?]?|{_HOST})\]\({_URL}\){_AFTER}"
    r"|[^\w\s<>@{}\\`\[\]]++|[<\[\]]|>{1,9}|_{3,}|-{3,}[A-Za-z]++|[A-Za-z]++-{3,}|(?::[a-z0-9_+-]{1,40}:){1,9}|[A-Za-z]++-|<3|<=|>=|<-|->|=>|\[\]",
    re.IGNORECASE,
)
# Chinese and Japanese have no spaces around punctuation. A full stop beside ASCII can be the dot of a name.
_LETTER = "[^\x00-\x7f\\W]"
_AT_PLACE = re.compile(r"[/?#]")
_CHINESE = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff]")
# Not those of Markdown, which are not shown.
_SHOWN_QUOTES = _QUOTES.replace("`", "")
_BREAK = re.compile(
    rf"[\u3001\uff01\uff02\uff08\uff09\uff0c\uff1a\uff1b\uff1f\u300a-\u3011\u3014-\u301b]|(?<![A-Za-z0-9_-])\u3002|\u3002(?![A-Za-z0-9_-])"
    rf"|(?<={_LETTER})[,:;!?(){_SHOWN_QUOTES}]++|[,:;!?(){_SHOWN_QUOTES}]{{1,4}}+(?={_LETTER})"
)
# Signs that a mail address can have before its @.
_IN_MAIL = re.compile(r"[^\W_]['!?][^\s@,:;()]{1,64}@")
_SIGNS = re.compile(f"({_BREAK.pattern})")
# Longer pieces are not remembered.
REMEMBERED_CHARS = 64


def prose_of(text: str, form: str) -> tuple[str, ...]:
    """What to search for the addresses and codes in a text, first of all its form; empty if it is no prose.

    Punctuation that has no spaces around it, as in Chinese, is a space there. Signs that are not shown, such as those
    of emphasis, are in it, and left out in a further reading: an account can have its groups between them.

    Args:
        text: as it is written: some programs read it, and some its form.
        form: the plain text (`services.domain.words.plain`).
    """
    if _REORDERED.search(text) or _CONTROLS.search(form) or _SPELT.search(form) or _DEFINITION.search(form):
        return ()
    if "`" in form and "`" in _SPAN.sub(" ", _FENCE.sub(" ", form)):
        return ()
    if not text.isascii() and (
        _IN_MAIL.search(form)
        or any(map(_goes_on, form.split()))
        or any(map(_goes_on_as_written, text.split()))
    ):
        return ()
    spaced = form if form.isascii() else _BREAK.sub(" ", form)
    pieces = spaced.split()
    # A list of JSON can have a space after each sign.
    if pieces and pieces[0][0] == "[" and pieces[-1][-1] == "]":
        return ()
    if not all(map(_is_shown, set(pieces))):
        return ()
    found = [spaced] if form == text else [spaced, _BREAK.sub(" ", text)]
    if _MAY_HIDE.search(spaced):
        # The addresses of links are in the first readings.
        bare = [_URL_PIECE.sub(APART, one) for one in found]
        shown = [(one, marks.sub("", one)) for marks in (_LINK, _HTML) for one in bare]
        found += [other for one, other in shown if other != one]
    return tuple(dict.fromkeys(_MENTION.sub(rf"{APART}\2{APART}", one) for one in found))


def mentions_in(text: str) -> list[str]:
    """The people, groups and channels that a chat notifies by a text that is prose, each without its label."""
    return [f"<{found[1].upper()}>" for found in _MENTION.finditer(text)]


def _goes_on(piece: str) -> bool:
    """True if a URL has such punctuation in it, and what follows is no Chinese: programs do not end it there."""
    return any(not _CHINESE.match(other) for _, other in _after_urls(piece))


def _goes_on_as_written(piece: str) -> bool:
    """True if a URL has punctuation of ASCII in it: no program ends it there, whatever follows."""
    return any(sign.isascii() for sign, _ in _after_urls(piece))


def _after_urls(piece: str) -> Iterator[tuple[str, str]]:
    """The punctuation after each URL in a piece, and what follows it."""
    if not _AT_PLACE.search(piece):
        return
    parts = _SIGNS.split(piece)
    for one, sign, other in zip(parts[::2], parts[1::2], parts[2::2], strict=False):
        if other and "." in one and _AT_PLACE.search(one):
            yield sign, other


def _is_shown(piece: str) -> bool:
    return _is_short_shown(piece) if len(piece) <= REMEMBERED_CHARS else _fits(piece)


@lru_cache(maxsize=16_384)
def _is_short_shown(piece: str) -> bool:
    return _fits(piece)


def _fits(piece: str) -> bool:
    return _PIECE.fullmatch(piece) is not None and ("&" not in piece or not has_entity(piece))
