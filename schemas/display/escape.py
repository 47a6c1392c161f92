r"""Text made fit to be looked at: everything hidden is shown, nothing of it is lost, and what misleads is badged.

    \\          a backslash             \n \r \t    line break, carriage return, tab
    \u{202e}    a hidden or look-alike character     \s{40}      so many spaces, behind which something may hide

As a backslash is always doubled, what is shown tells exactly what was there.
"""

import re
from collections.abc import Iterable

from schemas.display.characters import (
    FOREIGN,
    HAS_FOREIGN,
    HAS_RIGHT_TO_LEFT,
    HIDDEN,
    LATIN,
    LETTERS,
    LOOKALIKES,
    PICTURED,
    SCRIPTS,
    STYLED,
    Badge,
    badge_of,
    code_of,
    is_hidden,
)
from schemas.display.hidden_since import is_hidden_since
from schemas.display.marks import uncovered
from schemas.display.versions import HIDES_MORE_FROM, SHOWS_COVERING_FROM, VERSION

# More spaces than this, or more blank lines, push what follows out of sight.
SPACES_MAX = 32
BLANK_LINES_MAX = 4
HOST_MAX_CHARS = 260
# Unbroken text of letters and digits this long is rather data than words.
ENCODED_CHARS = 200

_NAMED = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_PLAIN = re.compile(r"[ -\[\]-~]*")
_HOST = rf"(?<=://)[^\x00- /?#\"'<>\x7f]{{1,{HOST_MAX_CHARS}}}"
_ODD_PIECE = rf"{PICTURED}|[\\{HIDDEN}]| {{{SPACES_MAX + 1},}}"
_WITHOUT_WORDS = re.compile(rf"(?P<host>{_HOST})|(?P<odd>{_ODD_PIECE})")
_WITH_WORDS = re.compile(rf"(?P<host>{_HOST})|(?P<word>[{LETTERS}]+)|(?P<odd>{_ODD_PIECE})")
_MISLEADING_HOST = re.compile(r"[^\x00-\x7f]|xn--|[@\\]")
# Behind none of its own kind, so that a long run is looked through once.
_ENCODED = rf"(?<![A-Za-z0-9+/=_-])[A-Za-z0-9+/=_-]{{{ENCODED_CHARS}}}"
_MANY_SPACES = rf"(?<! ) {{{SPACES_MAX + 1}}}"
_TEXTS: tuple[tuple[re.Pattern[str], Badge], ...] = (
    (re.compile(r"<[A-Za-z/!?]|\]\(|(?i:javascript:)"), "markup"),
    (re.compile(rf"(?i:data:[a-z0-9.+-]{{1,64}}/[a-z0-9.+-]{{1,64}}[;,])|{_ENCODED}"), "encoded"),
    (re.compile(r"(?i:xn--)"), "lookalike_host"),
    (re.compile(rf"{_MANY_SPACES}|(?:\n *){{{BLANK_LINES_MAX + 2}}}"), "padding"),
)
_TOO_MANY_SPACES = " " * (SPACES_MAX + 1)
_SCHEME = re.compile(r"(?i:data|javascript):")
_LONG_RUN = re.compile(_ENCODED)
# What is shown otherwise than it came.
_ODD = re.compile(rf"[\\{HIDDEN}{FOREIGN}]|{_MANY_SPACES}|://")
_FOREIGN_LETTER = re.compile(f"[{FOREIGN}]")


class Badges:
    """The badges of everything that was shown so far, and the version of the view that says what is hidden."""

    def __init__(self, version: int = VERSION) -> None:
        self.version = version
        self._found: set[Badge] = set()

    def add(self, badge: Badge | None) -> None:
        """Note one."""
        if badge is not None:
            self._found.add(badge)

    def sorted(self) -> tuple[Badge, ...]:
        """Those that were found, by name."""
        return tuple(sorted(self._found))


def is_plain(text: str) -> bool:
    """Whether a text is shown as it is, without a badge, at the first look."""
    if _PLAIN.fullmatch(text) is None:
        return False
    if "<" in text or "://" in text or "](" in text or _TOO_MANY_SPACES in text:
        return False
    if ":" in text and _SCHEME.search(text):
        return False
    return "--" not in text and (len(text) < ENCODED_CHARS or _LONG_RUN.search(text) is None)


def escaped(text: str, badges: Badges) -> str:
    """A text as one line, with nothing hidden in it.

    Args:
        text: what came.
        badges: what it is badged for is added.
    """
    if is_plain(text):
        return text
    _badge_text(text, badges)
    return _shown(text, badges)


def escaped_value(text: str, badges: Badges) -> str:
    """A text as one line that stands without quotes: spaces at either end show their number, and are badged."""
    said = text.strip(" ")
    if said == text:
        return escaped(text, badges)
    badge_ends(text, badges)
    ahead = len(text) - len(text.lstrip(" "))
    behind = len(text) - len(said) - ahead
    return f"{_spaces(ahead)}{escaped(said, badges)}{_spaces(behind)}"


