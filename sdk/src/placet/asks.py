"""Every request of the API, as data: route, body, and the WebSocket message if there is one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from placet.chat_models import ClaimedTurn
from placet.ids import check_chosen_id, check_id, new_id, segment
from placet.transport.port import Frame, Request

Body = Mapping[str, Any]


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _params(**fields: Any) -> dict[str, str]:
    # An empty filter is sent, and refused: if it were left out, an unset variable would list everything.
    return {name: str(value) for name, value in fields.items() if value is not None}


def _id(text: str, what: str) -> str:
    return segment(check_id(text, what))


def _execution(execution_id: str) -> str:
    return f"/executions/{_id(execution_id, 'execution id')}"


def _call(execution_id: str, call_id: str) -> str:
    return f"{_execution(execution_id)}/tool-calls/{_id(call_id, 'call id')}"


def start_execution(
    execution_id: str | None,
    agent: str | None,
    user: str | None,
    workspace: str | None,
    request: Any,
    context: Body | None,
) -> Request:
    """Open an execution; the id is made here, so that a repeat over another transport starts the same one."""
    body = _given(
        execution_id=check_chosen_id(execution_id or new_id(), "execution id"),
        agent=agent,
        user=user,
        workspace=workspace,
        request=request,
        context=context,
    )
    return Request("POST", "/executions", body, frame=Frame("start_execution", {}))


def finish_execution(execution_id: str, outcome: str, detail: Any) -> Request:
    """End an execution: outcome completed (detail: its result), failed or cancelled (its reason)."""
    verb = {"completed": "complete", "failed": "fail", "cancelled": "cancel"}[outcome]
    body = _given(**{"result" if outcome == "completed" else "reason": detail})
    frame = Frame("finish_execution", {"execution_id": execution_id}, {"outcome": outcome, **body})
    return Request("POST", f"{_execution(execution_id)}/{verb}", body, frame=frame)


def change_execution(execution_id: str, verb: str, body: Body) -> Request:
    """Pause or resume an execution."""
    return Request("POST", f"{_execution(execution_id)}/{verb}", body)


def get_execution(execution_id: str, at: str | None = None, after: str | None = None) -> Request:
    """An execution now, or as it was at a time or version."""
    return Request("GET", _execution(execution_id), params=_params(at=at, after=after))


def list_executions(state: str | None, agent: str | None, cursor: str | None, limit: int | None) -> Request:
    """Executions, newest first."""
    return Request("GET", "/executions", params=_params(state=state, agent=agent, cursor=cursor, limit=limit))


def execution_events(execution_id: str, cursor: str | None = None) -> Request:
    """The events of an execution."""
    return Request("GET", f"{_execution(execution_id)}/events", params=_params(cursor=cursor))


def propose(execution_id: str, body: Body, wait_s: float | None) -> Request:
    """Propose a call; the answer comes with its verdict."""
    check_chosen_id(str(body["call_id"]), "call id")
    return Request(
        "POST",
        f"{_execution(execution_id)}/tool-calls",
        body,
        params=_wait(wait_s),
        waits_s=wait_s or 0.0,
        frame=Frame("propose", {"execution_id": execution_id}),
    )


def get_call(execution_id: str, call_id: str, wait_s: float | None, after: str | None) -> Request:
    """A call in its current state, or once it is decided."""
    params = {**_wait(wait_s), **_params(after=after)}
    return Request("GET", _call(execution_id, call_id), params=params, waits_s=wait_s or 0.0)


def consume(
    execution_id: str, call_id: str, digest: str, attempt_id: str, grant_id: str | None = None
) -> Request:
    """Consume a grant, once; if its id is given, no other release of the call."""
    return Request(
        "POST",
        f"{_call(execution_id, call_id)}/consume",
        _given(digest=digest, attempt_id=attempt_id, grant_id=grant_id),
        frame=Frame("consume", {"execution_id": execution_id, "call_id": call_id}),
    )


def result(execution_id: str, call_id: str, body: Body) -> Request:
    """Report how a consumed call ended."""
    return Request(
        "POST",
        f"{_call(execution_id, call_id)}/result",
        body,
        frame=Frame("result", {"execution_id": execution_id, "call_id": call_id}),
    )


def heartbeat(execution_id: str, call_id: str, attempt_id: str) -> Request:
    """Report that an attempt still runs its call."""
    return Request(
        "POST",
        f"{_call(execution_id, call_id)}/heartbeat",
        {"attempt_id": attempt_id},
        frame=Frame("heartbeat", {"execution_id": execution_id, "call_id": call_id}),
    )


def revoke(execution_id: str, call_id: str, reason: str) -> Request:
    """Revoke a release that was not consumed yet."""
    return Request("POST", f"{_call(execution_id, call_id)}/revoke", {"reason": reason})


def report_impact(execution_id: str, call_id: str, reason: str) -> Request:
    """Report that a call which ran did harm."""
    return Request("POST", f"{_call(execution_id, call_id)}/report-impact", {"reason": reason})


def list_holds(filters: Mapping[str, str | None]) -> Request:
    """Holds, by status, kind, agent and assignee."""
    return Request("GET", "/holds", params=_params(**filters))


def get_hold(hold_id: str, after: str | None = None) -> Request:
    """One hold."""
    return Request("GET", f"/holds/{_id(hold_id, 'hold id')}", params=_params(after=after))


def view_hold(hold_id: str, at: str | None) -> Request:
    """The view of a hold that a person is shown."""
    return Request("GET", f"/holds/{_id(hold_id, 'hold id')}/view", params=_params(at=at))


def group_holds(agent: str | None) -> Request:
    """Similar open holds, as groups."""
    return Request("GET", "/holds/groups", params=_params(agent=agent))


def change_hold(hold_id: str, verb: str, body: Body) -> Request:
    """Claim, release, escalate, delegate, extend or decide a hold."""
    return Request("POST", f"/holds/{_id(hold_id, 'hold id')}/{verb}", body)


def decide_many(items: list[Body]) -> Request:
    """Decide several holds of low risk."""
    return Request("POST", "/holds/decisions", {"items": items})


def ask_person(body: Body) -> Request:
    """Ask a person something."""
    return Request("POST", "/requests", {"request_id": new_id(), **body}, frame=Frame("request", {}))


def get_request(request_id: str, execution_id: str | None, wait_s: float | None) -> Request:
    """A question and its answer, if there is one."""
    path, params = f"/requests/{_id(request_id, 'request id')}", {**_whose(execution_id), **_wait(wait_s)}
    return Request("GET", path, params=params, waits_s=wait_s or 0.0)


def run_human_input(prompt: str) -> Request:
    """Ask a person by the tool `human_input`."""
    return Request("POST", "/tools:run", {"name": "human_input", "arguments": {"prompt": prompt}})


def get_human_input(task_id: str, wait_s: float) -> Request:
    """The answer to a task of that tool, if there is one."""
    path = f"/human-input/{_id(task_id, 'task id')}"
    return Request("GET", path, params=_wait(wait_s), waits_s=wait_s)


def list_messages(
    conversation_id: str, cursor: str | None = None, after: str | None = None, order: str | None = None
) -> Request:
    """The messages of a conversation."""
    params = _params(cursor=cursor, after=after or None, order=order)
    return Request("GET", f"{_execution(conversation_id)}/messages", params=params)


def get_turn(conversation_id: str, turn_id: str) -> Request:
    """A turn of a conversation as it is now."""
    return Request("GET", f"{_execution(conversation_id)}/turns/{_id(turn_id, 'turn id')}")


def respond(request_id: str, response: Any, conversation_id: str | None, feedback: str) -> Request:
    """Answer a question as a chat's client does.

    Without an idempotency key the same answer of the same person is one answer, also when another process repeats it.
    """
    body = {"request_id": request_id, "response": response, "feedback": feedback}
    more = _given(conversation_id=conversation_id)
    return Request("POST", "/agent/hitl/respond", body | more, at_root=True, ref="")


def claim_turn(agent: str, attempt_id: str, wait_s: float) -> Request:
    """Take on a turn of an agent."""
    path = f"/agents/{_id(agent, 'agent')}/turns/claim"
    return Request("POST", path, {"attempt_id": attempt_id}, params=_wait(wait_s), waits_s=wait_s)


def renew_turn(turn: ClaimedTurn) -> Request:
    """Renew the lease of a turn."""
    return _of_turn(turn, "renew")


def post_reply(turn: ClaimedTurn, number: int, text: str, details: Body) -> Request:
    """Say something in a turn."""
    return _of_turn(turn, "reply", number=number, text=text, details=dict(details))


def yield_turn(turn: ClaimedTurn, hold_id: str | None) -> Request:
    """Give a turn back, until a hold is no longer open if one is given."""
    return _of_turn(turn, "yield", **_given(hold_id=hold_id))


def end_turn(turn: ClaimedTurn, outcome: str, *, reply: str = "", error: str = "") -> Request:
    """End a turn."""
    return _of_turn(turn, "end", outcome=outcome, reply=reply, error=error)


def _of_turn(turn: ClaimedTurn, verb: str, **more: Any) -> Request:
    path = f"{_execution(turn.conversation_id)}/turns/{_id(turn.turn_id, 'turn id')}/{verb}"
    about = {"execution_id": turn.conversation_id, "turn_id": turn.turn_id}
    message = "post_reply" if verb == "reply" else f"{verb}_turn"
    return Request("POST", path, {"attempt_id": turn.attempt_id, **more}, frame=Frame(message, about))


def take_secrets(request_id: str, execution_id: str | None, attempt_id: str) -> Request:
    """Take the answer to an env_var request."""
    path = f"/requests/{_id(request_id, 'request id')}/secrets"
    return Request("POST", path, {"attempt_id": attempt_id}, params=_whose(execution_id))


def erase_call(execution_id: str, call_id: str, reason: str) -> Request:
    """Erase the sensitive arguments of a call."""
    return Request("POST", f"{_call(execution_id, call_id)}/secrets/erase", {"reason": reason})


def erase_request(request_id: str, execution_id: str | None, reason: str) -> Request:
    """Erase the answer to an env_var request."""
    path = f"/requests/{_id(request_id, 'request id')}/secrets/erase"
    return Request("POST", path, {"reason": reason}, params=_whose(execution_id))


def destroy_key(name: str, reason: str) -> Request:
    """Destroy a data key."""
    return Request("POST", f"/data-keys/{_id(name, 'key')}/destroy", {"reason": reason})


def get_tool(name: str) -> Request:
    """A published tool at its newest version."""
    return Request("GET", f"/tools/{segment(name)}")


def put_tool(name: str, definition: Body) -> Request:
    """Publish a tool's definition."""
    return Request("PUT", f"/tools/{segment(name)}", {"name": name, **definition})


