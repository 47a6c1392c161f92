"""Messages of a socket that cannot be taken: each is answered by its `ref` wherever that can be told."""

from __future__ import annotations

import pytest

from gateway.sockets.verbs import UnreadFrame, frame_of
from schemas.refusals import Refusal

DEEP = "[" * 64 + "]" * 64


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (DEEP, Refusal.TOO_LARGE),
        ("9007199254740993", Refusal.MALFORMED),
        ("1e21", Refusal.MALFORMED),
        ('{"a":1,"a":2}', Refusal.MALFORMED),
        ('{"ref":1,"ref":2}', Refusal.MALFORMED),
        ("[" * 900 + "]" * 900, Refusal.TOO_LARGE),
        ("NaN", Refusal.MALFORMED),
        ("1e400", Refusal.MALFORMED),
        (r'"\ud800"', Refusal.MALFORMED),
        ("1" * 5_000, Refusal.MALFORMED),
    ],
    ids=[
        "deep",
        "large number",
        "large exponent",
        "double key",
        "double ref within",
        "very deep",
        "no number",
        "over the largest number",
        "half a character",
        "long number",
    ],
)
def test_message_whose_body_is_refused_names_its_ref(body: str, code: Refusal) -> None:
    with pytest.raises(UnreadFrame) as unread:
        frame_of(b'{"type":"propose","ref":"r1","body":%b}' % body.encode())

    assert (unread.value.ref, unread.value.code) == ("r1", code)


@pytest.mark.parametrize(
    "raw",
    [
        b'{"type":"ping","ref":"r1"',
        b"[1]",
        b'[{"ref":"r1"}]',
        b'{"ref":7,"body":%b}' % DEEP.encode(),
        b'{"ref":"\xff"}',
        b"NaN",
        b'{"ref":"r1","type":"ping","ref":"r2"}',
        b'{"ref":"r1","body":{"ref":"x"},"\\u0072ef":"r1"}',
    ],
)
def test_message_without_a_ref_that_can_be_told_names_none(raw: bytes) -> None:
    with pytest.raises(UnreadFrame) as unread:
        frame_of(raw)

    assert unread.value.ref is None
