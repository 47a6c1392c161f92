"""What trust releases after what people have said: never a call whose parts were approved, but not together so."""

from __future__ import annotations

from typing import Any

import pytest

from schemas import commands as k
from tests.domain.counting import (
    ENOUGH,
    ENOUGH_OF_NEW,
    answer,
    history,
    is_released,
    learning,
    propose,
)
from tests.domain.steps import decided
from tests.domain.trusting import outcome
from tests.domain.world import RITA, published, the


def test_known_call_is_released_and_a_new_recipient_is_not() -> None:
    world, _ = learning()
    answer(world, "approve", {"to": "bob"}, ENOUGH)

    assert is_released(world, {"to": "bob"})
    assert not is_released(world, {"to": "mallory"})


def test_approvals_of_new_files_say_nothing_about_new_recipients() -> None:
    world, _ = learning()
    for number in range(ENOUGH_OF_NEW):
        answer(world, "approve", {"user": "bob", "file": f"report-{number}.pdf"})

    assert is_released(world, {"user": "bob", "file": "another.pdf"})
    found = propose(world, {"user": "mallory", "file": "report-0.pdf"})
    assert the(found, "PolicyVerdictIssued").trust_class == "file=text&user=text&risk=novel:user,writes"
    assert not is_released(world, {"user": "mallory", "file": "/etc/shadow"})


KINDS = {"properties": {"priority": {"enum": ["low", "high"]}}}


@pytest.mark.parametrize(
    ("approved", "proposed"),
    [
        # A file and a person, each of which was approved with another.
        (
            [{"user": "bob", "file": "menu.pdf"}, {"user": "eve", "file": "salaries.pdf"}],
            {"user": "bob", "file": "salaries.pdf"},
        ),
        # A flag that was approved with another file, and one that was not given then.
        (
            [{"file": "ledger.db", "delete": False}, {"file": "tmp.log", "delete": True}],
            {"file": "ledger.db", "delete": True},
        ),
        ([{"file": "ledger.db"}, {"file": "tmp.log", "delete": True}], {"file": "ledger.db", "delete": True}),
        # A listed text under a name of prose.
        (
            [{"page": "cron", "priority": "low"}, {"page": "backup", "priority": "high"}],
            {"page": "cron", "priority": "high"},
        ),
        # Three of which each two were approved together.
        (
            [
                {"a": "1x", "b": "2x", "c": "9x"},
                {"a": "1x", "b": "9x", "c": "3x"},
                {"a": "9x", "b": "2x", "c": "3x"},
            ],
            {"a": "1x", "b": "2x", "c": "3x"},
        ),
        (
            [{"to": ["bob"], "file": "menu.pdf"}, {"to": ["eve"], "file": "pay.pdf"}],
            {"to": ["eve"], "file": "menu.pdf"},
        ),
        # To more people together than before.
        (
            [{"to": ["bob"], "file": "menu.pdf"}, {"to": ["eve"], "file": "menu.pdf"}],
            {"to": ["bob", "eve"], "file": "menu.pdf"},
        ),
    ],
)
def test_values_that_were_approved_apart_are_asked_about_until_they_are_approved_together(
    approved: list[Any], proposed: Any
) -> None:
    world, _ = learning(KINDS)
    for arguments in approved * 3:
        answer(world, "approve", arguments, ENOUGH)
    assert all(is_released(world, arguments) for arguments in approved)

    bodies = propose(world, proposed)
    assert (history(bodies).parts, outcome(bodies).result) == ((), "asked")
    assert "but not together in such a call" in outcome(bodies).why
    decided(world, the(bodies, "HoldOpened"), "approve")
    assert is_released(world, proposed)