def badge_ends(text: str, badges: Badges) -> None:
    """Badge a text of one line that begins or ends with spaces: without quotes it looks like another."""
    if text[:1] == " " or text[-1:] == " ":
        badges.add("padding")


def escaped_lines(text: str, badges: Badges) -> list[str]:
    """A text line by line, with nothing hidden in it; a carriage return is no line break.

    Spaces at the end of a line show their number, and a long run of empty lines theirs.
    """
    _badge_text(text, badges)
    lines: list[str] = []
    blank = 0
    for raw in text.split("\n"):
        if not raw:
            blank += 1
            continue
        lines += _blank_lines(blank)
        blank = 0
        said = raw.rstrip(" ")
        lines.append(_shown(said, badges) + _spaces(len(raw) - len(said)))
    return lines + _blank_lines(blank)


def badges_of(texts: Iterable[str]) -> tuple[Badge, ...]:
    """The badges of some texts."""
    badges = Badges()
    for text in texts:
        escaped(text, badges)
    return badges.sorted()


def revealed(text: str) -> str:
    r"""A text with its hidden characters as `\u{202e}`, and nothing else changed: a backslash stays one.

    For a sentence that is made, not quoted: what it says is not told from what it was made of.
    """
    if text.isascii() and text.isprintable():
        return text
    return _uncovered("".join(code_of(char) if is_hidden(char) else char for char in text), Badges())


def _shown(text: str, badges: Badges) -> str:
    shown = _Escaping(text, badges).shown() if _ODD.search(text) else text
    if shown.isascii():
        return shown
    if badges.version >= HIDES_MORE_FROM:
        shown = _without_hidden_since(shown, badges)
    return _uncovered(shown, badges) if badges.version >= SHOWS_COVERING_FROM else shown


def _without_hidden_since(shown: str, badges: Badges) -> str:
    codes = {char: code_of(char) for char in set(shown) if is_hidden_since(char)}
    for char in codes:
        badges.add(badge_of(char))
    return shown.translate({ord(char): code for char, code in codes.items()}) if codes else shown


def _uncovered(shown: str, badges: Badges) -> str:
    found = uncovered(shown)
    if found is None:
        return shown
    badges.add("covering")
    return found


def _spaces(count: int) -> str:
    return f"\\s{{{count}}}" if count else ""


def _blank_lines(count: int) -> list[str]:
    return [f"\\n{{{count}}}"] if count > BLANK_LINES_MAX else [""] * count


def _badge_text(text: str, badges: Badges) -> None:
    for pattern, badge in _TEXTS:
        if pattern.search(text):
            badges.add(badge)
    if not text.isascii() and HAS_RIGHT_TO_LEFT.search(text):
        badges.add("right_to_left")


class _Escaping:
    """One text on its way to being shown."""

    def __init__(self, text: str, badges: Badges) -> None:
        self._text = text
        self._badges = badges
        self._seen: dict[tuple[str | None, str], str] = {}
        self._has_foreign = not text.isascii() and HAS_FOREIGN.search(text) is not None
        self._disguised = self._disguised_scripts() if self._has_foreign else frozenset()

    def shown(self) -> str:
        pattern = _WITH_WORDS if self._has_foreign else _WITHOUT_WORDS
        return pattern.sub(self._replaced, self._text)

    def _disguised_scripts(self) -> frozenset[str]:
        """The scripts of which the text has nothing but letters that look Latin."""
        return frozenset(
            name
            for name, letters in SCRIPTS.items()
            if (found := letters.findall(self._text)) and LOOKALIKES.issuperset(found)
        )

    def _replaced(self, found: re.Match[str]) -> str:
        # Whoever wants to keep a decider busy repeats one piece thousands of times.
        piece = found.lastgroup, found.group()
        shown = self._seen.get(piece)
        if shown is None:
            shown = self._seen[piece] = self._of_kind(*piece)
        return shown

    def _of_kind(self, kind: str | None, piece: str) -> str:
        match kind:
            case "host":
                return self._host(piece)
            case "word":
                return self._word(piece)
        if len(piece) == 2:  # a picture with its selector
            return piece
        return f"\\s{{{len(piece)}}}" if piece[0] == " " else self._char(piece)

    def _char(self, char: str) -> str:
        if char in _NAMED:
            if char == "\r":
                self._badges.add("control")
            return _NAMED[char]
        self._badges.add(badge_of(char))
        return code_of(char)

    def _host(self, host: str) -> str:
        if _MISLEADING_HOST.search(host):
            self._badges.add("lookalike_host")
        return "".join(
            self._char(char) if char == "\\" or is_hidden(char) or not char.isascii() else char
            for char in host
        )

    def _word(self, word: str) -> str:
        if word.isascii() or not HAS_FOREIGN.search(word):
            return word
        scripts = [name for name, letters in SCRIPTS.items() if letters.search(word)]
        mixed = len(scripts) + (LATIN.search(word) is not None) > 1
        if not mixed and not self._disguised.intersection(scripts) and not STYLED.search(word):
            return word
        self._badges.add("homoglyph")
        return _FOREIGN_LETTER.sub(lambda found: code_of(found.group()), word)
