"""Where the values of a run come from: what untrusted tools returned, and what people said.

A tool is untrusted if it is open-world: others decide what it returns. Both are bounded: with too many words of
untrusted outputs every value counts as coming from there, and what people said long ago is not known to be theirs.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from schemas.canonical import MalformedJson, canonical, parse_strict
from services.domain.words import TooManyWords, has_words, listed_words, with_words, words_of

SOURCES_MAX = 8
SAID_MAX_CHARS = 8_192
# JSON inside of a text, and other languages, write a line break as a backslash and a letter.
_ESCAPES = re.compile(r"\\(?:u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|.)")


class WordsOfRun(Struct, frozen=True):
    """The words of one run.

    `untrusted` are those of untrusted outputs, packed (`services.domain.words`); `sources` are the newest calls that
    returned them, and `is_full` is true if there were more words than are kept. `reading` are the calls of untrusted
    tools that run now, or whose outcome is unknown: what they return is not known yet, but the agent may know it.
    `said` are the words of people's messages and answers, in their order.
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
        suspects = [text for text in texts if self._may_have_read(text)]
        if not suspects:
            return frozenset()
        said = f" {self.said} {_spaced(request)} "
        return frozenset(text for text in suspects if not _is_said(text, said))

    def _may_have_read(self, text: str) -> bool:
        if self.is_full or self.reading:
            return True
        words = words_of(text)
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
                found, untrusted=b"" if self.is_full else with_words(self.untrusted, _text_of(output))
            )
        except TooManyWords:
            return replace(found, untrusted=b"", is_full=True)

    def with_said(self, text: str) -> "WordsOfRun":
        """The words with those of what a person said; the oldest of many are dropped."""
        return replace(self, said=f"{self.said} {_spaced(text)}"[-SAID_MAX_CHARS:])

    @staticmethod
    def _without(calls: tuple[str, ...], call_id: str) -> tuple[str, ...]:
        return tuple(one for one in calls if one != call_id)


NO_WORDS = WordsOfRun()


def _is_said(text: str, said: str) -> bool:
    words = _spaced(text)
    return bool(words) and f" {words} " in said


def _spaced(text: str) -> str:
    try:
        return " ".join(listed_words(text))
    except TooManyWords:
        # As of any other text of people: what is too much is not known to be theirs.
        return ""


def _text_of(output: str) -> str:
    """All texts in an output, also with what looks like an escape taken for a space."""
    try:
        whole = "\n".join(texts_in(parse_strict(output)))
    except MalformedJson:
        whole = output
    return f"{whole}\n{_ESCAPES.sub(' ', whole)}" if "\\" in whole else whole


def texts_in(value: Any) -> Iterator[str]:
    """The texts, keys and numbers in a JSON value."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, Mapping):
            waiting += [*one.keys(), *one.values()]
        elif isinstance(one, list | tuple):
            waiting += one
        elif one is not None and not isinstance(one, bool):
            yield canonical(one)