@pytest.mark.parametrize(
    ("approved", "proposed"),
    [
        # The dear currency was approved for bob, and much of it for another.
        (
            [
                {"user": "bob", "currency": "KWD", "amount": 101},
                {"user": "bob", "currency": "JPY", "amount": 999},
                {"user": "eve", "currency": "KWD", "amount": 999},
            ],
            {"user": "bob", "currency": "KWD", "amount": 999},
        ),
        # Many cheap ones, and few dear ones.
        (
            [{"sku": "disk", "quantity": 10, "price": 999}, {"sku": "disk", "quantity": 99, "price": 100}],
            {"sku": "disk", "quantity": 99, "price": 999},
        ),
        ([{"quantity": 10, "price": 999}, {"quantity": 99, "price": 100}], {"quantity": 99, "price": 999}),
        # As many of as much as before, in one of the ranges, and of another sum.
        ([{"to": "bob", "amounts": [900] + [101] * 8}], {"to": "bob", "amounts": [101] + [900] * 8}),
        (
            [{"to": "bob", "amounts": [999, 101, 102, 103, 104]}],
            {"to": "bob", "amounts": [999, 998, 997, 996, 995]},
        ),
        (
            [{"user": "bob", "rights": [True, False, False, False]}],
            {"user": "bob", "rights": [True, True, True, False]},
        ),
        ([{"bucket": "logs", "older_than_days": "90"}], {"bucket": "logs", "older_than_days": "10"}),
        ([{"bucket": "logs", "older_than_days": 90}], {"bucket": "logs", "older_than_days": "10"}),
        ([{"manifest": "a:\n  b:\n    c: 1\n"}], {"manifest": "a:\n  b:\n  c: 1\n"}),
        ([{"path": "/data/a b"}], {"path": "/data/a  b"}),
        ([{"job": "wipe", "start_time": "0 3 1 1 *"}], {"job": "wipe", "start_time": "* * * * *"}),
        ([{"query": "SELECT name FROM users"}], {"query": "DROP TABLE users"}),
    ],
)
def test_numbers_and_texts_that_were_approved_otherwise_are_asked_about(
    approved: list[Any], proposed: Any
) -> None:
    world, _ = learning()
    for arguments in approved * 3:
        answer(world, "approve", arguments, ENOUGH)

    assert all(is_released(world, arguments) for arguments in approved)
    assert not is_released(world, proposed)


def test_numbers_between_those_of_two_approved_calls_are_released() -> None:
    world, _ = learning()
    for quantity, price in ((10, 100), (99, 999)):
        answer(world, "approve", {"sku": "disk", "quantity": quantity, "price": price}, ENOUGH)
    assert is_released(world, {"sku": "disk", "quantity": 50, "price": 400})


@pytest.mark.parametrize(
    "reply",
    [
        {"anyOf": [{"const": f"k{number}"} for number in range(9)] + [{"enum": ["a_keep", "a_delete"]}]},
        {"anyOf": [{"$ref": f"#/$defs/R{number}"} for number in range(6)]},
        {"if": {"minLength": 1}, "then": {"enum": ["a_keep", "a_delete"]}},
        {"anyOf": [{"const": f"k{number}"} for number in range(99)] + [{"enum": ["a_keep", "a_delete"]}]},
    ],
)
def test_what_a_schema_lists_is_seen_wherever_it_does_or_nothing_is_released(reply: Any) -> None:
    kinds = {f"R{number}": {"const": ("a_keep", "a_delete")[number % 2]} for number in range(6)}
    world, _ = learning({"$defs": kinds, "properties": {"reply": reply}})
    answer(world, "approve", {"reply": "a_keep"}, ENOUGH_OF_NEW)
    assert not is_released(world, {"reply": "a_delete"})


def test_approvals_of_calls_that_are_not_looked_at_earn_no_trust() -> None:
    world, _ = learning()
    for number in range(3):
        bodies = propose(world, {"to": [f"friend{number}-{each}" for each in range(40)]})
        verdict = the(bodies, "PolicyVerdictIssued")
        assert (history(bodies).is_whole, verdict.trust_class) == (False, "")
        assert outcome(bodies).why == "it has values that are not looked at"
        decided(world, the(bodies, "HoldOpened"), "approve")


def test_known_values_are_released_with_fewer_others_than_they_were_approved_with() -> None:
    world, _ = learning()
    answer(world, "approve", {"to": ["bob", "eve"], "file": "menu.pdf"}, ENOUGH)
    assert is_released(world, {"to": ["eve"], "file": "menu.pdf"})


