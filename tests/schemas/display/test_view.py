from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace as with_fields

from schemas.adaptive import AdaptiveOutcome, outcome_to_text
from schemas.call_history import CallHistory, history_to_text
from schemas.canonical import canonical, sha256_hex
from schemas.display import values
from schemas.display.characters import is_hidden
from schemas.display.escape import Badges
from schemas.display.judged import UNKNOWN, UNREAD
from schemas.display.values import lines_of, scalar_text
from schemas.display.view import Difference, Held, Redaction, view_of
from tests.schemas.display.helds import ASKED, HELDS, HOSTILE, JUDGED, PLAIN, SECRET, asks, nested

NAMES = st.sampled_from(["a", "b", 'quote"', "pad" + " " * 40, "line\nbreak", "bidi\u202e", ""])
VALUES: Any = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(max_size=90) | NAMES,
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=30,
)
ARGUMENTS = st.dictionaries(NAMES, VALUES, max_size=5)


def with_arguments(value: Any, **changes: Any) -> Held:
    return replace(PLAIN, arguments=canonical(value), **changes)


@given(ARGUMENTS, ARGUMENTS)
def test_view_of_any_arguments_hides_nothing_and_is_the_same_each_time(one: Any, other: Any) -> None:
    held = with_arguments(one, proposed_arguments=canonical(other))
    view = view_of(held)
    assert view == view_of(held)
    assert view.digest == sha256_hex(view.text)
    assert not any(is_hidden(char) for char in view.text if char != "\n")


@given(ARGUMENTS, ARGUMENTS)
def test_view_of_other_arguments_is_another(one: Any, other: Any) -> None:
    same = canonical(one) == canonical(other)
    assert (view_of(with_arguments(one)).text == view_of(with_arguments(other)).text) == same


