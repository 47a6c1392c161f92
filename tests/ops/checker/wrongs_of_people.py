"""Stories in which somebody decides who may not, or who counts as another: each breaks I10."""

from __future__ import annotations

from collections.abc import Callable

from schemas.events import holds as h
from tests.ops.checker.builder import Story

Wrong = Callable[[Story], None]


def quorum_of_two_accounts_of_one_person(story: Story) -> None:
    story.publishes("mia", "mia@new", "mia@old", roles=["reviewer"])
    story.held(quorum=2)
    story.says(story.decision(by="mia@new", resolves=False))
    story.says(story.decision(by="mia@old"), story.release())


def quorum_with_a_voice_that_had_lost_its_role(story: Story) -> None:
    story.publishes("mia-m", "mia", roles=["reviewer"])
    story.held(quorum=2)
    story.says(story.decision(by="mia", resolves=False))
    story.publishes("mia-m", "mia", roles=["analyst"])
    story.says(story.decision(), story.release())


def quorum_of_a_delegator_and_their_delegate(story: Story) -> None:
    story.held(quorum=2)
    story.says(story.decision(resolves=False))
    story.says(h.HoldDelegated(hold_id="h", by="rita", to="zoe"))
    story.says(h.HoldDelegated(hold_id="h", by="zoe", to="amy"))
    story.says(story.decision(by="amy", roles=("analyst",)), story.release())


def approved_for_somebody_who_had_lost_the_role(story: Story) -> None:
    story.publishes("mia-m", "mia", roles=["reviewer"])
    story.held(quorum=1)
    story.says(
        h.HoldDelegated(hold_id="h", by="mia", to="zoe", roles=("reviewer",), person="mia-m"),
    )
    story.publishes("mia-m", "mia", roles=["analyst"])
    story.says(story.decision(by="zoe", roles=("analyst",)), story.release())


def quorum_with_a_voice_for_somebody_disabled(story: Story) -> None:
    story.publishes("mia-m", "mia", roles=["reviewer"])
    story.held(quorum=2)
    story.says(
        h.HoldDelegated(hold_id="h", by="mia", to="zoe", roles=("reviewer",), person="mia-m"),
    )
    story.says(story.decision(by="zoe", roles=("analyst",), resolves=False))
    story.publishes("mia-m", "mia", roles=["reviewer"], disabled=True)
    story.says(story.decision(), story.release())


def quorum_with_a_voice_whose_account_was_taken_away(story: Story) -> None:
    story.publishes("mia-m", "mia", "mia@old", roles=["reviewer"])
    story.held(quorum=2)
    story.says(story.decision(by="mia", resolves=False, person="mia-m"))
    story.publishes("mia-m", "mia@old", roles=["reviewer"])
    story.says(story.decision(by="mia@old", person="mia-m"), story.release())


def approved_by_whom_a_reviewers_account_was_taken_from(story: Story) -> None:
    story.publishes("mia-m", "mia", "mia@old", roles=["analyst"])
    story.held(reviewers=("mia",))
    story.publishes("mia-m", "mia@old", roles=["analyst"])
    story.says(story.decision(by="mia@old", person="mia-m", roles=("analyst",)), story.release())


def approved_by_whom_the_delegates_account_was_taken_from(story: Story) -> None:
    story.publishes("mia-m", "mia", "mia@old", roles=["analyst"])
    story.held(roles=("reviewer",))
    story.says(h.HoldDelegated(hold_id="h", by="rita", to="mia", roles=("reviewer",)))
    story.publishes("mia-m", "mia@old", roles=["analyst"])
    story.says(story.decision(by="mia@old", person="mia-m", roles=("analyst",)), story.release())


def approved_by_whom_an_excluded_account_was_taken_from(story: Story) -> None:
    story.publishes("mia-m", "mia", "mia@old", roles=["reviewer"])
    story.held(excluded=("mia",))
    story.publishes("mia-m", "mia@old", roles=["reviewer"])
    story.says(story.decision(by="mia@old", person="mia-m"), story.release())


def approved_with_a_role_that_only_the_token_had(story: Story) -> None:
    story.publishes("rita-r", "rita", roles=["analyst"])
    story.held()
    story.says(story.decision(), story.release())


def approved_by_somebody_excluded(story: Story) -> None:
    story.publishes("rita-r", "rita", roles=["reviewer"])
    story.held(excluded=("rita-r",))
    story.says(story.decision(), story.release())


def approved_by_a_reviewer_whom_nobody_named(story: Story) -> None:
    story.held(reviewers=("otto",))
    story.says(story.decision(), story.release())


