"""Tokens as text are found wherever they stand; what merely has dots in it is left alone."""

from __future__ import annotations

import logging

import jwt
import pytest

from schemas.token_text import holds_token, without_tokens
from vitals.logs import FORM, TokenlessFormatter

TOKEN = jwt.encode({"sub": "rita", "aud": "placet"}, "a secret of this test that is long enough", "HS256")


@pytest.mark.parametrize(
    "around", ["{}", "Bearer {}", "?q={}&x=1", "GET /v1/{} HTTP/1.1", "{}{}", "a, {}", "token_{}", '"{}"']
)
def test_case_14_token_is_found_and_hidden_wherever_it_stands(around: str) -> None:
    for token in (TOKEN, TOKEN.replace(".", "%2E"), TOKEN.replace(".", "%2e")):
        text = around.replace("{}", token)
        assert holds_token(text)
        hidden = without_tokens(text)
        assert "[token]" in hidden
        for part in token.replace("%2E", ".").replace("%2e", ".").split("."):
            assert part not in hidden


@pytest.mark.parametrize(
    "text",
    [
        "services.runtime.kafka_log_of_everything",
        "key.with.dots",
        "eyJhbGciOiJIUzI1NiJ9",
        "a1b2c3d4-0000.eyes.everywhere",
        "10.0.0.1:9092",
        "",
    ],
)
def test_text_that_is_no_token_is_left_alone(text: str) -> None:
    assert not holds_token(text)
    assert without_tokens(text) == text


def test_case_14_line_of_a_log_has_no_token_of_its_message_arguments_or_traceback() -> None:
    formatter = TokenlessFormatter(FORM)
    try:
        raise ValueError(f"cannot read {TOKEN}")
    except ValueError as error:
        failure = (type(error), error, error.__traceback__)
    record = logging.LogRecord(
        "x", logging.ERROR, "f", 1, "WebSocket %s", (f"/v1/ws?token={TOKEN}",), failure
    )
    line = formatter.format(record)
    assert "WebSocket /v1/ws?token=[token]" in line
    assert "cannot read [token]" in line
    assert TOKEN.split(".")[2] not in line
