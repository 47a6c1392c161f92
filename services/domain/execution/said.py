"""What a person writes in a decision: it comes from a person, even if an untrusted tool returned the same."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

from msgspec.structs import replace

from schemas.events import holds as h
from services.domain.arguments import parsed
from services.domain.state import Execution
from services.domain.untrusted import texts_in
from services.domain.words import (
    APART,
    CONTROLS,
    TEXT_MAX_BYTES,
    TooManyWords,
    bytes_of,
    plain,
    plain_texts,
    words_in,
)

# Signs between the values of a list, of JSON, or around a mail address.
_BETWEEN = re.compile("[,;|<>()\\[\\]{}\"'`:\u2018-\u201f\u3001-\u3011\uff08\uff09\uff0c\uff1a\uff1b]+")


def with_said(state: Execution, event: h.DecisionRecorded) -> Execution:
    """The run after a person's answer or edit, with what the person wrote."""
    # The newest are looked at first, and no more than are kept: there may be tens of thousands.
    if event.decision == "respond" and event.value is not None:
        written = reversed(list(texts_in(parsed(event.value))))
        return replace(state, words=state.words.with_texts_said(written))
    if event.edited_arguments is not None and (call := state.calls.get(event.call_id)) is not None:
        before = texts_in(parsed(call.arguments)) if call.arguments else ()
        changed = _changed(before, list(texts_in(parsed(event.edited_arguments))))
        return replace(state, words=state.words.with_texts_said(changed))
    return state


def _changed(before: Iterable[str], after: Sequence[str]) -> Iterator[str]:
    """What was brought into a call by an edit, the last of it first: the words that are in no text of it before.

    An attacker may have written the others; another sign beside a word does not make it a person's.
    """
    before = list(before)
    kept = frozenset(before)
    # The words of those are not known, so that all of a long text would be new.
    has_unread = any(bytes_of(text) > TEXT_MAX_BYTES for text in before)
    is_new = _NewWords(before).__getitem__
    for text in reversed(after):
        if text in kept or (has_unread and bytes_of(text) > TEXT_MAX_BYTES):
            continue
        for are_new, words in groupby(reversed(text.split()), is_new):
            if are_new:
                yield " ".join(_new_parts(word, is_new) for word in reversed(list(words)))


def _new_parts(word: str, is_new: Callable[[str], bool]) -> str:
    """What of a word with signs in it is new: `eve@evil.com` stood beside another name before, too."""
    parts = [part for part in _BETWEEN.split(word) if _words_of(part)]
    new = [part for part in parts if is_new(part)]
    return word if len(new) == len(parts) else " ".join(new)


class _NewWords(dict[str, bool]):
    """Whether a word of an edited text has a word that was not known; each is looked at once."""

    def __init__(self, before: Iterable[str]) -> None:
        super().__init__()
        self._known: set[str] = set()
        for text in _together(before):
            self._known |= words_in(plain_texts(text))
            # Most are left as they were.
            self.update(dict.fromkeys(text.replace(APART, " ").split(), False))

    def __missing__(self, word: str) -> bool:
        self[word] = found = not _words_of(word) <= self._known
        return found


def _together(texts: Iterable[str]) -> Iterator[str]:
    """Some texts, joined as far as they are looked at together; without those that are too long."""
    joined: list[str] = []
    room = TEXT_MAX_BYTES
    for text in texts:
        text = CONTROLS.sub("", text)
        size = bytes_of(text) + 1
        if size > TEXT_MAX_BYTES:
            # Its history is not looked at, either.
            continue
        if size > room:
            yield APART.join(joined)
            joined, room = [], TEXT_MAX_BYTES
        joined.append(text)
        room -= size
    yield APART.join(joined)


def _words_of(word: str) -> set[str]:
    try:
        return words_in(plain(word))
    except TooManyWords:
        return set()
