"""Decisions that judge several calls: trust answers for none beside a sampled call that keeps its class asked.

What earlier decisions sampled is known by its place in the log, which a verdict cites. What the same decision samples
has no place yet: so the decision ends before such a call, and the next one judges it.
"""

from collections.abc import Iterator

from schemas.adaptive import Result, outcome_from_text
from schemas.events.calls import GrantConsumed, PolicyVerdictIssued
from schemas.trust_family import closes
from services.domain.context import Context
from services.domain.refusals import Events
from services.domain.state import Execution


def rests_beside_sample(state: Execution, before: Events, events: Events, ctx: Context) -> bool:
    """True if something of `events` rests on trust in a class that a sampled call of `before` keeps asked.

    The tool is not compared: to judge a call one decision later costs little.

    Args:
        state: the state before `events`.
        before: what the same decision records before them.
        events: those of the next step of the decision.
        ctx: the decision's.
    """
    sampled = set(_classes(before, "sampled"))
    return bool(sampled) and any(
        closes(one, trust_class) for trust_class in _by_trust(state, events, ctx) for one in sampled
    )


def _by_trust(state: Execution, events: Events, ctx: Context) -> Iterator[str]:
    # A second sample of a class is judged again, too: while the first one waits, the class is asked and not drawn.
    yield from _classes(events, "released", "sampled")
    for event in events:
        call = state.calls.get(event.call_id) if isinstance(event, GrantConsumed) else None
        # A release is consumed as it was given, unless definitions have changed since: then trust must still suffice.
        if call is not None and call.by_trust and call.definitions_through != ctx.definitions_through:
            yield call.trust_class


def _classes(events: Events, *results: Result) -> Iterator[str]:
    """The classes of the calls for which the verdicts record one of these results."""
    for event in events:
        if not isinstance(event, PolicyVerdictIssued) or event.adaptive is None:
            continue
        if outcome_from_text(event.adaptive).result in results:
            yield event.trust_class
