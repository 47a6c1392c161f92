"""A human request: an agent's question. It is a hold: both are opened, and both are answered, in one batch."""

from msgspec.structs import replace

from schemas import commands as k
from schemas.canonical import canonical, sha256_hex
from schemas.events import holds as h
from schemas.questions.answers import answer_schema
from schemas.questions.rules import question_problem, timeout_ms
from schemas.refusals import Refusal
from services.domain.authority.authority import acts_for_agent
from services.domain.context import Context
from services.domain.execution.folding import Folds
from services.domain.execution.handler import Handlers
from services.domain.execution.opening import hold_id_of_request
from services.domain.execution.quota import open_problem
from services.domain.refusals import Events, refuse
from services.domain.state import AskedQuestion, Execution, Hold

DIGESTED = ("kind", "question", "options", "fields")


def request(state: Execution, command: k.RequestHumanInput, ctx: Context) -> Events:
    """RequestHumanInput: the question, and the hold that waits for its answer."""
    hold_id = hold_id_of_request(state, command.request_id)
    digest = request_digest(command)
    if (refused := _refuse_request(state, command, hold_id, digest, ctx)) is not None:
        return refused
    asked = h.HumanInputRequested(
        request_id=command.request_id,
        hold_id=hold_id,
        kind=command.kind,
        question=command.question,
        options=command.options,
        fields=command.fields,
        decision_type=command.decision_type,
        by=ctx.actor.subject,
        **{name: getattr(command, name) for name in h.ASKS},
    )
    opened = h.HoldOpened(
        hold_id=hold_id,
        call_id="",
        request_id=command.request_id,
        revision=1,
        digest=digest,
        kind=command.kind,
        cause="request",
        question=command.question,
        options=command.options,
        input_schema=answer_schema(command),
        requester=ctx.actor.subject,
        roles=(),
        quorum=1,
        # A question is no approval: the person for whom the agent acts is the one who can answer it.
        exclude_requester=command.kind == "permission",
        deadline_at_ms=ctx.now_ms + timeout_ms(command),
        on_timeout="deny" if command.default is None else "default",
        default_value=command.default,
        escalate_at_ms=None,
        escalate_roles=(),
        on_reject="feedback",
        remind_at_ms=None if command.remind_after_ms is None else ctx.now_ms + command.remind_after_ms,
    )
    return [asked, opened]


def provided(hold: Hold, response: str, by: str, timed_out: bool = False) -> h.HumanInputProvided:
    """The answer to a request."""
    return h.HumanInputProvided(
        request_id=hold.request_id, hold_id=hold.hold_id, response=response, by=by, timed_out=timed_out
    )


def request_digest(command: k.RequestHumanInput) -> str:
    """The digest that an answer names: SHA-256 of RFC 8785 JSON over everything that a person is asked.

    A field that the first version did not have is in it only if it says something, so that a request has the same
    digest in every version.
    """
    asked = {name: getattr(command, name) for name in DIGESTED}
    further = {name: getattr(command, name) for name in h.ASKS}
    return sha256_hex(canonical(asked | {name: value for name, value in further.items() if value}))


def _refuse_request(
    state: Execution, command: k.RequestHumanInput, hold_id: str, digest: str, ctx: Context
) -> Events | None:
    code, detail = _problem(state, command, hold_id, digest, ctx)
    return None if code is None else refuse(ctx, command, code, detail, command.request_id)


def _problem(
    state: Execution, command: k.RequestHumanInput, hold_id: str, digest: str, ctx: Context
) -> tuple[Refusal | None, str]:
    if not acts_for_agent(ctx.actor, state.agent):
        return Refusal.NOT_FOUND, "no such execution"
    earlier = state.holds.get(hold_id)
    # First: it was asked by the rules of an earlier version, perhaps, and an agent that runs again asks it again.
    if earlier is not None and earlier.digest == digest and earlier.default_value == command.default:
        return Refusal.DUPLICATE, "already asked"
    if (unaskable := question_problem(command)) is not None:
        return unaskable
    if state.closed:
        return Refusal.EXECUTION_CLOSED, f"the execution is {state.lifecycle}"
    if earlier is not None:
        return Refusal.ID_REUSED, "the request id was used with another body"
    return open_problem(state) or (None, "")


HANDLERS: Handlers = {
    k.RequestHumanInput: request,
}


def _asked(state: Execution, event: h.HumanInputRequested, at_ms: int) -> Execution:
    return replace(state, asked_about=AskedQuestion(event.decision_type, event.fields, h.asks_of(event)))


FOLDS: Folds = {
    h.HumanInputRequested: _asked,
}
