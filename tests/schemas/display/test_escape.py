import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from schemas.display.characters import is_hidden
from schemas.display.escape import Badges, escaped, escaped_lines, escaped_value, revealed

TRICKY = st.text(
    st.sampled_from("ab \\\n\r\tsun{}01\u202e\u200b\u00a0\ufe0f\U000e0041\x1bраΑ☀é\u3000\ufffd")
    | st.characters()
)
PICTURE = re.compile("[\u2190-\u29ff\u2b00-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]\ufe0f")


def shown(text: str) -> str:
    return escaped(text, Badges())


def badges_of(text: str) -> tuple[str, ...]:
    badges = Badges()
    escaped(text, badges)
    return badges.sorted()


def unescaped(text: str) -> str:
    """What was there, read back from what is shown: the other half of the notation's promise."""

    def original(found: re.Match[str]) -> str:
        word, number = found.group(1), found.group(3)
        if word[0] == "u" and number:
            return chr(int(number, 16))
        if word[0] == "s" and number:
            return " " * int(number)
        return {"n": "\n", "r": "\r", "t": "\t", "\\": "\\"}[word]

    return re.sub(r"\\((u|s)\{([0-9a-f]+)\}|n|r|t|\\)", original, text)


@pytest.mark.parametrize(
    ("raw", "seen", "badges"),
    [
        ("pay\u202eGB29", "pay\\u{202e}GB29", ("bidi",)),
        ("ze\u200bro", "ze\\u{200b}ro", ("zero_width",)),
        ("tag\U000e0041", "tag\\u{e0041}", ("tag",)),
        ("smuggled\U000e0101", "smuggled\\u{e0101}", ("zero_width",)),
        ("\x1b[31mred", "\\u{1b}[31mred", ("ansi",)),
        ("over\rwritten", "over\\rwritten", ("control",)),
        ("nul\x00", "nul\\u{0}", ("control",)),
        ("nb\u00a0sp", "nb\\u{a0}sp", ()),
        ("filler\u3164", "filler\\u{3164}", ("zero_width",)),
        ("line\nbreak\t", "line\\nbreak\\t", ()),
        ("C:\\u{202e}", "C:\\\\u{202e}", ()),
        ("sunny ☀\ufe0f", "sunny ☀\ufe0f", ()),
        ("not sunny\ufe0f", "not sunny\\u{fe0f}", ("zero_width",)),
        ("p\u0430ypal", "p\\u{430}ypal", ("homoglyph",)),
        ("\u0440\u0430\u0443", "\\u{440}\\u{430}\\u{443}", ("homoglyph",)),
        ("\u0434\u0430, \u0440\u0430\u0443", "\u0434\u0430, \u0440\u0430\u0443", ()),
        ("\U0001d429ay", "\\u{1d429}ay", ("homoglyph",)),
        ("https://\u0430pple.com/x", "https://\\u{430}pple.com/x", ("lookalike_host",)),
        ("https://xn--pple-43d.com", "https://xn--pple-43d.com", ("lookalike_host",)),
        ("https://bank.com@evil.com/", "https://bank.com@evil.com/", ("lookalike_host",)),
        ("https://bank.com\\.evil.com/", "https://bank.com\\\\.evil.com/", ("lookalike_host",)),
        ("a" + " " * 40 + "b", "a\\s{40}b", ("padding",)),
        ("<script>alert(1)</script>", "<script>alert(1)</script>", ("markup",)),
        ("![x](https://evil.com/p.png)", "![x](https://evil.com/p.png)", ("markup",)),
        ("data:text/html;base64,PHN2Zz4=", "data:text/html;base64,PHN2Zz4=", ("encoded",)),
        ("A" * 200, "A" * 200, ("encoded",)),
        ("שלום", "שלום", ("right_to_left",)),
        ("ordinary ü 漢字 € москва αβγ", "ordinary ü 漢字 € москва αβγ", ()),
    ],
)
def test_escaped_shows_and_badges_what_misleads(raw: str, seen: str, badges: tuple[str, ...]) -> None:
    assert shown(raw) == seen
    assert badges_of(raw) == badges


@given(TRICKY)
@example("  ")
@example(" a  b   ")
def test_escaped_value_tells_what_was_there_and_has_no_space_at_its_ends(text: str) -> None:
    badges = Badges()
    seen = escaped_value(text, badges)
    assert unescaped(seen) == text
    assert seen == seen.strip(" ")
    if text != text.strip(" "):
        assert "padding" in badges.sorted()
    else:
        assert seen == shown(text)


@given(TRICKY)
@example("a" + " " * 33 + "\\s{33}")
@example("://\\\u202e ра")
def test_escaped_of_anything_tells_exactly_what_was_there(text: str) -> None:
    assert unescaped(shown(text)) == text


@given(TRICKY)
def test_escaped_of_anything_holds_nothing_hidden(text: str) -> None:
    left = PICTURE.sub("", shown(text))
    assert not any(map(is_hidden, left))
    assert " " * 33 not in left


@given(TRICKY)
def test_escaped_of_what_hides_is_badged(text: str) -> None:
    misleading = [char for char in PICTURE.sub("", text) if char in "\u202e\u200b\U000e0041\x1b"]
    wanted = {"\u202e": "bidi", "\u200b": "zero_width", "\U000e0041": "tag", "\x1b": "ansi"}
    assert {wanted[char] for char in misleading} <= set(badges_of(text))


def test_escaped_lines_shows_what_blank_lines_and_spaces_hide() -> None:
    badges = Badges()
    lines = escaped_lines("a" + "\n" * 8 + "hidden  \n\nend\n", badges)
    assert lines == ["a", "\\n{7}", "hidden\\s{2}", "", "end", ""]
    assert badges.sorted() == ("padding",)


@given(TRICKY)
def test_escaped_lines_tell_exactly_what_was_there(text: str) -> None:
    lines: list[str] = []
    for line in escaped_lines(text, Badges()):
        many = re.fullmatch(r"\\n\{(\d+)\}", line)
        lines += [""] * int(many.group(1)) if many else [unescaped(line)]
    assert "\n".join(lines) == text


def test_escaped_of_a_long_hostile_text_takes_no_more_than_a_look_at_each_character() -> None:
    for text in ("A" * 199 + "!", " " * 32 + "x", "\n ", "a\\", "x://", "pа "):
        assert len(shown(text * (100_000 // len(text)))) >= 10


def test_revealed_keeps_backslashes_and_shows_what_hides() -> None:
    assert revealed("C:\\dir \u202e") == "C:\\dir \\u{202e}"
