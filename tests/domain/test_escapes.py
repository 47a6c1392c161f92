"""What an output spells with backslashes, as JSON within a text does: taint finds it as its reader has it."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from services.domain import untrusted
from services.domain.escapes import in_utf8, unescaped
from services.domain.policy.history import history_of
from services.domain.trust.approved import NOTHING_APPROVED
from services.domain.untrusted import LEVELS_MAX, NO_WORDS
from services.domain.words import CONTROLS, TEXT_MAX_BYTES, bytes_of


def tainted(output: str, value: Any) -> bool:
    words = NO_WORDS.with_output("read", output)
    assert not words.is_full
    return history_of({"recipient": value}, NOTHING_APPROVED, words).tainted == ("recipient",)


def nested(value: Any, levels: int) -> str:
    """JSON in a text of JSON, and so on."""
    for _ in range(levels):
        value = json.dumps(value)
    return str(value)


@pytest.mark.parametrize("levels", range(1, LEVELS_MAX + 2))
@pytest.mark.parametrize(
    "name", ["Müller GmbH", "Иван Петров", "\U0001d4d4ve", "line\nEve", 'the "Eve"', "a/Eve", "張三"]
)
def test_name_in_json_is_found_however_many_texts_of_json_it_is_in(name: str, levels: int) -> None:
    assert tainted(nested({"name": name}, levels), name)


@pytest.mark.parametrize(
    ("output", "value"),
    [
        (json.dumps({"content": [{"type": "text", "text": json.dumps({"name": "Zoë"})}]}), "Zoë"),
        ('HTTP 400: {"to":"\\u0065ve"}', "eve"),
        ('{"to":"\\u0065ve","to":1}', "eve"),
        (json.dumps('{"to":"\\u0065ve@evil.com"}'), "eve@evil.com"),
        (json.dumps('{"to":"https:\\/\\/evil.com\\/\\u0061"}'), "https://evil.com/a"),
        (json.dumps("'\\x65ve'"), "eve"),
        (json.dumps("'\\u{65}ve'"), "eve"),
        (json.dumps("'\\U00000065ve'"), "eve"),
        (json.dumps("'\\145ve'"), "eve"),
        (json.dumps(["\\\\u0041 x", '{"html":"<p>ma<b>\\u006c<\\/b>lory</p>"}']), "mallory"),
        (
            json.dumps('{"iban":"GB29\\u00a0NWBK\\u00a06016\\u00a01331\\u00a09268\\u00a019"}'),
            "GB29NWBK60161331926819",
        ),
        (json.dumps('{"phone":"\\u0035\\u0035\\u0035 010 9999"}'), "5550109999"),
        (json.dumps("C:\\users\\eve"), "C:\\users\\eve"),
        (json.dumps("\\deve\\_x"), "eve"),
    ],
)
def test_value_is_found_as_it_is_and_with_what_its_escapes_stand_for(output: str, value: str) -> None:
    assert tainted(output, value)
    assert not tainted(output, "Ann")


def test_long_result_with_escapes_is_read() -> None:
    rows = [{"id": n, "name": "Zoë", "text": 'the "first"\nline'} for n in range(900)]
    output = json.dumps({"content": [{"type": "text", "text": json.dumps([*rows, {"name": "Müller"}])}]})

    assert 0.7 * TEXT_MAX_BYTES < len(json.loads(output)["content"][0]["text"]) < TEXT_MAX_BYTES
    assert tainted(output, "Müller")
    assert not tainted(output, "Meier")


def test_numbers_of_letters_are_no_codes() -> None:
    """Else each word of such a text would be several, and a text of 20 KB too many."""
    plain = {f"w{n}": "счёт за март" for n in range(400)}

    assert not NO_WORDS.with_output("read", json.dumps(json.dumps(plain))).is_full


@given(st.text())
def test_text_of_json_is_read_as_its_reader_has_it(text: str) -> None:
    read = unescaped(json.dumps(text)[1:-1])

    # Controls with a letter of their own are a space.
    expected = "".join(" " if one in "\b\f\n\r\t" else one for one in text)
    assert read == CONTROLS.sub("", expected)


@given(st.text(st.sampled_from('\\uxU{}0123dDfF"/n.\n\ud83d\u00e9'), max_size=60))
@example("\\u{110000}\\UFFFFFFFF\\777\\ud800\\udc00\\ud800\\u{d800}")
def test_texts_never_become_longer_and_no_output_ends_a_fold(text: str) -> None:
    assert bytes_of(unescaped(text)) <= bytes_of(text)
    NO_WORDS.with_output("read", text)


def test_output_that_cannot_be_read_is_one_that_has_everything(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(text: str) -> str:
        raise IndexError(text)

    monkeypatch.setattr(untrusted, "shown", fails)
    words = NO_WORDS.with_output("read", "eve")

    assert (words.is_full, words.untrusted, words.sources) == (True, b"", ("read",))
    assert "not looked at" in caplog.text


@pytest.mark.parametrize("text", ["\\" * 65_000, "\\u0065" * 10_900, '\\"' * 32_000, "\\\\\\\\x41" * 9_000])
def test_output_of_escapes_takes_no_longer_than_others(text: str) -> None:
    def seconds() -> float:
        began = time.thread_time()
        NO_WORDS.with_output("read", text)
        return time.thread_time() - began

    # 25 ms; ten times as much for slow machines.
    assert min(seconds() for _ in range(3)) < 0.25


@pytest.mark.parametrize("name", ["Müller GmbH", "Иван Петров", "\U0001d4d4ve", "張三"])
@pytest.mark.parametrize("levels", [0, 1])
def test_name_whose_bytes_are_spelt_is_found(name: str, levels: int) -> None:
    octal = "".join(f"\\{one:03o}" if one > 127 else chr(one) for one in name.encode())

    assert tainted(nested(octal, levels) if levels else json.dumps({"path": octal}), name)
    assert tainted(json.dumps({"seen": repr(name.encode())}), name)


@given(st.binary(min_size=1, max_size=30))
def test_text_with_bytes_is_not_longer_than_they_are_spelt(raw: bytes) -> None:
    for spelt in ("".join(f"\\x{one:02x}" for one in raw), "".join(f"\\{one:03o}" for one in raw)):
        assert bytes_of(in_utf8(spelt)) <= len(spelt)
