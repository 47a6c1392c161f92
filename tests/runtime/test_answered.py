"""Which body a command id stands for."""

from schemas.events.executions import CommandRefused, ExecutionPaused
from schemas.message import Message
from schemas.record import Event, EventMeta
from schemas.refusals import Refusal
from services.runtime.answered import Answered, NewestAnswered

REFUSED = CommandRefused(
    code=Refusal.IDEMPOTENCY_KEY_REUSED, command="PauseExecution", subject_id="", detail="", by="olga"
)
PAUSED = ExecutionPaused(by="olga", reason="")


NOT_FOUND = CommandRefused(
    code=Refusal.NOT_FOUND, command="PauseExecution", subject_id="", detail="", by="bot"
)


def event(body: Message, command_id: str, digest: str, key: bytes = b"acme/main/x") -> Event:
    return Event(body, EventMeta("e", 0, 0, 1, command_id, digest, "acme"), key, 0, 1)


def test_seen_same_body_is_a_repeat_and_another_is_reused() -> None:
    answered = Answered()
    assert answered.seen("c", "one") == "new"
    answered.note(event(PAUSED, "c", "one"))

    assert answered.seen("c", "one") == "repeated"
    assert answered.seen("c", "two") == "reused"
    assert answered.seen("other", "two") == "new"


def test_seen_refused_body_is_refused_once_and_the_first_body_stays_the_first() -> None:
    answered = Answered()
    for body, digest in ((PAUSED, "one"), (REFUSED, "two")):
        answered.note(event(body, "c", digest))

    assert answered.seen("c", "two") == "repeated"
    assert answered.seen("c", "three") == "reused"
    assert answered.seen("c", "one") == "repeated"


def test_seen_event_without_a_digest_compares_with_nothing() -> None:
    answered = Answered()
    answered.note(event(PAUSED, "c", ""))
    assert answered.seen("c", "any") == "repeated"


def test_trim_forgets_the_oldest() -> None:
    answered = Answered()
    for number in range(4):
        answered.note(event(PAUSED, f"c{number}", "one"))
        answered.note(event(REFUSED, f"c{number}", "two"))
    answered.trim(2)
    assert list(answered.digests) == ["c2", "c3"]
    assert list(answered.reused) == [("c2", "two"), ("c3", "two")]


def test_newest_answered_keeps_nothing_of_what_it_forgot() -> None:
    newest = NewestAnswered()
    for number in range(100):
        newest.note(event(NOT_FOUND, "c", "one", f"acme/main/x{number}".encode()), 3)
        newest.note(event(REFUSED, "c", f"{number}"), 3)
    newest.note_unread(b"acme/main/y", EventMeta("e", 0, 0, 1, "unread", "one", "acme"), 3)

    assert newest.seen(b"acme/main/y", "unread", "one") == "repeated"
    kept = [b"acme/main/x", *(f"acme/main/x{number}".encode() for number in (97, 98, 99)), b"acme/main/y"]
    assert sorted(newest.by_key) == kept
    assert list(newest.by_key[b"acme/main/x"].reused) == [("c", "97"), ("c", "98"), ("c", "99")]
    assert [len(names) for names in newest.askers.values()] == [3, 3, 1]


def test_newest_answered_hands_over_what_is_known_of_a_key_and_forgets_it_no_more() -> None:
    newest = NewestAnswered()
    newest.note(event(NOT_FOUND, "c", "one"), 2)
    taken = newest.take(b"acme/main/x")
    for number in range(9):
        newest.note(event(NOT_FOUND, f"c{number}", "one"), 2)

    assert taken.seen("c", "one") == "repeated"
    assert newest.seen(b"acme/main/x", "c", "one") == "new"
    assert newest.take(b"acme/main/y").digests == {}
