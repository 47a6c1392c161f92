"""Where the values of a run come from: what untrusted tools returned, and what people said.

A tool is untrusted if it is open-world: others decide what it returns. Both are bounded: with too many words of
untrusted outputs every value counts as coming from there, and what people said long ago is not known to be theirs.
"""

import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from schemas.canonical import MalformedJson, canonical, parse_strict
from services.domain.codes import codes_in, parts_in
from services.domain.escapes import in_utf8, spaced, unescaped, without_spelt
from services.domain.markup import shown
from services.domain.words import (
    APART,
    CONTROLS,
    TEXT_MAX_BYTES,
    WORDS_MAX,
    TooManyWords,
    bytes_of,
    digests_of,
    has_words,
    plain,
    plain_texts,
    with_words,
    words_in,
    words_of,
)

logger = logging.getLogger(__name__)
SOURCES_MAX = 8
SAID_MAX_CHARS = 8_192
# Of one text of a person.
CODES_MAX = 100
# Of one output: what its codes are compared by, also what several of them are.
CODES_READ_MAX = 8 * WORDS_MAX
# What makes another value of one that it stands beside, before it and after it: `ann@example.com` is not said by
# `joann@example.com` or `ann@example.com.evil.org`, nor a path or URL by a longer one. A host is said by its URL.
_GOES_ON_BEFORE = re.compile(r"[\w@.+%~#\\-]$|(?<!/)/$|(?<!:)//$|\d[,:]$")
_GOES_ON_AFTER = re.compile(r"^(?:[\w@%]|[-+.,:/]\w)")
_URL_GOES_ON = re.compile(r"^[/?#&=:][^\s]")
_SEPARATORS = re.compile("[ \n]")
# A value that stands so often in what people wrote, and never by itself, is not looked for any further.
TRIES_MAX = 20
# JSON in a text of JSON in the text of an error has three.
LEVELS_MAX = 3
# Of all readings of one output together, in UTF-8 and in plain form.
READ_MAX_BYTES = 3 * TEXT_MAX_BYTES


class WordsOfRun(Struct, frozen=True):
    """The words of one run.

    `untrusted` are those of untrusted outputs, packed (`services.domain.words`); `sources` are the newest calls that
    returned them, and `is_full` is true if there were more words than are kept. `reading` are the calls of untrusted
    tools that run now, or whose outcome is unknown: what they return is not known yet, but the agent may know it.
    `said` is what people wrote in messages and answers, one line each, with the codes in it.
    """

    untrusted: bytes = b""
    sources: tuple[str, ...] = ()
    is_full: bool = False
    reading: tuple[str, ...] = ()
    said: str = ""

    def tainted(self, texts: Iterable[str], request: str) -> frozenset[str]:
        """The values that came out of an untrusted output, and that no person said as they are.

        Args:
            texts: the values; each has few words.
            request: what the run was asked for.
        """
        if not self.sources and not self.reading:
            return frozenset()
        suspects = {text for text in texts if self._may_have_read(text)}
        if not suspects:
            return frozenset()
        said = f"{self.said}\n{_line_of(request)}"
        return frozenset(text for text in suspects if not _is_said(text, said))

    def _may_have_read(self, text: str) -> bool:
        if self.is_full or self.reading:
            return True
        try:
            words = words_of(text)
        except TooManyWords:
            return True
        return bool(words) and has_words(self.untrusted, words)

    def with_reading(self, call_id: str) -> "WordsOfRun":
        """The words while a call of an untrusted tool runs."""
        return replace(self, reading=(*self._without(self.reading, call_id), call_id))

    def with_output(self, call_id: str, output: str) -> "WordsOfRun":
        """The words with those of what an untrusted tool returned: JSON, or the text of an error."""
        sources = (*self._without(self.sources, call_id), call_id)[-SOURCES_MAX:]
        found = replace(self, sources=sources, reading=self._without(self.reading, call_id))
        try:
            return replace(
                found, untrusted=b"" if self.is_full else with_words(self.untrusted, _words_in(output))
            )
        except Exception as error:
            if not isinstance(error, TooManyWords):
                # Others decide what is in an output, and the run must go on.
                logger.exception("an output was not looked at")
            return replace(found, untrusted=b"", is_full=True)

    def with_said(self, text: str) -> "WordsOfRun":
        """The words with what a person said; the oldest of much is dropped."""
        return self.with_texts_said((text,))

    def with_texts_said(self, newest_first: Iterable[str]) -> "WordsOfRun":
        """The words with several texts of a person, of which no value is said together; the oldest are dropped.

        Args:
            newest_first: the texts; no more of them are looked at than are kept.
        """
        lines, room = [], SAID_MAX_CHARS
        for text in newest_first:
            lines.append(_line_of(text))
            room -= len(lines[-1]) + 1
            if room < 0:
                break
        whole = "\n".join([self.said, *reversed(lines)])
        if len(whole) > SAID_MAX_CHARS:
            # What is cut begins after a space or a line break: the rest of a value is another one.
            _, *rest = _SEPARATORS.split(whole[-SAID_MAX_CHARS:], 1)
            whole = rest[0] if rest else ""
        return replace(self, said=whole)

    @staticmethod
    def _without(calls: tuple[str, ...], call_id: str) -> tuple[str, ...]:
        return tuple(one for one in calls if one != call_id)