def test_approval_of_values_together_counts_no_more_after_a_rejection() -> None:
    world, _ = learning()
    both, others = (
        {"user": "bob", "file": "pay.pdf"},
        [
            {"user": "bob", "file": "menu.pdf"},
            {"user": "eve", "file": "pay.pdf"},
        ],
    )
    for arguments in (*others, both):
        answer(world, "approve", arguments, ENOUGH)
    assert is_released(world, both)

    hold = _held(world, both)
    decided(world, hold, "reject")
    for arguments in others:
        answer(world, "approve", arguments, ENOUGH_OF_NEW)
    assert all(is_released(world, arguments) for arguments in others)
    assert "not together in such a call" in outcome(propose(world, both)).why


def _held(world: Any, arguments: dict[str, Any]) -> Any:
    """The hold of a call that trust would release."""
    world.definitions = _without_trust(world)
    hold = the(propose(world, arguments), "HoldOpened")
    world.definitions = _with_trust(world)
    return hold


ITEM = {"properties": {"role": {"enum": ["admin", "reader"]}}}


@pytest.mark.parametrize(
    ("approved", "proposed"),
    [
        (
            [{"file": "tmp.log", "delete": True}, {"file": "ledger.db", "delete": False}],
            [{"file": "tmp.log", "delete": False}, {"file": "ledger.db", "delete": True}],
        ),
        (
            [{"user": "ceo", "role": "admin"}, {"user": "intern", "role": "reader"}],
            [{"user": "ceo", "role": "reader"}, {"user": "intern", "role": "admin"}],
        ),
        (
            [{"user": "ceo", "role": "admin"}, {"user": "intern", "role": "reader"}],
            [{"user": "intern", "role": "admin"}],
        ),
        (
            [{"to": "alice", "amount": 900}, {"to": "mallory", "amount": 101}],
            [{"to": "alice", "amount": 101}, {"to": "mallory", "amount": 900}],
        ),
        (
            [{"to": "alice", "amount": 900}, {"to": "mallory", "amount": 101}],
            [{"to": "mallory", "amount": 900}] * 9,
        ),
        ([{"to": "alice", "amount": 900}] * 2, [{"to": "alice", "amount": 900}] * 9),
        (
            [{"folder": "a", "keep": 1}, {"folder": "b", "keep": 2}],
            [{"folder": "a"}, {"keep": 1}],
        ),
        ([["alice", 900], ["mallory", 1]], [["alice", 1], ["mallory", 900]]),
        ([["alice", 900], ["mallory", 101]], [["mallory", 900]]),
        ([["alice", 900], ["mallory", 101]], ["mallory", 900]),
        (
            [{"to": "alice", "amount": 900}, {"to": "mallory", "amount": 101}],
            [{"to": "mallory", "amount": 900}],
        ),
        ([[{"to": "alice"}], [{"to": "mallory"}]], [[{"to": "mallory"}]]),
        ([101, 500], [499.5, 498.5, 497, 496, 495, 494, 493, 492, 491]),
    ],
)
def test_items_of_a_list_are_known_as_they_were_together(approved: Any, proposed: Any) -> None:
    world, _ = learning({"properties": {"items": {"items": ITEM}}})
    answer(world, "approve", {"items": approved}, ENOUGH_OF_NEW)

    assert is_released(world, {"items": approved})
    assert not is_released(world, {"items": proposed})


def test_many_different_lists_of_objects_teach_nothing_about_others() -> None:
    world, _ = learning()
    for number in range(ENOUGH_OF_NEW):
        rows = [{"to": "alice", "amount": 900 - number}, {"to": "mallory", "amount": 101 + number}]
        answer(world, "approve", {"items": rows})
    assert not is_released(
        world, {"items": [{"to": "mallory", "amount": 900}, {"to": "alice", "amount": 101}]}
    )
    assert not is_released(world, {"items": [{"to": "mallory", "amount": 900}]})


