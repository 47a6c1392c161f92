"""A human request: an agent's question. It is a hold: both are opened, and both are answered, in one batch."""

from msgspec.structs import replace

from schemas import commands as k
from schemas.canonical import MalformedJson, canonical, parse_new, parse_strict, sha256_hex
from schemas.events import holds as h
from schemas.limits import DEADLINE_MAX_S, ITEMS_MAX
from schemas.refusals import Refusal
from services.domain.authority.authority import acts_for_agent
from services.domain.context import Context
from services.domain.execution.answers import answer_schema
from services.domain.execution.decision_content import default_problem
from services.domain.execution.folding import Folds
from services.domain.execution.handler import Handlers
from services.domain.execution.opening import hold_id_of_request
from services.domain.execution.quota import open_problem
from services.domain.execution.variables import variables_problem
from services.domain.refusals import Events, refuse
from services.domain.state import Execution, Hold

DEFAULT_TIMEOUT_MS = 300_000
TIMEOUT_MAX_MS = DEADLINE_MAX_S * 1000
DIGESTED = ("kind", "question", "options", "fields")
# The fields that only one kind has.
ONLY_OF = {
    "decision": ("allow_custom", "multiple"),
    "permission": ("tool", "action", "risk", "remember"),
}


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
        deadline_at_ms=ctx.now_ms + _timeout_ms(command),
        on_timeout="deny" if command.default is None else "default",
        default_value=command.default,
        escalate_at_ms=None,
        escalate_roles=(),
        on_reject="feedback",
        remind_at_ms=None if command.remind_after_ms is None else ctx.now_ms + command.remind_after_ms,
    )
    return [asked, opened]


def _timeout_ms(command: k.RequestHumanInput) -> int:
    return DEFAULT_TIMEOUT_MS if command.timeout_ms is None else command.timeout_ms


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


def _default_problem(command: k.RequestHumanInput) -> tuple[Refusal, str] | None:
    if command.default is None:
        return None
    return default_problem(command.kind, command.options, answer_schema(command), command.default)


def _untimely(command: k.RequestHumanInput) -> str | None:
    if command.timeout_ms is not None and not 0 < command.timeout_ms <= TIMEOUT_MAX_MS:
        return f"timeout_seconds must be above 0 and at most {TIMEOUT_MAX_MS // 1000}"
    ends_ms, remind_ms = _timeout_ms(command), command.remind_after_ms
    if remind_ms is not None and not 0 < remind_ms < ends_ms:
        return f"remind_after_seconds must be above 0, and before the question's time is over ({ends_ms / 1000:g} s)"
    return None


def _problem(
    state: Execution, command: k.RequestHumanInput, hold_id: str, digest: str, ctx: Context
) -> tuple[Refusal | None, str]:
    if not acts_for_agent(ctx.actor, state.agent):
        return Refusal.NOT_FOUND, "no such execution"
    if (malformed := _not_json(command)) is not None:
        return Refusal.MALFORMED, malformed
    if max(len(parse_strict(text)) for text in (command.options, command.fields)) > ITEMS_MAX:
        return Refusal.INVALID, f"there are at most {ITEMS_MAX} options, and at most {ITEMS_MAX} fields"
    if (vague := _vague_option(command)) is not None:
        return Refusal.INVALID, vague
    if (foreign := _foreign_field(command)) is not None:
        return Refusal.INVALID, foreign
    if command.kind == "env_var" and (wrong := variables_problem(command)) is not None:
        return Refusal.INVALID, wrong
    if (unanswerable := _default_problem(command)) is not None:
        return unanswerable
    if (untimely := _untimely(command)) is not None:
        return Refusal.INVALID, untimely
    earlier = state.holds.get(hold_id)
    if earlier is not None and earlier.digest == digest:
        return Refusal.DUPLICATE, "already asked"
    if state.closed:
        return Refusal.EXECUTION_CLOSED, f"the execution is {state.lifecycle}"
    if earlier is not None:
        return Refusal.ID_REUSED, "the request id was used with another body"
    return open_problem(state) or (None, "")


def _foreign_field(command: k.RequestHumanInput) -> str | None:
    """The reason why a field does not belong to a request of this kind, or None."""
    for kind, names in ONLY_OF.items():
        for name in names:
            if kind != command.kind and getattr(command, name):
                return f"{name} is only for a {kind}"
    if (command.allow_custom or command.multiple) and not parse_strict(command.options):
        return "allow_custom and multiple are about options: give some"
    return None


def _vague_option(command: k.RequestHumanInput) -> str | None:
    """The reason why options cannot be told apart by their answers: the option itself, or the `id` of an object."""
    named = [
        option.get("id") if isinstance(option, dict) else option for option in parse_strict(command.options)
    ]
    if any(isinstance(name, list | dict) or name is None or name == "" for name in named):
        return "an option is a text, a number, true, false, or an object with an id that is one of these"
    if len({canonical(name) for name in named}) != len(named):
        return "two options have the same id"
    return None


def _not_json(command: k.RequestHumanInput) -> str | None:
    try:
        if not all(isinstance(parse_new(text), list) for text in (command.options, command.fields)):
            return "options and fields must be arrays"
        parse_new("null" if command.default is None else command.default)
    except MalformedJson as error:
        return str(error)
    return None


HANDLERS: Handlers = {
    k.RequestHumanInput: request,
}


def _asked(state: Execution, event: h.HumanInputRequested, at_ms: int) -> Execution:
    return replace(state, asked_about=h.asks_of(event))


FOLDS: Folds = {
    h.HumanInputRequested: _asked,
}
