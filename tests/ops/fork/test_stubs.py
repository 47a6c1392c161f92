"""Which recorded result a call of the fork gets, and which of its values came out of one that the fork lacks."""

from __future__ import annotations

from typing import Any

import pytest

from ops.fork.point import Instead, find_point
from ops.fork.recorded import Result
from ops.fork.stubs import Stubs, Used, Values, sealed_paths
from tests.ops.fork.story import Story

SECRET = {"handle": "sec_" + "0" * 32, "commitment": "0" * 64}


def paid_twice() -> Story:
    story = Story()
    story.paid("first", {"receipt": "R-1"}, amount=5)
    story.paid("second", {"receipt": "R-2"}, amount=5)
    story.decide(story.propose("third", "pay", amount=7), "reject")
    story.decide(story.propose("fourth", "pay", amount=5), "approve")
    return story


def stubs_of(story: Story, instead: Instead, at: str = "third") -> Stubs:
    run = story.read()
    return Stubs(run, find_point("x", run, at), instead)


def test_call_gets_its_own_result_else_that_of_the_first_equal_one() -> None:
    stubs = stubs_of(paid_twice(), Instead("approve"))

    assert stubs.of("second", "pay", '{"amount":5}') == (Result("succeeded", '{"receipt":"R-2"}'), "second")
    assert stubs.of("fourth", "pay", '{"amount":5}') == (Result("succeeded", '{"receipt":"R-1"}'), "first")
    assert stubs.of("third", "pay", '{"amount":7}') is None
    assert stubs.of("first", "pay", '{"amount":6}') is None
    assert stubs.of("first", "wire", '{"amount":5}') is None


def test_assumed_result_is_of_the_replaced_call_alone_and_only_without_a_recorded_one() -> None:
    stubs = stubs_of(paid_twice(), Instead("approve", is_assumed=True, output=None))

    assert stubs.of("third", "pay", '{"amount":7}') == (Result("succeeded", "null"), None)
    assert stubs.of("fourth", "pay", '{"amount":6}') is None
    recorded = stubs_of(paid_twice(), Instead("approve", is_assumed=True, output=3), at="first")
    assert recorded.of("first", "pay", '{"amount":5}') == (
        Result("succeeded", '{"receipt":"R-1"}'),
        "first",
    )


def test_edited_call_has_its_result_under_the_arguments_with_which_it_ran() -> None:
    story = Story()
    story.decide(story.propose("c", "pay", amount=5), "edit", edited_arguments='{"amount":4}')
    story.run("c", "paid")
    stubs = stubs_of(story, Instead("approve"), at="c")

    assert stubs.of("c", "pay", '{"amount":5}') is None
    assert stubs.of("c", "pay", '{"amount":4}') == (Result("succeeded", '"paid"'), "c")


def filed(request: str = "Pay the March invoice") -> Story:
    story = Story(request)
    story.propose("look", "read", path="march.pdf")
    story.run("look", {"iban": "GB29 NWBK 6016"})
    story.paid("pay", {"receipt": "R-7731"}, amount=5, to="GB29 NWBK 6016")
    story.propose("file", "read", receipt_id="R-7731", account="GB29 NWBK 6016", page=3)
    story.run("file", "filed")
    return story


def test_value_out_of_a_result_that_the_branch_lacks_is_named() -> None:
    run = filed().read()
    values = Values(run)
    values.got["look"] = run.calls["look"].result or Result("", "")

    assert values.used_by(run.calls["file"]) == (Used("receipt_id", "R-7731", "pay"),)
    assert values.used_by(run.calls["pay"]) == ()


def test_value_that_the_branch_has_or_that_people_said_is_not_named() -> None:
    run = filed().read()
    values = Values(run)
    for name in ("look", "pay"):
        values.got[name] = run.calls[name].result or Result("", "")
    assert values.used_by(run.calls["file"]) == ()

    said = filed("Pay, and file receipt R-7731").read()
    assert Used("receipt_id", "R-7731", "pay") not in (Values(said).used_by(said.calls["file"]) or ())


