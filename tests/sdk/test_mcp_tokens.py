"""How many invalid tokens an MCP server passes on to the gateway."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from placet.errors import QuotaExceeded, Unauthenticated
from placet.mcp_tokens import BURST, FAILURES_PER_S, KNOWN_MAX, CallersTokens


def fail(tokens: CallersTokens, token: str) -> None:
    """A call with a token that the gateway does not accept."""
    with pytest.raises(Unauthenticated), tokens.passing(token):
        raise Unauthenticated("unauthenticated", 401, "no")


def test_valid_tokens_are_passed_on_while_too_many_others_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 1000.0
    monkeypatch.setattr("placet.mcp_tokens.time.monotonic", lambda: now_s)
    tokens = CallersTokens()
    with tokens.passing("known"):
        pass
    for number in range(BURST + 1):
        fail(tokens, f"guess {number}")
    with pytest.raises(QuotaExceeded) as refused, tokens.passing("new"):
        raise AssertionError
    assert refused.value.fields["retry_after"] == 1
    with tokens.passing("known"):
        pass
    fail(tokens, "known")
    with pytest.raises(QuotaExceeded), tokens.passing("known"):
        raise AssertionError
    now_s += 2.5 / FAILURES_PER_S
    with tokens.passing("new"):
        pass


def test_other_errors_are_no_failures_of_the_token_and_it_is_remembered_among_the_last() -> None:
    tokens = CallersTokens()
    for number in range(KNOWN_MAX + 1):
        with tokens.passing(f"t{number}"):
            pass
    for _ in range(BURST + 1):
        with pytest.raises(KeyError), tokens.passing("t"):
            raise KeyError
    assert len(tokens._known) == KNOWN_MAX


def test_no_more_are_on_their_way_at_once_than_may_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("placet.mcp_tokens.time.monotonic", lambda: 1000.0)
    tokens = CallersTokens()
    with ExitStack() as under_way:
        for number in range(BURST + 1):
            under_way.enter_context(tokens.passing(f"t{number}"))
        with pytest.raises(QuotaExceeded):
            under_way.enter_context(tokens.passing("one more"))
    with tokens.passing("they were all valid"):
        pass
