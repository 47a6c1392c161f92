"""What trust releases after what people have said: never a call whose parts were approved, but not together so."""

from __future__ import annotations

from typing import Any

import pytest

from schemas import commands as k
from tests.domain.counting import (
    ENOUGH,
    ENOUGH_OF_NEW,
    answer,
    held_although_trusted,
    history,
    is_released,
    learning,
    propose,
    word,
)
from tests.domain.steps import decided
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
    assert the(found, "PolicyVerdictIssued").trust_class == "file=~name&user=text&risk=novel:user,writes"
    assert not is_released(world, {"user": "mallory", "file": "/etc/shadow"})


def test_rejection_closes_the_class_whose_new_arguments_are_too_many_to_be_named() -> None:
    world, _ = learning()
    names = [f"addr_line__{chr(97 + number)}" for number in range(14)]
    for number in range(ENOUGH_OF_NEW):
        answer(world, "approve", {name: f"{word(number)} {name}" for name in names})
    assert is_released(world, {name: f"fresh a {name}" for name in names})

    found = propose(
        world, {name: f"evil {name}" if name in names[:2] else f"{word(0)} {name}" for name in names}
    )
    decided(world, the(found, "HoldOpened"), "reject")

    assert not is_released(world, {name: f"fresh b {name}" for name in names})


def test_known_address_in_a_text_does_not_hide_another_one_that_has_its_letters() -> None:
    world, _ = learning()
    answer(world, "approve", {"body": "see www.bank.co"}, ENOUGH)

    assert is_released(world, {"body": "look at www.bank.co"})
    assert not is_released(world, {"body": "see www.bank.co or login-www.bank.com"})


@pytest.mark.parametrize(
    ("approved", "proposed"),
    [
        ([{"comment": 10}, {"comment": 99}], {"comment": 42}),
        ([{"message": 1001}, {"message": 9999}], {"message": 4242}),
        ([{"note": "1001"}, {"note": "9999"}], {"note": "4242"}),
        ([{"note": 10}, {"note": 99}], {"note": "42"}),
    ],
)
def test_numbers_that_are_no_quantities_are_not_known_by_others_around_them(
    approved: Any, proposed: Any
) -> None:
    world, _ = learning()
    for arguments in approved:
        answer(world, "approve", arguments, ENOUGH)

    assert all(is_released(world, arguments) for arguments in approved)
    assert not is_released(world, proposed)


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

    padded = {"to": "mallory", "amount": 50, "more": {"a": {"b": {"c": {"d": 1}}}}}
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

    hold = held_although_trusted(world, {"to": "mallory", "amount": 500})
    is_released(world, {"to": "bob", "amount": 50})
    counted.is_late = True
    decided(world, hold, "reject")

    bodies = propose(world, {"to": "mallory", "amount": 50})
    assert history(bodies).opposed == ("to",)
    assert the(bodies, "HoldOpened")
    assert is_released(world, {"to": "bob", "amount": 50})


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
    world.definitions = published(world.definitions, rules, adaptive={"sample_rate": 0})

    assert not is_released(world, {"to": "bob"}, **claim)
    assert not is_released(world, {"to": "bob"})
    world.ask(k.DecideHold(hold_id=hold.hold_id, decision="approve", digest=hold.digest), RITA)
    assert is_released(world, {"to": "bob"})


@pytest.mark.parametrize("neighbour", ["", " 1x", " ref 7", "\u00a07", "-7"])
def test_rejected_reference_is_opposed_beside_another_number(neighbour: str) -> None:
    """A short code in prose is no new value, so that nothing else would ask about it."""
    world, counted = learning()
    answer(world, "approve", {"to": "bob", "note": "pay the rent"})
    counted.is_late = True
    answer(world, "reject", {"to": "eve", "note": "pay to 31926819"})

    again = {"to": "bob", "note": f"pay to 31926819{neighbour}, please"}
    assert history(propose(world, again)).opposed == ("note",)
    counted.is_late = False
    found = history(propose(world, again))
    assert found.opposed == ("note",)
    assert "note" not in found.novel
    assert history(propose(world, {"to": "bob", "note": "pay to 31926820, please"})).opposed == ()


@pytest.mark.parametrize(
    ("rejected", "approved", "proposed"),
    [
        ({"to": "Eve GB29NWBK60161331926819"}, "{} DE89370400440532013000", "Eva GB29NWBK60161331926819"),
        (
            {"to": "Eve GB29 NWBK 6016 1331 9268 19"},
            "{} DE89370400440532013000",
            "Eva GB29NWBK60161331926819",
        ),
        ({"to": "acct 99998888777766 ref a"}, "acct 31926819921144 ref {}", "acct 99998888777766 ref b"),
        ({"to": "acct 9999 8888 7777 66 7"}, "acct 3192 6819 9211 44 {}", "acct 9999 8888 7777 66"),
        ({"to": "Eve, evil.example"}, "{}, good.example", "Eva, evil.example"),
        ({"to": "https://evil.example/hook"}, "{}, good.example", "Eva, evil.example"),
        ({"to": "Eva, evil.example"}, "https://{}.example/hook", "https://evil.example/hook"),
        ({"to": "eve@gmail.com"}, "{}@gmail.com", "eve+a@gmail.com"),
        ({"to": "eve+a@gmail.com"}, "{}@gmail.com", "eve+b@gmail.com"),
        ({"to": "eve+a@gmail.com"}, "{}@gmail.com", "eve@gmail.com"),
        *(
            ({"to": "Eve GB29NWBK60161331926819"}, "{} DE89370400440532013000", again)
            for again in (
                "Eva AB34 GB29 NWBK 6016 1331 9268 19",
                "Eva GB29NWBK60161331926819 116",
                "Eva GB29NWBK60161331926819EUR",
            )
        ),
        *(
            ({"to": "Eve acct 99998888777766"}, "acct 31926819921144 {}", again)
            for again in ("acct99998888777766 eva", "Eva konto99998888777766", "Eva 99998888777766EUR5")
        ),
    ],
)
def test_rejected_account_does_not_come_back_in_other_words(
    rejected: dict[str, Any], approved: str, proposed: str
) -> None:
    world, _ = learning()
    decided(world, the(propose(world, rejected), "HoldOpened"), "reject")
    for number in range(2 * ENOUGH_OF_NEW):
        answer(world, "approve", {"to": approved.format(word(number))})

    assert history(propose(world, {"to": proposed})).opposed == ("to",)
    assert history(propose(world, {"to": approved.format("another")})).opposed == ()


def test_rejected_account_in_prose_does_not_come_back_without_what_stood_beside_it() -> None:
    world, _ = learning()
    decided(world, the(propose(world, {"body": "pay 9999 8888 7777 66 7"}), "HoldOpened"), "reject")
    for number in range(2 * ENOUGH_OF_NEW):
        answer(world, "approve", {"body": f"pay {31926819921144 + number}"})

    for again in ("pay 9999 8888 7777 66", "pay 9999 8888 7777 66 8", "Pay now: 999988887777667."):
        assert history(propose(world, {"body": again})).opposed == ("body",)


def test_account_within_a_value_does_not_make_a_text_known_that_looks_like_it() -> None:
    world, _ = learning()
    answer(world, "approve", {"to": "Bob GB29NWBK60161331926819"}, ENOUGH)

    for text in ("GB29NWBK60161331926819", "#GB29NWBK60161331926819", "\x1fGB29NWBK60161331926819"):
        assert history(propose(world, {"to": text})).novel == ("to",)
