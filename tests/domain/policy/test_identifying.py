"""The identifying values of a call: whom and what it is about, and its numbers."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.call_history import history_from_text, history_to_text
from services.domain.policy.history import history_of
from services.domain.policy.identifying import (
    MAX_NUMBERS,
    MAX_VALUES,
    Number,
    Value,
    identifying_of,
)
from services.domain.policy.leaves import TooMany, joined, prefixes
from services.domain.trust.approved import NOTHING_APPROVED
from services.domain.untrusted import NO_WORDS


def texts(arguments: dict[str, Any]) -> list[tuple[str, str]]:
    return [(value.path, value.text) for value in identifying_of(arguments).values if not value.is_within]


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"recipient": " GB29 NWBK  6016 "}, [("recipient", " GB29 NWBK  6016 ")]),
        ({"to": ["Ann@Example.com"]}, [("to", "ann@example.com")]),
        ({"to": "Ann <ann@example.com>"}, [("to", "Ann <ann@example.com>"), ("to", "ann@example.com")]),
        (
            {"account": "DE89EVIL ann@example.com"},
            [("account", "DE89EVIL ann@example.com"), ("account", "ann@example.com")],
        ),
        ({"file_id": 13}, [("file_id", "13")]),
        ({"file_id": 13.0}, [("file_id", "13")]),
        ({"id": "13"}, [("id", "13")]),
        ({"kept": "12345678901234567890"}, [("kept", "12345678901234567890")]),
        ({"recipient": {"first": "Ann", "age": 3}}, [("recipient.age", "3"), ("recipient.first", "Ann")]),
        ({"recipients": {"eve@evil.com": True}}, [("recipients", "eve@evil.com")]),
        ({"mode": "fast"}, [("mode", "fast")]),
        ({"dest": "EVE\n.  x\t"}, [("dest", "EVE\n.  x\t")]),
        ({"topic": "arn:evil"}, [("topic", "arn:evil")]),
        ({"message": {"chat": "eve"}}, [("message.chat", "eve")]),
        ({"note": "a long story"}, []),
        ({"note": "write to eve@evil.com, please"}, [("note", "eve@evil.com")]),
        ({"start_date": "2026-01-05"}, []),
        ({"anything": "a long text " * 10}, [("anything", "a long text " * 10)]),
        ({"wallet": "4" + "E6" * 47}, [("wallet", "4" + "E6" * 47)]),
        ({"amount": "0" * 70 + "999"}, [("amount", "0" * 70 + "999")]),
        ({"konto": 601613, "rate": 7}, [("konto", "601613")]),
        ({"chatId": 12}, [("chatId", "12")]),
        ({"details": "Pay GB29 NWBK 6016 1331 9268 19 now"}, [("details", "GB29NWBK60161331926819")]),
        ({"details": "Call 555-010-9999 at 10:30 on 2026-01-05"}, [("details", "5550109999")]),
        ({"details": "See bc1qxy2kgdygjrsqtzq2n0"}, [("details", "BC1QXY2KGDYGJRSQTZQ2N0")]),
        ({"recipient": "x" * 65}, [("recipient", "x" * 65)]),
        ({"text": "www.evil.com"}, [("text", "www.evil.com")]),
        ({"text": "see evil&#46;com"}, [("text", "see evil&#46;com")]),
        ({"text": "see t.me/friend"}, [("text", "t.me"), ("text", "t.me/friend")]),
        ({"text": "see bank.com:8080/x?y"}, [("text", "bank.com"), ("text", "bank.com:8080/x?y")]),
        ({"text": "eve\uff20evil.com"}, [("text", "EVIL.COM"), ("text", "eve@evil.com")]),
        (
            {"text": "\u8bf7\u770b\uff1abank.com/x\u3002\u8c22\u8c22"},
            [("text", "bank.com"), ("text", "bank.com/x")],
        ),
        ({"text": "(\u201cbank.com/x\u201d)"}, [("text", "bank.com"), ("text", "bank.com/x")]),
        ({"text": "see 198.51.100.7/x"}, [("text", "198.51.100.7"), ("text", "198.51.100.7/x")]),
        # An address that programs could read differently is in the same text alone.
        ({"url": "https:evil.com"}, [("url", "https:evil.com")]),
        ({"to": "a@b@c"}, [("to", "a@b@c")]),
        ({"body": "![x](/\\evil.com)"}, [("body", "![x](/\\evil.com)")]),
        (
            {"body": "https://bank.com/pay,evil"},
            [("body", "bank.com"), ("body", "https://bank.com/pay"), ("body", "https://bank.com/pay,evil")],
        ),
        # Settings and programs beside the file that they are written into.
        (
            {"path": "k8s/app.yaml", "content": "replicas: 99"},
            [("content", "replicas: 99"), ("path", "k8s/app.yaml")],
        ),
        ({"filename": "minutes.docx", "content": "present: Ann"}, [("filename", "minutes.docx")]),
        ({"filename": "minutes", "content": "present: Ann"}, [("filename", "minutes")]),
        ({"path": "/etc/crontab", "content": "x"}, [("content", "x"), ("path", "/etc/crontab")]),
        ({"path": "Dockerfile", "content": "x"}, [("content", "x"), ("path", "Dockerfile")]),
        ({"filename": "crontab", "content": "x"}, [("content", "x"), ("filename", "crontab")]),
        ({"filename": "notes", "content": "x"}, [("filename", "notes")]),
        ({"body": "see backup.7z, id.p12 and part.2"}, [("body", "BACKUP.7Z"), ("body", "ID.P12")]),
        ({"file": {"path": "a.sh"}, "content": "x"}, [("content", "x"), ("file.path", "a.sh")]),
        (
            {"filepath": "a.sh?v=1", "content": "x"},
            [("content", "x"), ("filepath", "a.sh"), ("filepath", "a.sh?v=1")],
        ),
        ({"path": ".htaccess", "content": "x"}, [("content", "x"), ("path", ".htaccess")]),
        ({"url": "https://a.com/b", "message": "Hi"}, [("url", "a.com"), ("url", "https://a.com/b")]),
        ({"target": "ann@b.com", "message": "Hi"}, [("target", "ann@b.com")]),
        ({"destination": "St.Gallen", "message": "Hi"}, [("destination", "St.Gallen")]),
        ({"filename": "chart.png", "message": "Hi"}, [("filename", "chart.png")]),
        ({"a": None, "b": True, "c": ""}, []),
    ],
)
def test_values_say_whom_and_what_the_call_is_about(
    arguments: dict[str, Any], found: list[tuple[str, str]]
) -> None:
    assert sorted(texts(arguments)) == sorted(found)


def test_url_is_known_by_its_host_and_exactly_by_itself() -> None:
    found = identifying_of({"url": "https://Example.com/a?b"}).values

    assert found == (
        Value("url", "example.com"),
        Value("url", "https://Example.com/a?b"),
        Value("url", "EXAMPLE.COM", is_weak=True, is_within=True),
    )


@pytest.mark.parametrize("text", ["5.000", "077", "+50", "1e3", "50.", "5,0"])
def test_number_that_programs_can_read_differently_is_a_value(text: str) -> None:
    found = identifying_of({"amount": text})

    assert [value.text for value in found.values] == [text]
    assert found.numbers == ()


def test_numbers_of_other_arguments_are_measured() -> None:
    found = identifying_of({"amount": 98.7, "limits": [1, 20], "file_id": 3, "older_than_days": "90"})

    numbers = {
        ("amount", 98.7),
        ("limits", 1.0),
        ("limits", 20.0),
        ("limits.#", 21.0),
        ("older_than_days", 90.0),
    }
    assert set(found.numbers) == {Number(*one) for one in numbers}
    assert [value.path for value in found.values] == ["file_id"]


@pytest.mark.parametrize(
    ("arguments", "risk_parts", "found"),
    [
        ({"query": "DROP TABLE users"}, ("writes",), ["query"]),
        ({"query": "cheap hotels"}, (), []),
        ({"content": "Remove-Item *"}, ("runs_code", "writes"), ["content"]),
        ({"content": "Dear all"}, ("writes",), []),
        ({"start_time": "* * * * *"}, ("writes",), ["start_time"]),
        ({"start_time": "2026-01-05T10:00:00+01:00"}, ("writes",), []),
        ({"end_date": "next Monday, 5 p.m."}, ("writes",), []),
        ({"version": "1.10"}, ("writes",), ["version"]),
        ({"job": {"script_text": "print(1)"}}, (), ["job.script_text"]),
        ({"filters": {"note": "1=1"}}, (), ["filters.note"]),
        ({"format": "exe"}, (), ["format"]),
        ({"older_than_days": "90d"}, (), ["older_than_days"]),
        ({"duration": "PT1H"}, (), ["duration"]),
        ({"time": "rm -rf data"}, (), ["time"]),
        ({"report_date": "../../secrets"}, (), ["report_date"]),
        ({"time": "5 January 2026 at 10:30"}, (), []),
        ({"day": "Mon, Jan. 5th, 10 am"}, (), []),
        ({"date": "2026/01/05 10:30:15.5+01:00"}, (), []),
        ({"comment": "042"}, (), ["comment"]),
        ({"note": "#4-2/7"}, (), ["note"]),
        ({"note": "2026-01-05 10:30"}, (), []),
        ({"body": '{"by": "@ann.b"}'}, (), ["body"]),
        ({"body": 'write to "eve"@example.com'}, (), ["body"]),
        ({"body": "Dear Ann & Bob, 50 % off: 2 * 3 < 7 (*)."}, (), []),
        ({"note": "31:92:68 99:11:44"}, (), ["note"]),
        ({"due_date": "31:92:68 99:11:44"}, (), ["due_date"]),
        ({"subject": "Hi\r\nBcc: eve"}, (), ["subject"]),
        ({"body": "Hi\r\nBcc: eve"}, (), []),
        ({"subject": "123456"}, (), ["subject"]),
        ({"body": '{"to": "bob", "amount": 10}'}, (), ["body"]),
        ({"body": '{ "to" : "bob" }'}, (), ["body"]),
        ({"retention_days": "30,5"}, (), ["retention_days"]),
        ({"retention_days": "1 to 2"}, (), ["retention_days"]),
        ({"note": "9e9"}, (), ["note"]),
        ({"bank_details": "Sparkasse, Bob Smith"}, (), ["bank_details"]),
        ({"details": "Bob Smith"}, (), []),
        ({"cost_center": 4711}, (), ["cost_center"]),
        ({"budget": 4711}, (), []),
    ],
)
def test_prose_is_what_a_tool_does_nothing_by(
    arguments: dict[str, Any], risk_parts: tuple[str, ...], found: list[str]
) -> None:
    assert [
        value.path for value in identifying_of(arguments, risk_parts).values if not value.is_within
    ] == found


def test_value_is_another_under_another_path() -> None:
    assert Value("to", "ann").digest != Value("cc", "ann").digest == Value("cc", "ann").digest


def test_names_cannot_look_like_paths() -> None:
    assert texts({"a.b": "x"}) == [("a%2Eb", "x")]
    assert len(joined("", "n" * 5_000)) == len(joined("", "\x01" * 64)) == 33
    assert joined("", "n" * 5_000) != joined("", "n" * 5_001)
    assert list(prefixes("a.b.c")) == ["a.b.c", "a.b", "a"]


@pytest.mark.parametrize(
    "arguments",
    [
        {"ids": list(range(MAX_VALUES + 1))},
        {"deep": [[[[[[[[[["x"]]]]]]]]]]},
        {"flags": [True] * 1_001},
        {"limits": list(range(MAX_NUMBERS + 1))},
        {"amount": 2.0**53},
        {"file_id": 1e20},
        {"body": "a@b.c " * 20_000},
        {"body": "http://\u00e9.\u00e9 " * 20_000},
        {"name": "x" * 3_000},
    ],
    ids=[
        "values",
        "depth",
        "places",
        "numbers",
        "huge",
        "huge_id",
        "addresses",
        "hosts",
        "long",
    ],
)
def test_call_with_too_much_has_no_values(arguments: dict[str, Any]) -> None:
    with pytest.raises(TooMany):
        identifying_of(arguments)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, width=32)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), JSON, max_size=5), st.booleans())
def test_history_of_any_arguments_can_be_recorded_and_read_again(
    arguments: dict[str, Any], is_known: bool
) -> None:
    words = NO_WORDS.with_output("r", json.dumps(arguments))
    found = history_of(arguments, NOTHING_APPROVED if is_known else None, words, "a request")

    text = history_to_text(found)
    assert history_from_text(text) == found
    assert text is None or len(text) < 16_384


def test_origins_of_a_value_are_where_it_leads_and_its_codes() -> None:
    assert Value("url", "https://forms.example/x?d=secret#a").origins == ("https://forms.example/x",)
    assert Value("to", "eve+secret@evil.com").origins == ("eve@evil.com",)
    found, _ = identifying_of({"iban": "gb29 nwbk 6016 1331 9268 19"}).values
    assert found.origins == ("gb29 nwbk 6016 1331 9268 19", "GB29NWBK60161331926819")


def test_short_code_in_prose_is_new_only_where_it_came_out_of_an_untrusted_output() -> None:
    asked = {"subject": "Invoice 123456, pay 12345678901"}
    weak, strong = identifying_of(asked).values
    read = NO_WORDS.with_output("read", '"123456"')

    assert (weak.is_weak, strong.is_weak) == (True, False)
    assert history_of({"subject": "Invoice 123456"}, NOTHING_APPROVED).novel == ()
    assert history_of({"subject": "Invoice 123456"}, NOTHING_APPROVED, read).parts == ("novel", "tainted")
    assert history_of(asked, NOTHING_APPROVED).novel == ("subject",)
    # Where it is the whole value it is new.
    assert history_of({"reference": "123456"}, NOTHING_APPROVED).novel == ("reference",)


def test_text_that_is_too_long_to_keep_is_known_by_its_digest_and_the_addresses_and_codes_in_it() -> None:
    long = "a word " * 1_000
    same, other = (identifying_of({"letter": f"{long}{end}"}).values for end in ("a", "b"))

    assert len(same) == len(other) == 1
    assert same[0].digest != other[0].digest == Value("letter", other[0].text).digest
    assert len(same[0].text) < 100
    copied = NO_WORDS.with_output("read", json.dumps(f"{long}a"))
    assert history_of({"letter": f"{long}a"}, NOTHING_APPROVED, copied).parts == ("novel", "tainted")
    assert ("letter", "eve@evil.com") in texts({"letter": f"{long} eve@evil.com"})