def approved_by_whom_the_agent_acts_for(story: Story) -> None:
    story.publishes("rita-r", "rita", roles=["reviewer"], agents=["bot"])
    story.held(exclude_requester=True)
    story.says(story.decision(), story.release())


def quorum_with_the_voice_of_an_editor_by_another_account(story: Story) -> None:
    voice_of_an_editor(story, known="before the last vote")


def consumed_with_the_voice_of_an_editor_by_another_account(story: Story) -> None:
    voice_of_an_editor(story, known="before the run")


def consumed_with_the_voice_of_who_had_handed_it_to_the_editor(story: Story) -> None:
    voice_of_an_editor(story, known="before the run", handed=True)


def voice_of_an_editor(story: Story, known: str, handed: bool = False) -> None:
    """A call that `t9` edited, or another for them, and that theo approved, whose account `t9` turns out to be."""
    story.held(exclude_requester=True)
    editor, roles = ("zoe", ("analyst",)) if handed else ("t9", ("reviewer",))
    if handed:
        story.says(h.HoldDelegated(hold_id="h", by="t9", to="zoe", roles=("reviewer",)))
    edit = story.decision("edit", by=editor, roles=roles)
    proposed = story.proposed(2, '{"a":2}', by=editor)
    hold = story.hold("h2", revision=2, digest=story.digest, exclude_requester=True, quorum=2)
    story.says(edit, proposed, story.verdict("hold", 2), hold)
    second = {"hold_id": "h2", "revision": 2, "digest": story.digest}
    story.says(story.decision(by="theo", resolves=False, **second))
    if known == "before the last vote":
        story.publishes("theo-t", "theo", "t9", roles=["reviewer"])
    story.says(story.decision(by="tina", **second), story.release(revision=2, arguments='{"a":2}'))
    if known == "before the run":
        story.publishes("theo-t", "theo", "t9", roles=["reviewer"])
        story.says(story.consumed(revision=2))


def quorum_with_a_voice_for_whom_the_agent_acts_for(story: Story) -> None:
    story.publishes("mia-m", "mia", roles=["reviewer"])
    story.held(quorum=2, exclude_requester=True)
    story.says(h.HoldDelegated(hold_id="h", by="mia", to="zoe", roles=("reviewer",), person="mia-m"))
    story.says(story.decision(by="zoe", roles=("analyst",), resolves=False))
    story.publishes("mia-m", "mia", roles=["reviewer"], agents=["bot"])
    story.says(story.decision(), story.release())


def approved_for_whom_the_agent_acts_for(story: Story) -> None:
    story.publishes("mia-m", "mia", roles=["reviewer"])
    story.held(exclude_requester=True)
    story.says(h.HoldDelegated(hold_id="h", by="mia", to="zoe", roles=("reviewer",), person="mia-m"))
    story.publishes("mia-m", "mia", roles=["reviewer"], agents=["bot"])
    story.says(story.decision(by="zoe", roles=("analyst",)), story.release())


def consumed_with_the_voice_of_somebody_excluded(story: Story) -> None:
    story.held(excluded=("mallory",))
    story.says(story.decision(), story.release())
    story.publishes("mallory", "mallory", "rita", roles=["reviewer"])
    story.says(story.consumed())


def consumed_with_the_voice_of_somebody_who_had_lost_the_role(story: Story) -> None:
    story.publishes("rita-r", "rita", roles=["reviewer"])
    story.released()
    story.publishes("rita-r", "rita", roles=["analyst"])
    story.says(story.consumed())


OF_PEOPLE: tuple[Wrong, ...] = (
    quorum_of_two_accounts_of_one_person,
    quorum_with_a_voice_that_had_lost_its_role,
    quorum_of_a_delegator_and_their_delegate,
    approved_for_somebody_who_had_lost_the_role,
    quorum_with_a_voice_for_somebody_disabled,
    quorum_with_a_voice_whose_account_was_taken_away,
    approved_by_whom_a_reviewers_account_was_taken_from,
    approved_by_whom_the_delegates_account_was_taken_from,
    approved_by_whom_an_excluded_account_was_taken_from,
    approved_with_a_role_that_only_the_token_had,
    approved_by_somebody_excluded,
    approved_by_a_reviewer_whom_nobody_named,
    approved_by_whom_the_agent_acts_for,
    quorum_with_the_voice_of_an_editor_by_another_account,
    consumed_with_the_voice_of_an_editor_by_another_account,
    consumed_with_the_voice_of_who_had_handed_it_to_the_editor,
    quorum_with_a_voice_for_whom_the_agent_acts_for,
    approved_for_whom_the_agent_acts_for,
    consumed_with_the_voice_of_somebody_excluded,
    consumed_with_the_voice_of_somebody_who_had_lost_the_role,
)