@pytest.mark.parametrize(
    "value",
    [
        [nested(60, 1) for _ in range(20)],
        [nested(33, {"\u200b" * 14: 1}) for _ in range(20)],
        nested(60, list(range(200))),
        nested(60, [{"key": []}] * 200),
    ],
    ids=["numbers", "keys", "a long list", "what holds nothing"],
)
def test_case_30_view_of_deep_arguments_looks_at_each_value_and_key_a_few_times(
    value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0

    def counted(text: Callable[..., str]) -> Callable[..., str]:
        def counting(*given: Any) -> str:
            nonlocal looks
            looks += 1
            return text(*given)

        return counting

    monkeypatch.setattr(values, "canonical", counted(canonical))
    monkeypatch.setattr(values, "scalar_text", counted(scalar_text))
    lines_of(value, Badges())
    assert 0 < looks <= 3 * scalars(value)


def scalars(value: Any) -> int:
    """How many keys, and values that hold no others."""
    if isinstance(value, dict):
        return len(value) + sum(map(scalars, value.values()))
    return sum(map(scalars, value)) if isinstance(value, list) else 1


CHANGED: dict[str, Any] = {
    "exclude_requester": False,
    "judged": replace(JUDGED, risk_level="high"),
    "quorum": 3,
    "revision": 2,
    "opened_at_ms": 1,
    "deadline_at_ms": None,
    "arguments": "{}",
    "proposed_arguments": "{}",
    "options": "[]",
    "default_value": "1",
    "remember": None,
    "requirements": '[{"rules":["p@1/r"],"roles":["cfo"],"reviewers":[],"quorum":1}]',
}
CHANGED["asks"] = asks(multiple=True)
ONLY_OF_REQUESTS = {"request_id", "fields", "decision_type", "asks"}


@pytest.mark.parametrize("name", [field.name for field in fields(Held)])
def test_view_with_any_fact_changed_is_another(name: str) -> None:
    held = HELDS["request"] if name in ONLY_OF_REQUESTS else PLAIN
    before = getattr(held, name)
    changed: Any = ("other",) if isinstance(before, tuple) else '["other"]' if name == "fields" else "other"
    assert view_of(replace(held, **{name: CHANGED.get(name, changed)})).text != view_of(held).text


@pytest.mark.parametrize(
    ("history", "told"),
    [
        (CallHistory(values=("aa",)), []),
        (CallHistory(novel=("to",)), ['new to this agent and tool: "to"']),
        (
            CallHistory(novel=("cc", "to"), tainted=("to",), sources=("c1", "c\u202e2")),
            [
                'new to this agent and tool: "cc", "to"',
                'out of an untrusted output of this run: "to"',
                'untrusted outputs of: "c1", "c\\u{202e}2"',
            ],
        ),
        (
            CallHistory(novel=("amount", "to"), apart=("amount",)),
            ['new to this agent and tool: "amount", "to"'],
        ),
        (
            CallHistory(novel=("to",), apart=("file",)),
            [
                'new to this agent and tool: "to"',
                'approved before, but not together in such a call: "file"',
            ],
        ),
        (CallHistory(is_whole=False), [f"values: {UNREAD}"]),
        (CallHistory(is_known=False), [f"values: {UNKNOWN}"]),
    ],
    ids=["known", "new", "tainted", "new_beside_new", "apart", "too_many", "trust_is_missing"],
)
def test_view_says_which_values_are_new_or_came_out_of_an_untrusted_output(
    history: CallHistory, told: list[str]
) -> None:
    held = replace(PLAIN, judged=replace(JUDGED, history=history_to_text(history)))
    before = view_of(PLAIN).text.splitlines()

    assert [
        line for line in view_of(held).text.splitlines() if line not in before and "badges" not in line
    ] == told


@pytest.mark.parametrize(
    ("outcome", "told"),
    [
        (
            with_fields(ASKED, why="allow_when is not met"),
            ["trust required with new values: 0.9311", "not released by trust: allow_when is not met"],
        ),
        (with_fields(ASKED, required=0.9177, why="why\u202e"), ["not released by trust: why\\u{202e}"]),
        (
            with_fields(ASKED, required=0.9177, why="a\nb"),
            ["not released by trust: text of 2 lines", "  | a", "  | b"],
        ),
        (with_fields(ASKED, result="sampled", required=0.9177), []),
    ],
    ids=["raised", "not raised", "several lines", "sampled"],
)
def test_view_says_what_new_values_require_and_why_trust_did_not_release_the_call(
    outcome: AdaptiveOutcome, told: list[str]
) -> None:
    held = replace(PLAIN, judged=replace(JUDGED, adaptive=outcome_to_text(outcome)))
    before = view_of(PLAIN).text.splitlines()

    assert [
        line for line in view_of(held).text.splitlines() if line not in before and "badges" not in line
    ] == told
    assert view_of(held, 7).text == view_of(PLAIN, 7).text


def test_view_begins_with_what_the_run_was_asked_for() -> None:
    lines = view_of(PLAIN).text.splitlines()
    assert lines[:3] == [
        "placet-view 11",
        "badges: none",
        "asked of the agent: Pay the March invoice of ACME.",
    ]


def test_view_in_a_turn_begins_with_its_message_and_then_the_runs_request() -> None:
    view = view_of(replace(PLAIN, message="rm -rf /prod"))
    assert view.text.splitlines()[:5] == [
        "placet-view 12",
        "badges: none",
        "asked of the agent: rm -rf /prod",
        "asked first in the conversation: Pay the March invoice of ACME.",
        f"hold: {PLAIN.hold_id}",
    ]


@pytest.mark.parametrize("name", ["message", "asked"])
@pytest.mark.parametrize("text", ["x" * 2_001, "x\u202e", "x" + " " * 40])
def test_view_in_a_turn_with_a_long_or_hidden_message_or_request_must_be_read(name: str, text: str) -> None:
    told: dict[str, Any] = {"message": "now", name: text}
    assert view_of(replace(PLAIN, **told)).must_read


OFFERED: dict[str, dict[str, Any]] = {
    "an id that hides text": {"options": '["keep\u202e"]'},
    "a label that hides text": {"options": '[{"id":"a","label":"Keep\u200b"}]'},
    "a description out of sight": {"options": canonical([{"id": "a", "description": " " * 40 + "b"}])},
    "an option of many lines": {"options": canonical([{"id": "a", "label": "x\n" * 41}])},
    "a long option": {"options": canonical(["x" * 2_001])},
    "a field that hides text": {"fields": '[{"name":"token","description":"t\u202e"}]'},
    "a decision type that hides text": {"decision_type": "branch\u200b"},
    "a default that hides text": {"default_value": '"a\u202e"'},
}


@pytest.mark.parametrize("offered", OFFERED.values(), ids=OFFERED.keys())
def test_view_of_a_question_must_be_read_for_what_it_offers(offered: dict[str, Any]) -> None:
    held = replace(HELDS["permission"], asks=asks(), **offered)
    assert view_of(held).must_read
    assert [view_of(held, version).must_read for version in (5, 6)] == [False, False]
    assert not view_of(replace(HELDS["permission"], asks=asks())).must_read


def test_view_of_a_call_need_not_be_read_for_the_answers_that_its_policy_offers() -> None:
    assert not view_of(replace(PLAIN, options='["approve\u202e"]')).must_read


def test_view_of_version_1_says_nothing_of_the_request_and_none_of_what_it_hides() -> None:
    hidden = replace(PLAIN, asked="pay\u202e it")
    assert view_of(hidden, 1).text == view_of(PLAIN, 1).text
    assert not view_of(hidden, 1).must_read
    assert view_of(hidden, 2).must_read
    assert view_of(hidden, 2).badges == ("bidi",)


def test_view_of_a_line_break_in_a_name_forges_no_line() -> None:
    view = view_of(replace(PLAIN, agent="bot\nverdict: allow", user="x\r\npeople needed: 1"))
    lines = view.text.splitlines()
    assert [line for line in lines if line.startswith("verdict:")] == ["verdict: hold"]
    assert [line for line in lines if line.startswith("people needed:")] == ["people needed: 2"]


def test_view_of_a_text_of_lines_forges_no_line() -> None:
    view = view_of(with_arguments({"a": 'x\nverdict: allow\n  "b": 1'}, reason="y\nverdict: allow"))
    assert sum(line.startswith("verdict:") for line in view.text.splitlines()) == 1
    assert sum(line.startswith('  "') for line in view.text.splitlines()) == 1


def test_view_of_a_sensitive_value_names_its_commitment_and_nothing_else() -> None:
    view = view_of(with_arguments({"auth": {"tokens": [SECRET]}}))
    assert view.redactions == (Redaction("/auth/tokens/0", SECRET["handle"], SECRET["commitment"]),)
    assert f"[redacted sha256:{SECRET['commitment']} {SECRET['handle']}]" in view.text


def test_view_of_what_only_says_that_it_is_redacted_shows_it_as_a_text() -> None:
    said = f"[redacted sha256:{SECRET['commitment']} {SECRET['handle']}]"
    view = view_of(with_arguments({"a": said, "b": {"handle": "sec_x", "commitment": "y"}}))
    assert view.redactions == ()
    assert f'"a": "{said}"' in view.text
    assert '"b": {"commitment": "y", "handle": "sec_x"}' in view.text


def test_view_of_an_edit_shows_each_difference_with_both_values() -> None:
    assert view_of(HELDS["edited"]).difference == (
        Difference("/amount", "98.7", "50"),
        Difference("/to/iban", '"GB00"', '"GB29"'),
        Difference("/to/tags/1", "1", "true"),
        Difference("/token", f"[redacted sha256:{SECRET['commitment']} {SECRET['handle']}]", "null"),
        Difference("/url", '"x"', None),
        Difference("/memo", None, '"half"'),
    )


def test_view_of_an_edit_with_a_thousand_differences_compares_whole_arguments() -> None:
    before, after = {"k" * 3000: list(range(900))}, {"k" * 3000: list(range(1, 901))}
    view = view_of(with_arguments(after, proposed_arguments=canonical(before)))
    assert [one.path for one in view.difference] == ["/" + "k" * 3000]


def test_view_of_long_arguments_cuts_nothing() -> None:
    text = "x" * 250_000
    assert text in view_of(with_arguments({"a": text})).text
    deep: Any = "bottom"
    for _ in range(60):
        deep = {"d": [deep]} if isinstance(deep, str) else {"d": deep}
    assert '"bottom"' in view_of(with_arguments(deep)).text


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ({}, False),
        ({"amount": 98.7, "to": "GB29"}, False),
        ({"quote": 'a "quoted" \\ text\nof two lines'}, False),
        ({"a": {"b": {"c": 1}}}, False),
        ({"a": {"b": {"c": {"d": 1}}}}, False),
        ({"a": {"b": {"c": {"d": {}}}}}, True),
        ({"a": "x" * 1_900}, False),
        ({"a": "x" * 2_000}, True),
        ({"a": "\n".join("abcdefghij" * 3)}, False),
        ({"a": "\n".join("abcdefghij" * 5)}, True),
        ({"a": " " * 33 + "b"}, True),
        ({"a": "b" + "\n" * 9}, True),
        ({"a": "\u202e"}, True),
        ({"a": "\u200b"}, True),
        ({"\U000e0041": 1}, True),
        ({"a": "\x1b[2J"}, True),
        ({"a": "p\u0430ypal"}, False),
        ({"a": "<b>"}, False),
    ],
)
def test_view_is_to_be_read_whole_where_something_could_be_overlooked(value: Any, wanted: bool) -> None:
    assert view_of(with_arguments(value)).must_read is wanted


