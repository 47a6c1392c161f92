"""Which body a command id stands for."""

from schemas.events.executions import CommandRefused, ExecutionPaused
from schemas.message import Message
from schemas.record import Event, EventMeta
from schemas.refusals import Refusal
from services.runtime.answered import Answered

REFUSED = CommandRefused(
    code=Refusal.IDEMPOTENCY_KEY_REUSED, command="PauseExecution", subject_id="", detail="", by="olga"
)
PAUSED = ExecutionPaused(by="olga", reason="")


def event(body: Message, command_id: str, digest: str) -> Event:
    return Event(body, EventMeta("e", 0, 0, 1, command_id, digest, "acme"), b"acme/main/x", 0, 1)


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
