r"""Text made safe to look at: everything hidden is shown, nothing is lost, and misleading parts get badges.

    \\          a backslash             \n \r \t    line break, carriage return, tab
    \u{202e}    a hidden or look-alike character     \s{40}      40 spaces, which can push text out of sight

As a backslash is always doubled, the original can be derived exactly from the shown text.
"""

import re

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

# More spaces than this, or more blank lines, push the following text out of sight.
SPACES_MAX = 32
BLANK_LINES_MAX = 4
HOST_MAX_CHARS = 260
# An unbroken run of letters and digits of this length is probably data, not words.
ENCODED_CHARS = 200

_NAMED = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_PLAIN = re.compile(r"[ -\[\]-~]*")
_HOST = rf"(?<=://)[^\x00- /?#\"'<>\x7f]{{1,{HOST_MAX_CHARS}}}"
_ODD_PIECE = rf"{PICTURED}|[\\{HIDDEN}]| {{{SPACES_MAX + 1},}}"
_WITHOUT_WORDS = re.compile(rf"(?P<host>{_HOST})|(?P<odd>{_ODD_PIECE})")
_WITH_WORDS = re.compile(rf"(?P<host>{_HOST})|(?P<word>[{LETTERS}]+)|(?P<odd>{_ODD_PIECE})")
_MISLEADING_HOST = re.compile(r"[^\x00-\x7f]|xn--|[@\\]")
# Not preceded by one of its own characters, so that a long run is searched only once.
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
# Text that is shown differently from its original.
_ODD = re.compile(rf"[\\{HIDDEN}{FOREIGN}]|{_MANY_SPACES}|://")
_FOREIGN_LETTER = re.compile(f"[{FOREIGN}]")


class Badges:
    """The badges of everything shown so far, and the version of the view, which determines what counts as hidden."""

    def __init__(self, version: int = VERSION) -> None:
        self.version = version
        self._found: set[Badge] = set()

    def add(self, badge: Badge | None) -> None:
        """Add a badge, if there is one."""
        if badge is not None:
            self._found.add(badge)

    def sorted(self) -> tuple[Badge, ...]:
        """The badges found, by name."""
        return tuple(sorted(self._found))


def is_plain(text: str) -> bool:
    """Returns True if a quick check finds that a text is shown unchanged and without a badge."""
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
        text: the original.
        badges: the text's badges are added to it.
    """
    if is_plain(text):
        return text
    _badge_text(text, badges)
    return _shown(text, badges)


def escaped_value(text: str, badges: Badges) -> str:
    """A text as one line without quotes: spaces at either end are shown by their number, and badged."""
    said = text.strip(" ")
    if said == text:
        return escaped(text, badges)
    badge_ends(text, badges)
    ahead = len(text) - len(text.lstrip(" "))
    behind = len(text) - len(said) - ahead
    return f"{_spaces(ahead)}{escaped(said, badges)}{_spaces(behind)}"


def badge_ends(text: str, badges: Badges) -> None:
    """Badge a text of one line that begins or ends with spaces: without quotes it looks like another text."""
    if text[:1] == " " or text[-1:] == " ":
        badges.add("padding")


def escaped_lines(text: str, badges: Badges) -> list[str]:
    """A text line by line, with nothing hidden in it; a carriage return is no line break.

    Spaces at the end of a line, and long runs of empty lines, are shown by their number.
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


def revealed(text: str) -> str:
    r"""A text with its hidden characters as `\u{202e}`, and nothing else changed: a backslash stays one.

    For composed sentences, not for quotations: the original cannot be derived from the result.
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
    """The escaping of one text."""

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
        """The scripts of which the text contains only letters that look Latin."""
        return frozenset(
            name
            for name, letters in SCRIPTS.items()
            if (found := letters.findall(self._text)) and LOOKALIKES.issuperset(found)
        )

    def _replaced(self, found: re.Match[str]) -> str:
        # Cached, because an attacker could repeat one piece thousands of times to keep a decider busy.
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