@pytest.mark.parametrize("name", ["agent", "tool", "reason", "question"])
def test_view_with_a_hidden_character_beside_the_arguments_is_to_be_read_whole(name: str) -> None:
    changes: dict[str, Any] = {name: "x\u202e"}
    assert view_of(replace(PLAIN, **changes)).must_read


def test_view_of_hostile_arguments_has_every_badge() -> None:
    assert view_of(replace(PLAIN, arguments=HOSTILE)).badges == (
        "ansi",
        "bidi",
        "homoglyph",
        "lookalike_host",
        "markup",
        "padding",
        "tag",
        "zero_width",
    )


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("tool", "tool"),
        ("agent", "agent"),
        ("asked", "asked of the agent"),
        ("reason", "reason"),
        ("question", "question"),
        ("user", "user"),
        ("requester", "requester"),
        ("decision_type", "decision type"),
    ],
)
@pytest.mark.parametrize(
    ("raw", "seen"), [("x ", "x\\s{1}"), (" x" + " " * 20, "\\s{1}x\\s{20}"), ("  ", "\\s{2}")]
)
def test_case_16_spaces_at_the_ends_of_a_name_or_text_are_shown_and_badged(
    name: str, line: str, raw: str, seen: str
) -> None:
    base = HELDS["request"] if name in ONLY_OF_REQUESTS else PLAIN
    changed: dict[str, Any] = {name: raw}
    view = view_of(replace(base, **changed))

    assert f"\n{line}: {seen}\n" in view.text
    assert "padding" in view.badges
    if name in ("tool", "agent", "asked", "reason", "question"):
        assert view.must_read
        assert not view_of(replace(base, **changed), 2).must_read, "what was opened stays as it was"


@pytest.mark.parametrize("held", HELDS.values(), ids=HELDS)
def test_case_16_no_line_of_a_view_ends_with_a_space(held: Held) -> None:
    assert not [line for line in view_of(held).text.splitlines() if line.endswith(" ")]


def test_view_of_a_value_that_says_none_is_not_that_of_no_value() -> None:
    assert "\nuser: \\u{28}none)\n" in view_of(replace(PLAIN, user="(none)")).text
    assert "\nuser: (none)\n" in view_of(replace(PLAIN, user="")).text


def test_values_that_python_holds_for_equal_are_shown_as_what_they_are() -> None:
    assert lines_of([1, True, 0, False, None, "1", 1.5], Badges()) == ['[1, true, 0, false, null, "1", 1.5]']
    long = [1, True, 0, False, "x" * 60, True, 1]
    assert lines_of(long, Badges())[1].startswith("  1, true, 0, false")
