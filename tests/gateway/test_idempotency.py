"""One idempotency key at both doors, or none: what a header cannot carry as it is, is no `ref` either."""

from __future__ import annotations

import re

import pytest

from gateway.idempotency import KEY_MAX_CHARS, KEY_PATTERN, idempotency_key
from gateway.problems import Problem
from gateway.sockets.verbs import ref_of

TAKEN = ("k", "6b1f", 'a "b", c', "~!", "x" * KEY_MAX_CHARS)
REFUSED = (
    "",
    " k",
    "k ",
    "k\n",
    "a\tb",
    "zahlung-märz-123",
    "日本",
    "“x”",
    "k\x7f",
    "x" * (KEY_MAX_CHARS + 1),
)


@pytest.mark.parametrize("text", TAKEN)
def test_key_of_printable_ascii_is_taken_as_it_is(text: str) -> None:
    assert idempotency_key(text, "ref") == ref_of({"ref": text}) == text
    assert re.search(KEY_PATTERN, text)


@pytest.mark.parametrize("text", [*REFUSED, 7, True, ["k"]])
def test_any_other_key_is_refused_by_its_name(text: object) -> None:
    with pytest.raises(Problem, match="ref must be 1 to 256 printable ASCII characters"):
        ref_of({"ref": text})


def test_frame_without_one_has_none() -> None:
    assert ref_of({}) is None
