"""Received text in a log line: nothing controls a terminal, begins a line, or cannot be written."""

from __future__ import annotations

import io
import json
import logging
import sys

import orjson
import pytest

from vitals.json_logs import _json
from vitals.logs import FORMATS, JSON, TEXT, TokenlessHandler, _formatter, log_to_stderr

TOKEN = "eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJib3QifQ.c2lnbmF0dXJl"
CONTROLS = "\x00\x07\x08\x0b\x0c\r\x1b\x7f\x85\x9b\u200b\u2028\u2029\u202e\ufeff\U000e0001"


def written(form: str, message: str, *values: object, error: BaseException | None = None) -> str:
    """What the log has of one record, in a form."""
    stream = io.StringIO()
    handler = TokenlessHandler(stream)
    handler.setFormatter(_formatter(form))
    logger = logging.Logger("gateway.rest")
    logger.addHandler(handler)
    logger.error(message, *values, exc_info=error)
    return stream.getvalue()


def test_control_characters_are_shown_in_a_line_of_text() -> None:
    line = written(TEXT, "from %s", f"a{CONTROLS}2026-01-01 00:00:00,000 ERROR gateway.vault fake")
    shown = "".join(f"\\u{{{ord(char):x}}}" for char in CONTROLS)
    assert line.endswith(
        f" ERROR gateway.rest from a{shown}2026-01-01 00:00:00,000 ERROR gateway.vault fake\n"
    )
    assert len(line.splitlines()) == 1


def test_line_breaks_of_a_message_and_a_traceback_stay_and_are_indented() -> None:
    line = written(TEXT, "a\nb %s", "\ud83d\ude00 Ж\tc", error=ValueError("x\x1b[2J\n2026-01-01 y\u2028z"))
    first, *others = line.splitlines()
    assert first.endswith("ERROR gateway.rest a")
    assert others[0] == "    b \\u{d83d}\\u{de00} Ж\tc"
    assert others[-2:] == ["    ValueError: x\\u{1b}[2J", "    2026-01-01 y\\u{2028}z"]
    assert all(other.startswith("    ") for other in others)


def test_json_line_with_control_characters_is_one_printable_line_of_the_same_value() -> None:
    line = written(JSON, "Ж %s", f"{CONTROLS}\n")
    assert line.removesuffix("\n").isprintable()
    assert json.loads(line)["event"] == f"Ж {CONTROLS}\n"
    assert "Ж" in line


def test_json_line_with_a_lone_surrogate_is_written_as_strict_readers_take_it() -> None:
    line = written(JSON, "Ж %s of %s", "a\udc80b\u2028", TOKEN, error=ValueError("\udfff"))
    found = orjson.loads(line)
    # As `ops.last_words` knows a record.
    assert line.startswith('{"timestamp":"')
    assert "Ж" in line
    assert "\u2028" not in line
    assert found["event"] == "Ж a\\u{dc80}b\u2028 of [token]"
    assert found["exception"].endswith("ValueError: \\u{dfff}")


@pytest.mark.parametrize("char", ["\u200e", "\x0e"])
def test_text_of_a_token_that_begins_in_an_escape_leaves_the_json_whole(char: str) -> None:
    # `e` is the last character of the escape, and `eyJ` begins a token.
    said = f"{char}{TOKEN[1:]}"
    assert json.loads(written(JSON, "said %s", said))["event"] == f"said {said}"


def test_json_line_has_no_token_in_a_key_or_within_a_value() -> None:
    line = _json({"event": "a", TOKEN: {"of": [TOKEN, (f"\ud800{TOKEN}",), 7, None]}, "other": {TOKEN}})
    assert json.loads(line) == {
        "event": "a",
        "[token]": {"of": ["[token]", ["\\u{d800}[token]"], 7, None]},
        "other": "set",
    }


class _Unprintable:
    def __str__(self) -> str:
        raise RuntimeError(TOKEN)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    ("values", "error"), [((TOKEN, 2), "TypeError"), ((_Unprintable(),), "RuntimeError")]
)
def test_record_that_cannot_be_formatted_is_told_without_its_values(
    form: str, values: tuple[object, ...], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    line = written(form, "secret %s", *values)
    (told,) = line.splitlines()
    assert "a log record of test_log_text.py, line " in told
    assert f", could not be written: {error}" in told
    assert "secret" not in told
    assert TOKEN not in told
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("form", FORMATS)
def test_stream_that_is_broken_breaks_nothing_else(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(28, "No space left on device")

    handler = TokenlessHandler(Full())
    handler.setFormatter(_formatter(form))
    handler.handle(logging.LogRecord("x", logging.ERROR, "f.py", 1, "said %s", (TOKEN,), None))
    handler.stream = io.StringIO()
    handler.stream.close()
    handler.handle(logging.LogRecord("x", logging.ERROR, "f.py", 1, "said %s", (TOKEN,), None))
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("form", FORMATS)
def test_roles_log_by_that_handler(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    root, stream = logging.Logger("root"), io.StringIO()
    monkeypatch.setattr(logging, "root", root)
    monkeypatch.setattr(sys, "stderr", stream)
    log_to_stderr("INFO", form)
    root.warning("%d", TOKEN)
    assert "could not be written: TypeError" in stream.getvalue()
    assert TOKEN not in stream.getvalue()
