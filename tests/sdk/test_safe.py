import io
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from placet.cli import safe


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("pay\u202eGB29", "pay\\u{202e}GB29"),
        ("ze\u200bro", "ze\\u{200b}ro"),
        ("\x1b[31mred", "\\u{1b}[31mred"),
        ("tag\U000e0041", "tag\\u{e0041}"),
        ("nb\u00a0sp", "nb\\u{a0}sp"),
        ("filler\u3164", "filler\\u{3164}"),
        ("variation\ufe0f", "variation\\u{fe0f}"),
        ("line\nbreak\r", "line\\u{a}break\\u{d}"),
        ("ordinary ü 漢字 €", "ordinary ü 漢字 €"),
    ],
)
def test_escaped_shows_what_hides(raw: str, shown: str) -> None:
    assert safe.escaped(raw) == shown


def test_escaped_with_lines_keeps_only_line_breaks() -> None:
    assert safe.escaped("a\nb\rc", lines=True) == "a\nb\\u{d}c"


def test_escaped_of_a_long_run_of_spaces_tells_its_length() -> None:
    assert safe.escaped("a" + " " * 500 + "b") == "a⟨500 spaces⟩b"


@given(st.text())
def test_escaped_of_anything_holds_nothing_that_steers(text: str) -> None:
    for char in safe.escaped(text):
        assert char == " " or unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Zl", "Zp", "Zs")


def test_pretty_json_is_complete_and_tells_a_typed_escape_from_a_shown_one() -> None:
    shown = safe.pretty_json({"a": "\u202e", "b": "\\u{202e}", "c": "x" * 5000})
    assert '"a": "\\u{202e}"' in shown
    assert '"b": "\\\\u{202e}"' in shown
    assert "x" * 5000 in shown


def test_text_with_markup_prints_it_as_it_is() -> None:
    written = io.StringIO()
    Console(file=written, width=80).print(safe.text("[red]not red[/red] [link=http://x]y[/link]"))
    assert written.getvalue().strip() == "[red]not red[/red] [link=http://x]y[/link]"