class UnreadWords(WordsOfRun, frozen=True):
    """The words of a run for who takes the history of each call's values from its verdict, as a backtest does."""

    def with_reading(self, call_id: str) -> "UnreadWords":
        """The same."""
        return self

    def with_output(self, call_id: str, output: str) -> "UnreadWords":
        """The same."""
        return self

    def with_texts_said(self, newest_first: Iterable[str]) -> "UnreadWords":
        """The same."""
        return self


NO_WORDS = WordsOfRun()
UNREAD = UnreadWords()


def _is_said(text: str, said: str) -> bool:
    """True if a value stands in what people wrote as it is, and not as a part of another one."""
    try:
        value = _normal(text)
    except TooManyWords:
        return False
    at, tries = said.find(value) if value else -1, 0
    while at >= 0 and tries < TRIES_MAX:
        before, after = said[max(0, at - 3) : at], said[at + len(value) : at + len(value) + 2]
        in_url = before.endswith("://")
        goes_on = _GOES_ON_BEFORE.search(before) or (
            (_URL_GOES_ON.match(after) and "/" in value)
            or (_GOES_ON_AFTER.match(after) and not (in_url and after.startswith(("/", ":"))))
        )
        if not goes_on:
            return True
        at, tries = said.find(value, at + 1), tries + 1
    return False


@lru_cache(maxsize=256)
def _line_of(text: str) -> str:
    """One line of what was said: the text, and the codes in it; nothing of a text that is too long."""
    try:
        # Dotted names are written as they are.
        codes = (part for code in codes_in(text) for part in (code.text, *code.parts) if "." not in part)
        return " \x1f ".join([_normal(text), *(code.casefold() for code in islice(codes, CODES_MAX))])
    except TooManyWords:
        return ""


def _normal(text: str) -> str:
    """A text without regard to its case, form and spaces.

    Raises:
        TooManyWords: it is too long.
    """
    return " ".join(plain(text).casefold().split())


def _words_in(output: str) -> frozenset[bytes]:
    """The words of an output, and of what the codes in it are compared by.

    Raises:
        TooManyWords: it is too long, or has too many words.
    """
    texts = _texts_of(output)
    whole = APART.join(texts)
    room, left = TEXT_MAX_BYTES - bytes_of(whole), READ_MAX_BYTES
    words: set[str] = set()
    codes: dict[str, None] = {}
    seen: set[str] = set()
    for reading in _readings(texts, whole):
        if reading in seen:
            continue
        seen.add(reading)
        if bytes_of(reading) > left:
            raise TooManyWords
        text = plain_texts(reading)
        left -= bytes_of(text)
        words |= words_in(text)
        if len(words) > WORDS_MAX:
            raise TooManyWords
        codes.update(_codes_of(without_spelt(text), room))
    return digests_of(words | words_in(plain("\n".join(codes))))


def _readings(texts: Sequence[str], whole: str) -> Iterator[str]:
    """What the texts of an output may say: as they are, as they are shown, and with what their escapes stand for.

    Of a text without escapes nothing is in the last ones.
    """
    yield whole
    yield shown(whole)
    escaped = [text for text in texts if "\\" in text]
    if not escaped:
        return
    # `n\u00e9Eve`, of which another reader leaves out what it does not know.
    yield APART.join(map(spaced, escaped))
    ended: list[str] = []
    for _ in range(LEVELS_MAX):
        if (in_bytes := list(map(in_utf8, escaped))) != escaped:
            yield APART.join(map(unescaped, in_bytes))
        found = list(map(unescaped, escaped))
        yield APART.join(found)
        ended += [text for text in found if "\\" not in text]
        escaped = [text for text in found if "\\" in text]
    yield shown(APART.join([*ended, *escaped]))


def _codes_of(text: str, room: int) -> dict[str, None]:
    """What the codes in a plain text are compared by, each once.

    Raises:
        TooManyWords: they take more bytes than there is room for, or there are too many words with digits.
    """
    found: dict[str, None] = {}
    for parts in parts_in(text, CODES_READ_MAX):
        new = [part for part in parts if part not in found]
        found.update(dict.fromkeys(new))
        room -= len(new) + sum(map(bytes_of, new))
        if room < 0:
            raise TooManyWords
    return found


def _texts_of(output: str) -> list[str]:
    """All texts in an output.

    Raises:
        TooManyWords: they are too long.
    """
    try:
        value = parse_strict(output)
    except MalformedJson:
        return [CONTROLS.sub("", output)]
    return [CONTROLS.sub("", text) for text in _within(texts_in(value), TEXT_MAX_BYTES)]


def _within(texts: Iterable[str], most: int) -> Iterator[str]:
    """Texts, as long as they have no more characters than these, with one between each two of them.

    Raises:
        TooManyWords: they have more.
    """
    left = most + 1
    for text in texts:
        left -= len(text) + 1
        if left < 0:
            raise TooManyWords
        yield text


def texts_in(value: Any) -> Iterator[str]:
    """The texts, keys and numbers in a JSON value, as `parse_strict` returns it."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        kind = type(one)
        if kind is str:
            yield one
        elif kind is dict:
            waiting += one
            waiting += one.values()
        elif kind is list:
            waiting += one
        elif kind is int:
            yield repr(one)
        elif kind is float:
            text = repr(one)
            yield canonical(one) if "e" in text or text.endswith(".0") else text
