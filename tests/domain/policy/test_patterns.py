"""Names of tools however they are spelt: `match.tools_like`."""

import time

import pytest

from schemas.linear_patterns import PatternRefused
from services.domain.policy import judge
from services.domain.policy.check import check_text
from services.domain.policy.patterns import like_matcher, spellings
from tests.domain.policy.builders import NOW_MS, call, rules


@pytest.mark.parametrize(
    "name",
    [
        *("send_money", "sendMoney", "SendMoney", "Send-Money", "SEND_MONEY", "send money", "send.money"),
        *("__send__money__", "mcp__bank__sendMoney", "bank.send_money", "bank/send-money", "bank:SendMoney"),
        *("ｓｅｎｄ＿ｍｏｎｅｙ", "a__b__c__d__send_money"),
    ],
)
def test_tools_like_fits_a_name_however_it_is_spelt(name: str) -> None:
    assert like_matcher("send_money")(name)


@pytest.mark.parametrize("name", ["sender_money", "resend_money", "send_money_not", "ѕend_money", ""])
def test_tools_like_other_words_do_not_fit(name: str) -> None:
    assert not like_matcher("send_money")(name)


def test_spellings_capitals_in_a_row_are_a_word_and_perhaps_the_next_ones_beginning() -> None:
    assert spellings("HTTPRequest") == ("http_request", "httprequest")
    assert "sqlquery" in spellings("SQLquery")


@pytest.mark.parametrize("pattern", ["sendMoney", "send-money", "send__money", "send money", "*.send"])
def test_tools_like_pattern_that_no_spelling_fits_is_refused(pattern: str) -> None:
    with pytest.raises(PatternRefused, match="lower-case words"):
        like_matcher(pattern)
    _, problems = check_text(
        f"policy: p\nrules: [{{id: a, match: {{tools_like: ['{pattern}']}}, then: hold}}]"
    )
    assert [(one.path, one.code) for one in problems] == [
        ("rules[0].match.tools_like[0]", "does_not_compile")
    ]


def test_rule_with_both_keys_wants_both() -> None:
    both = rules("\n  - {id: a, match: {tools: ['m*'], tools_like: [pay]}, then: deny}")

    assert judge(both, call(tool="mcp__pay"), NOW_MS).effect == "deny"
    assert judge(both, call(tool="pay"), NOW_MS).reason == "no_match"
    assert judge(both, call(tool="mcp"), NOW_MS).reason == "no_match"


def test_check_tools_like_is_looked_at_as_tools_are() -> None:
    text = """
policy: p
rules:
  - {id: a, match: {tools_like: ["send_*"]}, then: hold}
  - {id: b, match: {tools_like: [send_money]}, then: deny}
  - {id: c, match: {tools: [sendMoney]}, then: deny}
  - {id: d, match: {tools_like: ["*"]}, then: allow}
"""
    _, problems = check_text(text, known_tools={"sendMoney"})

    assert [(one.path, one.code) for one in problems] == [
        ("rules[1]", "unreachable"),
        ("rules[3]", "allows_all"),
    ]


def test_tools_like_name_of_many_parts_is_matched_within_a_bound() -> None:
    tests = [like_matcher(f"*a{number}?b*") for number in range(1_000)]
    started = time.process_time()
    for tool in ("a__" * 85, "a." * 128, "aB" * 128):
        assert not any(test(tool) for test in tests)
    assert time.process_time() - started < 1