def test_another_result_of_the_same_call_does_not_have_the_recorded_values() -> None:
    run = filed().read()
    values = Values(run)
    values.got["look"] = run.calls["look"].result or Result("", "")
    values.got["pay"] = Result("succeeded", '{"receipt":"R-9"}')

    assert values.used_by(run.calls["file"]) == (Used("receipt_id", "R-7731", "pay"),)


def test_result_too_long_to_be_looked_at_counts_as_the_source_and_not_as_known() -> None:
    story = Story()
    story.paid("pay", "word " * 20_000, amount=5)
    story.propose("file", "read", receipt_id="R-7731")
    run = story.read()
    values = Values(run)

    assert values.used_by(run.calls["file"]) == (Used("receipt_id", "R-7731", "pay"),)
    values.got["other"] = Result("succeeded", '"' + "word " * 20_000 + '"')
    assert values.used_by(run.calls["file"]) == (Used("receipt_id", "R-7731", "pay"),)


def test_value_of_an_answer_or_an_earlier_proposal_is_not_named() -> None:
    story = Story()
    story.ask("which", "R-7731")
    story.propose("before", "read", receipt_id="R-7732")
    story.run("before", "nothing")
    story.paid("pay", {"receipts": ["R-7731", "R-7732", "R-7733"]}, amount=5)
    for number in (1, 2, 3):
        story.propose(f"file{number}", "read", receipt_id=f"R-773{number}")
    run = story.read()

    named = {name: Values(run).used_by(run.calls[name]) for name in ("file1", "file2", "file3")}

    assert {name for name, used in named.items() if used} == {"file3"}


@pytest.mark.parametrize(
    ("returned", "arguments", "shown"),
    [
        (
            {"iban": "GB29NWBK60161331926819"},
            {"iban": "GB29 NWBK 6016 1331 9268 19"},
            "GB29 NWBK 6016 1331 9268 19",
        ),
        (
            {"iban": "GB29NWBK60161331926819"},
            {"body": "to GB29 NWBK 6016 1331 9268 19"},
            "GB29NWBK60161331926819",
        ),
        ({"mail": "ann@evil.example"}, {"to": "ann+x@evil.example"}, "ann+x@evil.example"),
        (
            {"url": "https://evil.example/hook"},
            {"url": "https://evil.example/hook?a=1"},
            "https://evil.example/hook?a=1",
        ),
        ("echo rm " * 400, {"script": "echo rm " * 400}, ("echo rm " * 400)[:200] + "…"),
    ],
    ids=["account", "account in a text", "tag", "query", "long"],
)
def test_value_is_recognised_by_what_gives_it_away(
    returned: Any, arguments: dict[str, Any], shown: str
) -> None:
    # The host of a URL is a value of its own.
    story = Story("Tell evil.example")
    story.paid("pay", returned, amount=5)
    story.propose("file", "read", **arguments)
    run = story.read()

    (path,) = arguments
    assert Used(path, shown, "pay") in (Values(run).used_by(run.calls["file"]) or ())


def test_call_whose_values_are_not_looked_at_is_named_as_such_unless_nothing_is_lacking() -> None:
    story = Story()
    story.propose("before", "read", **{f"name{n}": f"word{n}" for n in range(40)})
    story.paid("pay", {"receipt": "R-7731"}, amount=5)
    story.propose("file", "read", **{f"name{n}": f"word{n}" for n in range(40)})
    run = story.read()

    assert Values(run).used_by(run.calls["before"]) == ()
    assert Values(run).used_by(run.calls["file"]) is None
    values = Values(run)
    values.got["pay"] = run.calls["pay"].result or Result("", "")
    assert values.used_by(run.calls["file"]) == ()


def test_sealed_values_are_found_at_any_depth() -> None:
    assert sealed_paths({"a": [{"key": SECRET}], "b": 1}) == ("/a/0/key",)
    assert sealed_paths({"a": {"handle": "x"}}) == ()
