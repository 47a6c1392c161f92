"""Each refusal is declared once, with its status and what it means; the order of the codes is their precedence."""

import random

import pytest

from schemas.refusals import HTTP_STATUS, MEANINGS, PRECEDENCE, Refusal, first_in_precedence

# Of the protocol, in its order.
PROTOCOL = [
    "unauthenticated",
    "not_found",
    "not_authorised",
    "own_request",
    "forbidden_role",
    "too_large",
    "malformed",
    "invalid",
    "invalid_arguments",
    "unknown_option",
    "already_decided",
    "expired",
    "execution_closed",
    "not_open",
    "already_voted",
    "digest_mismatch",
    "id_reused",
    "idempotency_key_reused",
    "already_consumed",
    "not_released",
    "edit_denied",
    "quota",
    "unavailable",
    "duplicate",
]


def test_order_is_the_protocols() -> None:
    assert [str(code) for code in Refusal] == PROTOCOL
    assert sorted(Refusal, key=PRECEDENCE.__getitem__) == list(Refusal)


@pytest.mark.parametrize("code", Refusal)
def test_every_refusal_says_when_it_is_answered_and_what_to_do(code: Refusal) -> None:
    meaning = MEANINGS[code]
    assert meaning.status == HTTP_STATUS[code]
    for text in (meaning.when, meaning.remedy):
        assert text[0].isupper()
        assert text.endswith(".")


def test_first_in_precedence_is_the_earliest_of_any_order() -> None:
    codes = list(Refusal)
    random.shuffle(codes)
    assert first_in_precedence(codes) is Refusal.UNAUTHENTICATED
    assert first_in_precedence(codes[:5]) == min(codes[:5], key=PROTOCOL.index)
    assert first_in_precedence(()) is None