def put_policy(name: str, document: str | Body) -> Request:
    """Publish a policy: YAML text as it is, or the document as an object."""
    path = f"/policies/{segment(name)}"
    if isinstance(document, str):
        return Request("PUT", path, yaml=document)
    return Request("PUT", path, document)


def check_policy(name: str, document: str | Body) -> Request:
    """Check a policy against those in force, without publishing it."""
    path = f"/policies/{segment(name)}/check"
    if isinstance(document, str):
        return Request("POST", path, yaml=document)
    return Request("POST", path, document)


def get_policy(name: str, version: int | None) -> Request:
    """A policy, at its newest version if none is given."""
    return read(f"/policies/{segment(name)}", version=None if version is None else str(version))


def retire_policy(name: str, version: int | None, reason: str) -> Request:
    """Retire a policy."""
    body = {"reason": reason} | ({} if version is None else {"version": version})
    return Request("POST", f"/policies/{segment(name)}/retire", body)


def trust_path(agent: str) -> str:
    """The route of the trust in an agent by classes of its calls."""
    return f"/agents/{_id(agent, 'agent')}/trust/classes"


def assess(agent: str, body: Body, of_run: Body) -> Request:
    """What the policies would make of an agent's calls."""
    return Request("POST", f"/agents/{_id(agent, 'agent')}/assess", {**body, **_given(**of_run)})


