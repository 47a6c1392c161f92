"""What matches no published tool: a typo is told with the name that was meant, all else is not published yet."""

import random
import string
from pathlib import Path

import pytest

from schemas.policy_problems import Problem
from tests.policy_documents import check, parse_policy

DEFAULT = (Path(__file__).parents[3] / "policies" / "default.yaml").read_text()
UNKNOWN, NEAR = "no_known_tool", "near_known_tool"


def problems(patterns: str, *known: str, field: str = "tools") -> list[Problem]:
    document = f"policy: p\nrules: [{{id: a, match: {{{field}: [{patterns}]}}, then: hold}}]"
    return check(parse_policy(document), known)


@pytest.mark.parametrize(
    ("pattern", "known", "meant"),
    [
        ("send_mony", "send_money", "send_money"),
        ("SendMoney", "sendmoney", "sendmoney"),
        ("send_mail", "send_mails", "send_mails"),
        ("'sned_*'", "send_money", "send_money"),
        ("'*_refnud'", "order_refund", "order_refund"),
        ("'*delte*'", "files.delete", "files.delete"),
        ("'delete_file_*'", "delet_file_now", "delet_file_now"),
    ],
)
def test_pattern_near_a_published_name_is_told_with_it(pattern: str, known: str, meant: str) -> None:
    (found,) = problems(pattern, known, "other_tool")
    assert (found.code, found.severity) == (NEAR, "warning")
    assert found.message.endswith(f"matches no known tool; did you mean {meant!r}?")


@pytest.mark.parametrize(
    ("pattern", "known"),
    [
        ("send_money", "read_mail"),
        ("read", "real"),
        ("'read_*'", "real_estate"),
        ("'*_delete'", "delete_file"),
        ("'[a]*'", "bcdef"),
        ("'**'", "x"),
        ("'_*'", "read_mail"),
        ("send_money", ""),
    ],
)
def test_pattern_far_from_every_published_name_names_none(pattern: str, known: str) -> None:
    assert {found.code for found in problems(pattern, *filter(None, [known]))} <= {UNKNOWN}


def test_name_that_another_pattern_of_the_rule_takes_was_not_meant() -> None:
    assert [found.code for found in problems("'http_*', 'https_*'", "http_get")] == [UNKNOWN]


def test_pattern_of_any_spelling_is_compared_with_the_words_of_the_names() -> None:
    assert problems("send_money", "SendMoney", field="tools_like") == []
    (found,) = problems("send_mony", "bank__SendMoney", field="tools_like")
    assert (found.path, found.code) == ("rules[0].match.tools_like[0]", NEAR)
    assert "did you mean 'send_money'" in found.message


def test_default_policy_beside_no_tool_at_all_has_no_typo() -> None:
    assert {found.code for found in check(parse_policy(DEFAULT), ())} == {UNKNOWN}


def test_default_policy_beside_thousands_of_tools_is_checked_in_seconds(seed: int) -> None:
    chance = random.Random(seed)
    names = {"".join(chance.choices(string.ascii_lowercase + "_", k=20)) for _ in range(5_000)}
    assert check(parse_policy(DEFAULT), names)