def test_call_with_new_values_at_many_arguments_can_earn_trust() -> None:
    world, _ = learning()
    arguments = {f"customer_address_line_{number}": f"text {number}" for number in range(14)}
    answer(world, "approve", arguments, ENOUGH_OF_NEW)
    assert is_released(world, arguments)


def test_rejection_of_a_call_in_no_class_counts_against_its_values() -> None:
    world, counted = learning()
    answer(world, "approve", {"to": "mallory", "amount": 50})
    answer(world, "approve", {"to": "bob", "amount": 50}, ENOUGH_OF_NEW)
    assert is_released(world, {"to": "mallory", "amount": 50})

    padded = {"to": "mallory", "amount": 50, "tags": [1, 20, 300, 4_000, 50_000]}
    counted.is_late = True
    for _ in range(3):
        bodies = propose(world, padded)
        assert the(bodies, "PolicyVerdictIssued").trust_class == ""
        decided(world, the(bodies, "HoldOpened"), "reject")

    assert history(propose(world, {"to": "mallory", "amount": 50})).opposed == ("to",)
    counted.is_late = False
    assert history(propose(world, {"to": "mallory", "amount": 50})).opposed == ("to",)
    assert is_released(world, {"to": "bob", "amount": 50})


@pytest.mark.parametrize(
    "proposed",
    [
        {"folder": ""},
        {"folder": " "},
        {"folder": "\u3000"},
        {"folder": "\x1f"},
        {"folder": ["tmp-1", ""]},
        {"folder": [""]},
        {"": {"folder": "tmp-1"}},
        {"": {"": {"folder": "tmp-1"}}},
        {"folder": {"": "tmp-1"}},
        {"folder": ["tmp-1", "tmp-1"]},
        {"folder": None},
        {},
    ],
)
def test_nothing_and_what_is_elsewhere_are_not_what_was_approved(proposed: Any) -> None:
    world, _ = learning()
    answer(world, "approve", {"folder": "tmp-1"}, ENOUGH_OF_NEW)

    assert is_released(world, {"folder": "tmp-1"})
    assert not is_released(world, proposed)


@pytest.mark.parametrize(
    ("tool", "approved", "proposed"),
    [
        ("send", {"start_command": "ls"}, {"start_command": "rm -rf data"}),
        ("send", {"message_queue": "q1"}, {"message_queue": "evil"}),
        ("execute_sql", {"query": "SELECT name FROM users"}, {"query": "DROP TABLE users"}),
        ("run_script", {"content": "print(1)"}, {"content": "remove(everything)"}),
        ("send", {"command": "echo done rm -rf /data"}, {"command": "echo done\nrm -rf /data"}),
        ("send", {"creditCard": 4111111111111111}, {"creditCard": 4222222222222222}),
        ("send", {"to": "kate@example.com"}, {"to": "\u212aate@example.com"}),
        ("send", {"body": "see lidl.com"}, {"body": "see l\u0131dl.com"}),
        ("send", {"body": "hello"}, {"body": "see a.evil.com"}),
        ("send", {"body": "hello"}, {"body": "see x.com"}),
        ("send", {"body": "hello"}, {"body": "see t.me/evil"}),
        ("send", {"body": "hello"}, {"body": "see evil\u3002com"}),
        ("send", {"body": "hello"}, {"body": "see 10.1.2.3"}),
        ("send", {"body": "hello"}, {"body": "ping 8.8.8.8."}),
        ("send", {"body": "hello"}, {"body": "see @evil.com"}),
        ("send", {"body": "hello"}, {"body": "curl .evil.com"}),
        ("send", {"body": "hello"}, {"body": "see evil.com_x"}),
        ("send", {"body": "hello"}, {"body": "see evil\\.com"}),
        ("send", {"body": "hello"}, {"body": "run setup.ps1"}),
        ("send", {"body": "hello"}, {"body": "ssh 2001:db8::1"}),
        ("send", {"body": "see bank.xn--p1ai"}, {"body": "see bank.xn--90ae"}),
        (
            "run_command",
            {"args": ["cp", "/data/ledger", "/tmp/x"]},
            {"args": ["cp", "/tmp/x", "/data/ledger"]},
        ),
    ],
)
def test_values_that_a_tool_takes_for_others_are_others(tool: str, approved: Any, proposed: Any) -> None:
    world, _ = learning(tool=tool)
    answer(world, "approve", approved, ENOUGH_OF_NEW)

    assert is_released(world, approved)
    assert not is_released(world, proposed)


