"""The branches compared: the same decision of another person is the same, another verdict is told as one."""

from __future__ import annotations

from ops.fork.definitions import definition_of, document_for, place_of
from ops.fork.diff import compare, short
from ops.fork.drive import Stop
from ops.fork.recorded import Result
from ops.fork.stubs import Stub, Used
from tests.domain.world import OLGA, RULES, published, rule
from tests.ops.fork.story import Story


def original() -> Story:
    story = Story()
    story.paid("pay", {"receipt": "R-1"}, amount=5)
    story.propose("read", "read", path="a")
    story.run("read", "text")
    story.decide(story.propose("again", "pay", amount=6), "reject")
    return story


def test_same_words_of_another_person_are_the_same() -> None:
    fork = Story()
    fork.decide(fork.propose("pay", "pay", amount=5), "approve", OLGA, feedback="fork")
    fork.run("pay", {"receipt": "R-1"})
    fork.propose("read", "read", path="a")
    fork.run("read", "text")
    fork.decide(fork.propose("again", "pay", amount=6), "reject", OLGA)

    rows = compare(original().read(), fork.read(), None, {}, {})

    assert [(row.call_id, row.relation) for row in rows] == [
        ("pay", "same"),
        ("read", "same"),
        ("again", "same"),
    ]
    assert rows[0].original.decisions == ("approve of rita",)
    assert rows[0].fork is not None
    assert rows[0].fork.decisions == ("approve of olga",)


def test_another_decision_verdict_result_and_what_was_not_reached_are_told() -> None:
    fork = Story()
    fork.decide(fork.propose("pay", "pay", amount=5), "reject", OLGA)
    strict = [rule("looks", "read", "hold"), *RULES]
    fork.world.definitions = published(fork.world.definitions, strict)
    fork.decide(fork.propose("read", "read", path="a"), "approve", OLGA)
    used, stub = Used("path", "a", "pay"), Stub(Result("succeeded", "1"), None)

    rows = compare(
        original().read(),
        fork.read(),
        Stop("read", "no_recorded_result", "why"),
        {"read": stub},
        {"read": [used]},
    )

    assert [(row.call_id, row.relation, row.differs) for row in rows] == [
        ("pay", "different", ("decision", "outcome")),
        ("read", "different", ("verdict", "decision", "outcome")),
        ("again", "not_reached", ()),
    ]
    assert rows[1].fork is not None
    assert rows[1].fork.status == "no_recorded_result"
    assert (rows[1].used, rows[1].is_assumed, rows[2].fork) == ((used,), True, None)
    assert all(row.is_looked_at for row in rows)


def test_call_of_whose_values_nothing_is_known_is_told_as_such() -> None:
    rows = compare(original().read(), original().read(), None, {}, {"pay": None})

    assert [(row.call_id, row.used, row.is_looked_at) for row in rows][:2] == [
        ("pay", (), False),
        ("read", (), True),
    ]


def test_edited_arguments_are_told() -> None:
    fork = Story()
    hold = fork.propose("pay", "pay", amount=5)
    fork.decide(hold, "edit", OLGA, edited_arguments='{"amount":4}')

    row = compare(original().read(), fork.read(), None, {}, {})[0]

    assert row.differs == ("decision", "arguments", "outcome")


def test_rule_is_compared_without_the_policy_that_has_another_version_in_the_fork() -> None:
    assert short("payments/payments@3/large") == short("fork-x/payments@1/large") == "large"
    assert short("execution:1f") == short("execution:2e") == "remembered"


def test_label_of_a_policy_says_whose_it_is() -> None:
    assert place_of("p@3") == (None, "p", 3)
    assert place_of("payments/p@12") == ("payments", "p", 12)


def test_policy_and_tool_are_published_without_what_belongs_to_the_original() -> None:
    document = {"policy": "p", "scope": {"project": "pay*", "agent": "bot"}, "rules": []}
    assert document_for(document) == {"policy": "p", "rules": [], "scope": {"agent": "bot"}}
    assert document_for({"policy": "p", "scope": {"project": "x"}}) == {"policy": "p"}
    raw = {"name": "pay", "description": None, "version": 3, "project": "x", "tool_version": "-"}
    assert definition_of(raw) == {"name": "pay"}
