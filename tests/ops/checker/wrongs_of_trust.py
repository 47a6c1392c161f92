"""Stories in which trust releases a call about which people had to be asked, and what the checker says of each."""

from __future__ import annotations

from typing import Any

from tests.ops.checker.builder import Story
from tests.ops.checker.releases import (
    ENOUGH_FOR_NEW,
    KNOWN,
    NEW,
    OF_NEW,
    earn,
    release_by_trust,
    sample,
)
from tests.ops.checker.wrongs_of_people import Wrong

SAMPLED = "released by trust while a sampled call of its class waits for people"
ALWAYS_ASKS = "released by trust by a rule that always asks"
CERTAIN = "released by trust by a rule that asks certain people"


def released_beside_a_sample(story: Story) -> None:
    earn(story)
    sample(story)
    release_by_trust(story)


def released_beside_a_sample_with_fewer_new_values(story: Story) -> None:
    earn(story, ENOUGH_FOR_NEW, NEW)
    sample(story, trust_class=KNOWN)
    release_by_trust(story, ENOUGH_FOR_NEW, trust_class=NEW, history=OF_NEW)


def released_beside_a_sample_of_which_the_agent_claims_more(story: Story) -> None:
    earn(story)
    sample(story, trust_class="to=text&risk=open_world,writes")
    release_by_trust(story)


def released_when_drawn_again(story: Story) -> None:
    """The verdict on a sampled call is followed by another on the same call, before people are asked."""
    earn(story)
    sample(story, "trusted")
    # Without the hold, which would end this.
    story.raws.pop()
    story.version -= 1
    release_by_trust(story, proposes=False)


def _by_hold(**hold: Any) -> Wrong:
    def released(story: Story) -> None:
        earn(story, rules=[{"id": "asks", "then": "hold", "hold": hold}])
        release_by_trust(story)

    released.__name__ = f"released_by_a_rule_with_{next(iter(hold))}"
    return released


def released_by_one_of_two_rules(story: Story) -> None:
    earn(
        story,
        rules=[{"id": "asks", "then": "hold"}, {"id": "too", "then": "hold", "hold": {"adaptive": False}}],
    )
    release_by_trust(story, verdict={"rules": ("p@1/asks", "p@1/too")})


def released_by_a_rule_that_became_stricter(story: Story) -> None:
    earn(story)
    story.publishes_policy(
        "p",
        2,
        adaptive={"sample_rate": 0},
        rules=[{"id": "asks", "then": "hold", "hold": {"adaptive": False}}],
    )
    release_by_trust(story, verdict={"policy_version": "p@2"})


def released_by_a_rule_that_allows(story: Story) -> None:
    earn(story, rules=[{"id": "asks", "then": "allow"}])
    release_by_trust(story)


def _citing(name: str, *rules: str) -> Wrong:
    def released(story: Story) -> None:
        earn(story)
        release_by_trust(story, verdict={"rules": rules})

    released.__name__ = f"released_by_{name}"
    return released


OF_TRUST: list[tuple[Wrong, str]] = [
    (released_beside_a_sample, SAMPLED),
    (released_beside_a_sample_with_fewer_new_values, SAMPLED),
    (released_beside_a_sample_of_which_the_agent_claims_more, SAMPLED),
    (released_when_drawn_again, SAMPLED),
    (_by_hold(adaptive=False), ALWAYS_ASKS),
    (_by_hold(roles=["cfo"]), CERTAIN),
    (_by_hold(reviewers=["rita"]), CERTAIN),
    (_by_hold(excluded=["bob"]), CERTAIN),
    (_by_hold(exclude_requester=True), CERTAIN),
    (_by_hold(quorum=2), CERTAIN),
    (_by_hold(escalate={"after_seconds": 60, "roles": ["cfo"]}), CERTAIN),
    (_by_hold(kind="text"), CERTAIN),
    (released_by_one_of_two_rules, ALWAYS_ASKS),
    (released_by_a_rule_that_became_stricter, ALWAYS_ASKS),
    (released_by_a_rule_that_allows, "released by trust by a rule that holds nothing"),
    (_citing("no_rule"), "released by trust though no rule holds it"),
    (_citing("another_rule", "p@1/other"), "released by trust by a rule that its policy does not have"),
    (_citing("a_rule_of_before", "p@0/asks"), "released by trust by a rule that its policy does not have"),
    (_citing("a_bare_rule", "asks"), "released by trust by a rule that its policy does not have"),
]
