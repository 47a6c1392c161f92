"""From a rule's hold block to the terms of one hold."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from schemas.canonical import canonical
from schemas.policy_document import DefaultAnswer, Defaults, Hold, Remember
from services.domain.policy.question import render
from services.domain.policy.verdict import HoldTerms

DEFAULT_QUESTION = "Run {{tool.name}} for {{agent}}?"
_PLAIN = Hold()


def terms_of(hold: Hold | None, defaults: Defaults, variables: Mapping[str, Any]) -> HoldTerms:
    """How a hold is to be decided.

    Args:
        hold: the rule's block; None for a hold that no rule describes.
        defaults: of the policy.
        variables: what the question may name, as in `question.render`.
    """
    block = hold or _PLAIN
    on_timeout = block.on_timeout or defaults.on_timeout
    answer = on_timeout.default if isinstance(on_timeout, DefaultAnswer) else None
    seconds = defaults.timeout_seconds if block.timeout_seconds is None else block.timeout_seconds
    escalate = block.escalate
    return HoldTerms(
        kind=block.kind,
        question=render(block.question or DEFAULT_QUESTION, variables),
        roles=block.roles,
        quorum=block.quorum,
        exclude_requester=block.exclude_requester,
        timeout_ms=_milliseconds(seconds),
        on_timeout="default" if isinstance(on_timeout, DefaultAnswer) else on_timeout,
        on_timeout_default=answer,
        escalate_after_ms=_milliseconds(escalate.after_seconds) if escalate else None,
        escalate_roles=escalate.roles if escalate else (),
        on_reject=block.on_reject,
        reviewers=block.reviewers,
        excluded=block.excluded,
        remember=_json_of(block.remember),
    )


@lru_cache(maxsize=1024)
def _json_of(remember: Remember) -> str:
    """The block with nothing left to default."""
    return canonical(remember.model_dump(mode="json"))


def _milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1000))
