"""Opening a call's hold: its id, deadlines and authority, from a verdict. `requests.py` opens those of questions."""

import json
from typing import Any

from msgspec.structs import replace

from schemas.canonical import as_json
from schemas.display.view import NO_ARGUMENTS, offer_of, texts_of, words_of_asks
from schemas.display.whole import must_be_read_whole
from schemas.events.holds import HoldCause, HoldOpened
from schemas.ids import derived_id
from schemas.requirement import requirements_from_text, requirements_to_text
from services.domain.arguments import parsed
from services.domain.context import Context
from services.domain.execution.folding import Folds, message_of, with_call, with_hold
from services.domain.memory.predicates import has_sealed
from services.domain.policy import HoldTerms
from services.domain.state import AskedQuestion, Call, Execution, Hold

UNKNOWN_OUTCOME_QUESTION = (
    "It is unknown whether {tool} had its effect. To run it again, while its run goes on: placet approve. To count "
    "it as failed: placet reject. If it had its effect: placet answer, with its output."
)
# A call that may have run cannot be edited (`services.domain.execution.decision_content`).
UNKNOWN_OUTCOME_OPTIONS = '["approve","reject","respond"]'
# Stands in the ids of requests' holds where a call's has its id.
OF_REQUEST = "request"
# Fields that are shown to people, but not used by any decision.
NOT_KEPT_OF_HOLDS = frozenset({"question", "view_version"})


def hold_id_of_call(state: Execution, call_id: str, revision: int) -> str:
    """The id of the hold of a call's revision."""
    return derived_id("hold", state.tenant, state.project, state.execution_id, call_id, revision)


def hold_id_of_request(state: Execution, request_id: str) -> str:
    """The id of a request's hold."""
    return derived_id("hold", state.tenant, state.project, state.execution_id, OF_REQUEST, request_id)


def call_hold(
    state: Execution,
    call: Call,
    terms: HoldTerms,
    ctx: Context,
    cause: HoldCause = "policy",
    deadline_at_ms: int | None = None,
) -> HoldOpened:
    """The event that opens a hold for a call's revision.

    Args:
        state: the call's execution.
        call: the revision that waits.
        terms: what the rule asks for.
        ctx: the decision's context.
        cause: why the call is held.
        deadline_at_ms: the deadline of the hold that this one follows; an edit never moves a deadline.
    """
    tool = ctx.tool(call.tool)
    deadline = deadline_at_ms
    if deadline is None and terms.timeout_ms is not None and terms.on_timeout != "wait":
        deadline = ctx.now_ms + terms.timeout_ms
    escalate = None if terms.escalate_after_ms is None else ctx.now_ms + terms.escalate_after_ms
    remind = None if terms.remind_after_ms is None else ctx.now_ms + terms.remind_after_ms
    return HoldOpened(
        hold_id=_fresh_hold_id(state, call, ctx),
        call_id=call.call_id,
        request_id="",
        revision=call.revision,
        digest=call.digest,
        kind=terms.kind,
        cause=cause,
        question=terms.question,
        options=json.dumps(list(terms.options), separators=(",", ":"), ensure_ascii=False),
        input_schema=tool.input_schema if tool else "{}",
        requester=call.requesters[0],
        roles=terms.roles,
        quorum=terms.quorum,
        exclude_requester=terms.exclude_requester,
        deadline_at_ms=deadline,
        on_timeout=terms.on_timeout,
        default_value=terms.on_timeout_default,
        escalate_at_ms=escalate,
        escalate_roles=terms.escalate_roles,
        on_reject=terms.on_reject,
        reviewers=terms.reviewers,
        excluded=terms.excluded,
        # People are offered only what a decision accepts.
        remember=None if has_sealed(parsed(call.arguments)) else terms.remember,
        requirements=requirements_to_text(terms.requirements),
        remind_at_ms=remind,
    )


def unknown_outcome_hold(state: Execution, call: Call, ctx: Context) -> HoldOpened:
    """The hold of a call whose outcome is unknown: it waits for a person, without a deadline.

    Running the call again needs the same authority as the first run: the people of the call's own hold, if any.
    """
    earlier: Any = state.holds.get(call.hold_id)
    if earlier is None and (call.released_by == "rule" or call.by_trust):
        # A remembered decision, or trust, stood in for people: ask those whom the policy would ask.
        earlier = ctx.judge(state, call).hold
    return HoldOpened(
        hold_id=_fresh_hold_id(state, call, ctx),
        call_id=call.call_id,
        request_id="",
        revision=call.revision,
        digest=call.digest,
        kind="permission",
        cause="outcome_unknown",
        question=UNKNOWN_OUTCOME_QUESTION.format(tool=call.tool),
        options=UNKNOWN_OUTCOME_OPTIONS,
        input_schema="{}",
        requester=call.requesters[0],
        roles=earlier.roles if earlier else (),
        quorum=earlier.quorum if earlier else 1,
        exclude_requester=earlier.exclude_requester if earlier else False,
        deadline_at_ms=None,
        on_timeout="wait",
        default_value=None,
        escalate_at_ms=None,
        escalate_roles=(),
        on_reject="feedback",
        reviewers=earlier.reviewers if earlier else (),
        excluded=earlier.excluded if earlier else (),
        requirements=requirements_to_text(earlier.requirements) if earlier else None,
    )


def message_shown(state: Execution, call: Call | None) -> str:
    """The message that is shown with a call, or a question (None): the one that the agent was answering as it asked.

    Empty if there was none, or if it is the run's request, which is shown with every hold.
    """
    message = message_of(state) if call is None else call.message
    return "" if message == state.request else message


def _fresh_hold_id(state: Execution, call: Call, ctx: Context) -> str:
    plain = hold_id_of_call(state, call.call_id, call.revision)
    # A revision can be held a second time (definitions changed, outcome unknown), but a hold's id is never reused.
    # The plain one of a call with the id `request` could be a later request's.
    is_free = plain not in state.holds and call.call_id != OF_REQUEST
    return plain if is_free else derived_id("hold", plain, ctx.command_id)


def _hold_opened(state: Execution, event: HoldOpened, at_ms: int) -> Execution:
    fields = {name: value for name, value in event.__dict__.items() if name not in NOT_KEPT_OF_HOLDS}
    fields["requirements"] = requirements_from_text(event.requirements)
    fields["default_value"] = None if event.default_value is None else as_json(event.default_value)
    call = state.calls.get(event.call_id)
    must_read = _must_be_read(state, call, event)
    senders = len(state.senders) if call is None else 0
    state = with_hold(state, Hold(opened_at_ms=at_ms, must_read=must_read, senders=senders, **fields))
    if call is None:
        return replace(state, asked_about=None)
    status = call.status if event.cause == "outcome_unknown" else "held"
    return with_call(state, replace(call, status=status, hold_id=event.hold_id))


def _must_be_read(state: Execution, call: Call | None, event: HoldOpened) -> bool:
    # An earlier version opened the hold: it has no digest that a decision could name.
    if not event.view_digest:
        return False
    version = event.view_version
    own: tuple[str, ...]
    if call is None:
        asked = state.asked_about or AskedQuestion()
        own = (state.agent, *words_of_asks(version, asked.asks))
        said = offer_of(version, event.options, asked.fields, asked.decision_type, event.default_value)
    else:
        own = (call.agent, call.tool, call.reason)
        said = (call.arguments or NO_ARGUMENTS,)
    texts = texts_of(version, state.request, message_shown(state, call), *own, event.question)
    return must_be_read_whole(said, texts, version)


FOLDS: Folds = {
    HoldOpened: _hold_opened,
}
