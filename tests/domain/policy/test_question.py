import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.domain.policy.question import (
    MAX_QUESTION_CHARS,
    MAX_VALUE_CHARS,
    BadTemplate,
    parse_template,
    render,
)


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("Pay {{args.amount}} to {{args.recipient}}?", "Pay 98.7 to GB29?"),
        ("Pay {{ args.whole }}?", "Pay 500?"),
        ("{{args.nested.key}} {{args.list}}", 'v [1,"a"]'),
        ("{{args.missing}} {{args.amount.deeper}}", "(missing) (missing)"),
        ("{{tool.name}} {{agent}} {{execution.id}}", "send_money bot e1"),
        ("no placeholder, one { brace }", "no placeholder, one { brace }"),
        ("{{args.flag}} {{args.nothing}}", "true null"),
        ("{{args.exact}} {{args.beyond}}", "9007199254740991 9007199254740992.0"),
    ],
)
def test_render_fills_in_plain_text(template: str, text: str) -> None:
    arguments = {
        "amount": 98.7,
        "whole": 500.0,
        "exact": 2.0**53 - 1,
        "beyond": 2.0**53,
        "recipient": "GB29",
        "nested": {"key": "v"},
        "list": [1, "a"],
        "flag": True,
        "nothing": None,
    }
    variables = {"args": arguments, "tool": {"name": "send_money"}, "agent": "bot", "execution": {"id": "e1"}}

    assert render(template, variables) == text


def test_render_placeholder_in_a_value_is_not_filled_again() -> None:
    assert render("{{args.a}}", {"args": {"a": "{{args.b}}", "b": "secret"}}) == "{{args.b}}"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("a\u202eb", "a\\u{202e}b"),
        ("a\u200bb", "a\\u{200b}b"),
        ("a\U000e0041b", "a\\u{e0041}b"),
        ("a\x1b[31mb", "a\\u{1b}[31mb"),
        ("a\nb", "a\\u{a}b"),
        ("a\u2028b", "a\\u{2028}b"),
        ("zażółć 名前", "zażółć 名前"),
    ],
)
def test_render_hidden_characters_are_shown(value: Any, shown: str) -> None:
    assert render("{{args.a}}", {"args": {"a": value}}) == shown


def test_render_huge_values_are_cut() -> None:
    text = render("{{args.a}}{{args.b}}", {"args": {"a": "x" * 100_000, "b": list(range(100_000))}})

    assert len(text) == 2 * MAX_VALUE_CHARS
    assert text.count("…") == 2


@given(st.dictionaries(st.sampled_from("abc"), st.text() | st.lists(st.text(), max_size=5)))
def test_render_any_values_are_bounded_and_visible(arguments: dict[str, Any]) -> None:
    text = render("{{args.a}} {{args.b}} {{args.c}} " * 5, {"args": arguments})

    assert len(text) <= MAX_QUESTION_CHARS
    assert not [c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs")]


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{{arg.amount}}", "did you mean 'args'"),
        ("{{tool.nmae}}", "did you mean 'name'"),
        ("{{tool}}", "no field"),
        ("{{args.amount", "placeholder"),
        ("{{args.a + 1}}", "placeholder"),
        ("{{__class__}}", "unknown name"),
        ("{{}}", "placeholder"),
        ("args.a}}", "placeholder"),
    ],
)
def test_parse_template_mistake_is_refused(template: str, said: str) -> None:
    with pytest.raises(BadTemplate, match=said):
        parse_template(template)
