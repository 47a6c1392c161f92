"""The decision that is replaced: found by every id of it, and refused where there is none to replace."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ops.fork.errors import DecisionNotFoundError, NotReplaceableError
from ops.fork.point import Instead, find_point
from ops.fork.recorded import read_run
from ops.fork.saying import Sayings
from schemas import commands as k
from schemas.canonical import canonical
from tests.domain.steps import ask_two, consumed
from tests.domain.world import CLARA, OLGA, World, published, rule, the
from tests.ops.fork.story import Story


def test_decision_is_found_by_each_of_its_ids_and_by_a_unique_beginning() -> None:
    story = Story()
    story.propose("look", "read", path="a")
    decision = story.paid("c1", 1)
    story.decide(story.propose("d2", "pay", amount=7), "reject")
    run = story.read()
    event_id = next(event.meta.event_id for event in story.world.events if event.type == "DecisionRecorded")

    names = (decision.decision_id, decision.hold_id, event_id, "c1", "c", decision.decision_id[:12])
    found = [find_point("x", run, name) for name in names]

    assert {(point.call.call_id, point.number, point.name) for point in found} == {
        ("c1", 0, decision.decision_id)
    }
    assert found[0].said == "approve of rita"


def test_call_with_several_decisions_has_to_be_named_by_one_of_them() -> None:
    story = Story()
    first = story.decide(story.propose("c", "pay", amount=5), "approve")
    strict = [rule("payments", "pay", "hold", roles=["cfo"])]
    story.world.definitions = published(story.world.definitions, strict)
    digest = story.world.state().calls["c"].digest
    again = the(consumed(story.world, digest, call_id="c"), "HoldOpened")
    second = story.decide(again, "approve", CLARA)
    run = story.read()

    with pytest.raises(DecisionNotFoundError, match="fits 2 decisions"):
        find_point("x", run, "c")
    assert find_point("x", run, first.decision_id).number == 0
    assert find_point("x", run, second.decision_id).number == 1


def test_planted_call_is_not_replaceable() -> None:
    story = Story()
    story.decide(story.propose("d", "pay", amount=7), "reject")
    run = story.read()
    (call,) = run.calls.values()
    first = call.events[0]
    assert first.body is call.proposed
    planted = first._replace(body=call.proposed.model_copy(update={"probe": "{}"}))
    run = replace(run, steps=(replace(call, events=(planted, *call.events[1:])),))

    with pytest.raises(NotReplaceableError, match="was planted"):
        find_point("x", run, "d")


def test_planted_call_is_recognised_by_what_the_api_tells_of_it() -> None:
    story = Story()
    # A planted call has a run of its own.
    story.world = World()
    arguments = canonical({"amount": 7})
    plant = k.PlantProbe(agent="bot", call_id="d", tool="pay", arguments=arguments, note="a stranger")
    bodies = story.world.ask(plant, OLGA)
    story.decide(the(bodies, "HoldOpened"), "reject")
    items = story.items()
    for item in items:
        # Whose events these are must not be told while people are asked.
        item["data"].pop("probe", None)

    with pytest.raises(NotReplaceableError, match="was planted"):
        find_point("x", read_run("x", items), "d")


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("look", "the policy said allow"),
        ("banned", "the policy said deny"),
        ("which", "is a question's answer"),
        ("open", "was not decided"),
    ],
)
def test_what_no_person_decided_is_not_replaceable(named: str, said: str) -> None:
    story = Story()
    story.propose("look", "read", path="a")
    story.propose("banned", "drop")
    story.ask("which", "rent")
    story.propose("open", "pay", amount=5)

    with pytest.raises(NotReplaceableError, match=said):
        find_point("x", story.read(), named)


def test_unknown_decision_is_refused_and_the_others_are_listed() -> None:
    story = Story()
    decision = story.paid("c", 1)

    with pytest.raises(DecisionNotFoundError, match=decision.decision_id):
        find_point("x", story.read(), "nothing-of-it")


def test_other_event_of_a_decided_call_is_not_its_decision() -> None:
    story = Story()
    decision = story.paid("c", 1)
    proposed = next(event.meta.event_id for event in story.world.events if event.type == "ToolCallProposed")

    with pytest.raises(DecisionNotFoundError, match=decision.decision_id):
        find_point("x", story.read(), proposed)


def test_one_vote_of_several_is_not_the_decision() -> None:
    story = Story()
    ask_two(story.world)
    hold = story.propose("c", "pay", amount=5)
    first = story.decide(hold, "approve")
    second = story.decide(hold, "approve", OLGA)
    run = story.read()

    with pytest.raises(NotReplaceableError, match="one of several votes"):
        find_point("x", run, first.decision_id)
    assert find_point("x", run, second.decision_id).said == "approve of rita and olga"


def test_word_about_a_call_in_doubt_is_a_fact_and_not_replaceable() -> None:
    story = Story()
    story.decide(story.propose("c", "pay", amount=5), "approve")
    digest = story.world.state().calls["c"].digest
    story.world.ask(k.ConsumeGrant(call_id="c", digest=digest, attempt_id="a"))
    bodies = story.world.ask(k.ReportResult(call_id="c", attempt_id="a", outcome="unknown", error="lost"))
    doubt = the(bodies, "HoldOpened")

    with pytest.raises(NotReplaceableError, match="that is a fact"):
        find_point("x", story.read(), doubt.hold_id)


def test_hold_that_expired_can_be_decided_in_a_fork() -> None:
    story = Story()
    hold = story.propose("c", "pay", amount=5)
    story.expire(hold)

    point = find_point("x", story.read(), "c")

    assert (point.said, point.name) == ("expiry", hold.hold_id)


def sayings(story: Story, at: str, instead: Instead) -> Sayings:
    run = story.read()
    return Sayings("x", find_point("x", run, at), instead)


def test_every_decision_says_whose_it_was_and_where_the_fork_is_from() -> None:
    story = Story()
    first = story.paid("first", 1)
    story.decide(story.propose("second", "pay", amount=7), "reject", feedback="paid already")
    story.decide(story.propose("third", "pay", amount=8), "edit", edited_arguments='{"amount":2}')
    run = story.read()
    said = Sayings("x", find_point("x", run, "first"), Instead("reject", "not due"))
    prefix = f"fork of x at {first.decision_id}: "

    one = said.on(said.point.call, 0)
    assert one is not None
    assert (one.word, one.comment) == (
        "reject",
        f"{prefix}reject in place of the recorded approve of rita: not due",
    )
    second = said.on(run.calls["second"], 0)
    assert second is not None
    assert (second.word, second.comment) == ("reject", f"{prefix}recorded reject of rita: paid already")
    third = said.on(run.calls["third"], 0)
    assert third is not None
    assert (third.word, third.arguments) == ("edit", {"amount": 2})


def test_hold_that_the_original_did_not_have_is_decided_as_the_original_went_on() -> None:
    story = Story()
    story.propose("read", "read", path="a")
    story.propose("banned", "drop")
    story.paid("c", 1)
    story.propose("open", "pay", amount=5)
    run = story.read()
    said = Sayings("x", find_point("x", run, "c"), Instead("reject"))

    words = {}
    for name in ("read", "banned", "open"):
        one = said.on(run.calls[name], 0)
        words[name] = None if one is None else (one.word, one.comment.partition(": ")[2])

    assert words == {
        "read": ("approve", "policy had released it"),
        "banned": ("reject", "policy had denied it: rule bans says deny"),
        "open": None,
    }


def test_edited_call_that_asks_again_is_approved_by_the_same_person() -> None:
    story = Story()
    story.paid("c", 1)
    said = sayings(story, "c", Instead("edit", "", {"amount": 4}))

    first, second = said.on(said.point.call, 0), said.on(said.point.call, 1)

    assert first is not None
    assert second is not None
    assert (first.word, first.arguments) == ("edit", {"amount": 4})
    assert (second.word, second.arguments) == ("approve", None)


def test_expiry_is_repeated_as_a_rejection_that_says_so() -> None:
    story = Story()
    late = story.propose("late", "pay", amount=6)
    story.expire(late)
    story.paid("c", 1)
    said = sayings(story, "c", Instead("reject"))

    one = said.on(story.read().calls["late"], 0)

    assert one is not None
    assert (one.word, one.comment.partition(": ")[2]) == ("reject", "nobody had decided in time")
