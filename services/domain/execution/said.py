"""What a person writes in a decision: it comes from a person, even if an untrusted tool returned the same."""

from collections.abc import Iterable
from itertools import groupby

from msgspec.structs import replace

from schemas.events import holds as h
from services.domain.arguments import parsed
from services.domain.state import Execution
from services.domain.untrusted import texts_in
from services.domain.words import TooManyWords, plain, words_in


def with_said(state: Execution, event: h.DecisionRecorded) -> Execution:
    """The run after a person's answer or edit, with what the person wrote."""
    written: list[str] = []
    if event.decision == "respond" and event.value is not None:
        written = list(texts_in(parsed(event.value)))
    elif event.edited_arguments is not None and (call := state.calls.get(event.call_id)) is not None:
        before = texts_in(parsed(call.arguments)) if call.arguments else ()
        written = _changed(before, texts_in(parsed(event.edited_arguments)))
    for text in written:
        state = replace(state, words=state.words.with_said(text))
    return state


def _changed(before: Iterable[str], after: Iterable[str]) -> list[str]:
    """What was brought into a call by an edit: the words that are in no text of it before.

    An attacker may have written the others; another sign beside a word does not make it a person's.
    """
    known: set[str] = set()
    for text in before:
        known |= _words_of(text)
    return [
        " ".join(words)
        for text in after
        for is_new, words in groupby(text.split(), lambda word: not _words_of(word) <= known)
        if is_new
    ]


def _words_of(text: str) -> set[str]:
    try:
        return words_in(plain(text))
    except TooManyWords:
        # Its history is not looked at, either.
        return set()
