"""Releases by trust: the checker computes each score again, from the words that the log has."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from ops.checker import check
from ops.checker.calls import digest_of
from schemas.adaptive import draw_of
from schemas.events import calls as c
from schemas.trust import ClassFact
from schemas.trust_score import Placed, posterior
from tests.ops.checker.builder import DEFINITIONS, EVENTS, START_MS, Story

KNOWN, NEW = "to=text&risk=writes", "to=text&risk=novel,writes"
SEED = "5e" * 16
ENOUGH = 13


def named(body: Any, name: str, **more: Any) -> Any:
    return body.model_copy(update={"call_id": name, **more})


def proposed(story: Story, name: str) -> c.ToolCallProposed:
    plain = story.proposed().model_copy(update={"call_id": name})
    story.digest = digest_of("acme", plain)
    return plain.model_copy(update={"digest": story.digest})


def ask(story: Story, name: str, trust_class: str = KNOWN, **more: Any) -> None:
    verdict = named(story.verdict("hold"), name, trust_class=trust_class, **more)
    story.says(proposed(story, name), verdict, named(story.hold(f"hold-{name}"), name))


def decide(story: Story, name: str, decision: str = "approve", by: str = "rita") -> None:
    word = named(story.decision(decision, by=by), name, hold_id=f"hold-{name}", digest=story.digest)
    ended = named(story.release(), name, digest=story.digest)
    if decision == "reject":
        ended = c.ToolCallDenied(call_id=name, revision=1, cause="rejected", feedback="", decision_id="d")
    story.says(word, ended)


def earned(count: int = ENOUGH, trust_class: str = KNOWN, by: str = "rita") -> Story:
    """A run in which people have approved so many calls of a class."""
    story = Story()
    story.publishes("rita", "rita", roles=["reviewer"])
    story.starts()
    for number in range(count):
        ask(story, f"{trust_class}-{number}", trust_class)
        decide(story, f"{trust_class}-{number}", by=by)
    return story


def trusted(
    story: Story,
    raising: int = ENOUGH,
    lowering: int = 0,
    trust_class: str = KNOWN,
    *,
    trust: dict[str, Any] | None = None,
    **outcome: Any,
) -> list[str]:
    """Let trust release a call by a score of so many words; what the checker says of the log."""
    kinds = ["approval"] * raising + ["failure"] * lowering
    facts = [ClassFact(offset=n, at_ms=START_MS, kind=kind, by=("rita",)) for n, kind in enumerate(kinds)]  # type: ignore[arg-type]
    found = posterior([Placed(0, fact) for fact in facts], START_MS)
    call = proposed(story, "trusted")
    cited = {
        **found._asdict(),
        "trust_class": trust_class,
        "contrary_at": "",
        "through": {"0": len(story.raws) - 1},
        **(trust or {}),
    }
    told = {
        "result": "released",
        "why": "trust is enough",
        "lower_bound": cited["lower_bound"],
        "required": 0.5,
        "floor": 0.5,
        "sample_rate": 0.0,
        "seed": SEED,
        "draw": draw_of(SEED, "trusted", 1, story.digest),
        **outcome,
    }
    verdict = named(
        story.verdict("allow"),
        "trusted",
        reason="trusted",
        trust_class=trust_class,
        trust=json.dumps(cited),
        adaptive=json.dumps(told),
    )
    release = named(story.release("policy"), "trusted", digest=story.digest)
    story.says(call, verdict, release)
    return [
        f"{one.invariant} {one.what}" for one in check({EVENTS: story.raws, DEFINITIONS: story.definitions})
    ]


NOT_GIVEN = ["I1 released by trust that the log does not give"]


def test_release_by_the_score_that_the_log_gives_finds_nothing() -> None:
    assert trusted(earned()) == []


@pytest.mark.parametrize(
    "story",
    [
        lambda: earned(ENOUGH - 1),
        lambda: earned(ENOUGH, NEW),
        lambda: earned(by="bot"),
    ],
    ids=["fewer", "of another class", "by the proposer"],
)
def test_release_by_words_that_are_not_there_is_a_violation(story: Callable[[], Story]) -> None:
    assert trusted(story()) == NOT_GIVEN


def test_release_after_a_rejection_is_a_violation_and_in_the_riskier_class_as_well() -> None:
    story = earned()
    ask(story, "rejected")
    decide(story, "rejected", "reject")
    assert trusted(story) == NOT_GIVEN

    riskier = earned(ENOUGH, NEW)
    ask(riskier, "rejected")
    decide(riskier, "rejected", "reject")
    assert trusted(riskier, trust_class=NEW) == NOT_GIVEN


def test_rejection_beyond_the_cited_offset_was_not_known_yet() -> None:
    story = earned()
    known = len(story.raws) - 1
    ask(story, "rejected")
    decide(story, "rejected", "reject")

    assert trusted(story, trust={"through": {"0": known}}) == []


def test_release_is_checked_by_what_its_part_kept_then_and_not_later() -> None:
    story = earned()
    known = len(story.raws) - 1
    for number in range(140):
        ask(story, f"later-{number}")
        decide(story, f"later-{number}")

    assert trusted(story, trust={"through": {"0": known}}) == []


def test_release_that_cites_what_was_not_read_is_left_out_of_a_log_that_moves() -> None:
    story = earned(ENOUGH - 1)

    assert trusted(story, trust={"through": {"0": len(story.raws) + 100}}) == []


@pytest.mark.parametrize("trust", [None, "{}", "[]", "no JSON", '{"trust_class": "x"}'])
def test_verdict_whose_trust_cannot_be_read_is_a_violation_and_ends_nothing(trust: str | None) -> None:
    story = earned()
    trusted(story)
    story.says(
        proposed(story, "odd"),
        named(story.verdict("allow"), "odd", reason="trusted", trust_class=KNOWN, trust=trust, adaptive="{}"),
    )

    found = [str(one) for one in check({EVENTS: story.raws, DEFINITIONS: story.definitions})]
    assert any("released by trust" in one for one in found)


def test_words_of_an_account_that_was_withdrawn_are_worth_nothing() -> None:
    story = earned()
    story.publishes("rita", "rita", disabled=True)

    assert trusted(story) == NOT_GIVEN


def test_words_age() -> None:
    story = earned()
    story.now_ms += 40 * 86_400_000

    assert trusted(story) == NOT_GIVEN


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ({"floor": 0.99}, "that is not enough"),
        ({"floor": None}, "that is not enough"),
        ({"required": 0.99}, "that is not enough"),
        ({"seed": ""}, "against its draw"),
        ({"draw": 0.0}, "against its draw"),
        ({"sample_rate": 1.0}, "against its draw"),
        ({"result": "sampled"}, "without an outcome or trust that say so"),
        ({"lower_bound": 0.9999}, "by another bound than that of its trust"),
        ({"trust": {"contrary_at": "0@7"}}, "against what people had said"),
        ({"trust": {"trust_class": NEW}}, "in another class of calls"),
    ],
)
def test_verdict_that_contradicts_itself_is_a_violation(more: dict[str, Any], what: str) -> None:
    assert f"I1 released by trust {what}" in trusted(earned(), **more)