def probe_body(body: Body, seems: Body) -> dict[str, Any]:
    """The body of a known-bad call; ids that are left out are made here, so that a repeat is the same one."""
    return {"execution_id": new_id(), "call_id": new_id(), **body, **_given(**seems)}


def open_probe_run(body: Body) -> Request:
    """Open the run of a known-bad call."""
    return Request("POST", "/probes/runs", body)


def plant_probe(body: Body) -> Request:
    """Plant a known-bad call, in the run that was opened for it."""
    return Request("POST", "/probes", body)


def put_principal(name: str, document: Body) -> Request:
    """Publish a person or service: {subjects, roles, agents, disabled}."""
    return Request("PUT", f"/principals/{segment(name)}", dict(document))


def policy_versions(name: str, cursor: str | None = None) -> Request:
    """The published versions of a policy."""
    return Request("GET", f"/policies/{segment(name)}/versions", params=_params(cursor=cursor))


def list_calls(execution_id: str, cursor: str | None = None) -> Request:
    """The calls of an execution."""
    return Request("GET", f"{_execution(execution_id)}/tool-calls", params=_params(cursor=cursor))


def read(path: str, **params: Any) -> Request:
    """Any other GET."""
    return Request("GET", path, params=_params(**params))


def _whose(execution_id: str | None) -> dict[str, str]:
    return {"execution_id": execution_id} if execution_id else {}


def _wait(wait_s: float | None) -> dict[str, str]:
    return {} if wait_s is None else {"wait": str(math.ceil(wait_s))}