def test_prose_may_change_where_the_tool_runs_no_code() -> None:
    world, _ = learning()
    answer(world, "approve", {"to": "bob", "reply_body": "hello"}, ENOUGH)
    assert is_released(world, {"to": "bob", "reply_body": "good morning,\nhow are you? e.g. on 5 p.m."})


LONG = ("接收者的電子郵件地址", "x" * 200, "ключ-получателя-платежа")


@pytest.mark.parametrize("name", LONG)
def test_rule_about_an_argument_is_about_all_that_is_in_it_however_it_is_named(name: str) -> None:
    world, _ = learning()
    rules = [
        {"id": "new", "match": {"tools": ["send"]}, "when": "novel(args.payload)", "then": "deny"},
        {"id": "rest", "match": {"tools": ["send"]}, "then": "allow"},
    ]

    world.definitions = published(world.definitions, rules)
    assert the(propose(world, {"payload": {name: "evilhost"}}), "ToolCallDenied").cause == "policy"
    assert the(propose(world, {"payload": {name: {name: ["evilhost"]}}}), "ToolCallDenied").cause == "policy"


def test_value_that_people_were_against_is_not_released_before_trust_has_weighed_it() -> None:
    world, counted = learning()
    for amount in (50, 500):
        answer(world, "approve", {"to": "mallory", "amount": amount})
        answer(world, "approve", {"to": "bob", "amount": amount}, ENOUGH_OF_NEW)
    assert is_released(world, {"to": "mallory", "amount": 50})

    hold = _held(world, {"to": "mallory", "amount": 500})
    is_released(world, {"to": "bob", "amount": 50})
    counted.is_late = True
    decided(world, hold, "reject")

    bodies = propose(world, {"to": "mallory", "amount": 50})
    assert history(bodies).opposed == ("to",)
    assert the(bodies, "HoldOpened")
    assert is_released(world, {"to": "bob", "amount": 50})


def _without_trust(world: Any) -> Any:

    return published(world.definitions, [{"id": "asks", "match": {"tools": ["send"]}, "then": "hold"}])


def _with_trust(world: Any) -> Any:

    rules = [{"id": "asks", "match": {"tools": ["send"]}, "then": "hold"}]
    return published(world.definitions, rules, adaptive={"sample_rate": 0})


def test_rejection_of_a_call_with_a_claim_closes_the_same_call_without_it() -> None:
    world, _ = learning()
    answer(world, "approve", {"to": "bob"}, ENOUGH)
    claim: dict[str, Any] = {"claims": '{"openWorldHint":true}'}
    answer(world, "reject", {"to": "bob"}, **claim)

    assert not is_released(world, {"to": "bob"})


def test_sample_that_waits_keeps_the_same_call_with_a_claim_asked() -> None:
    world, _ = learning()
    claim: dict[str, Any] = {"claims": '{"openWorldHint":true}'}
    answer(world, "approve", {"to": "bob"}, ENOUGH_OF_NEW, **claim)
    answer(world, "approve", {"to": "bob"}, ENOUGH_OF_NEW)
    assert is_released(world, {"to": "bob"}, **claim)

    rules = [{"id": "asks", "match": {"tools": ["send"]}, "then": "hold"}]
    world.definitions = published(world.definitions, rules, adaptive={"sample_rate": 1})
    hold = the(propose(world, {"to": "bob"}), "HoldOpened")
    world.definitions = _with_trust(world)

    assert not is_released(world, {"to": "bob"}, **claim)
    assert not is_released(world, {"to": "bob"})
    world.ask(k.DecideHold(hold_id=hold.hold_id, decision="approve", digest=hold.digest), RITA)
    assert is_released(world, {"to": "bob"})
