"""The events of a chat as lines at a terminal: the agent's words on the output, all else beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from placet.cli.telling import say, tell

if TYPE_CHECKING:
    from placet.chat_models import ChatEvent

_VERBS = {"approve": "approved", "reject": "rejected", "edit": "changed and approved"}


def show_event(event: ChatEvent) -> None:
    """Print an event, if it tells a person something."""
    body = event.body
    match event.type:
        case "message":
            say(str(body.get("text")))
        case "tool_call" if body.get("status") in ("held", "succeeded", "failed", "denied"):
            tell(f"{body.get('tool')}: {body.get('status')}")
        case "hitl_requested":
            tell(f"asks: {body.get('question') or body.get('tool')}")
            tell(_where(body))
        case "hitl_resolved":
            tell(_closed(body))


def _where(body: Mapping[str, Any]) -> str:
    """Where the whole hold is seen; of a call also where it is decided, which is not here."""
    hold_id = body.get("hold_id")
    if not body.get("call_id"):
        return f"placet show {hold_id}"
    return f"{body.get('tool')} waits for a decision; in another terminal: placet approve {hold_id}"


def _closed(body: Mapping[str, Any]) -> str:
    """How a hold ended: the answer, or that there is none."""
    what = body.get("tool") if body.get("call_id") else "the question"
    decision, status = body.get("decision") or {}, body.get("status")
    if body.get("call_id") and decision.get("decision") == "respond":
        # What was answered is the call's output or feedback, with which the agent goes on.
        how = "said what became of" if body.get("cause") == "outcome_unknown" else "answered in place of"
        return f"{decision.get('by')} {how} {what}"
    if status == "resolved" and decision.get("decision") == "respond":
        return f"{decision.get('by')} answered: {_answer(body)}"
    if status == "resolved":
        done = _VERBS.get(str(decision.get("decision")), str(decision.get("decision")))
        said = f": {decision['feedback']}" if decision.get("feedback") else ""
        return f"{decision.get('by')} {done} {what}{said}"
    if status == "expired":
        default = "" if body.get("response") is None else f"; the answer is {_answer(body)}"
        return f"nobody decided {what} in time{default}"
    return f"{what} is {status}"


def _answer(body: Mapping[str, Any]) -> str:
    response = body.get("response")
    if body.get("kind") == "env_var" and isinstance(response, Mapping):
        # Of variables, which nobody but the agent reads, only the names.
        return ", ".join(response)
    return json.dumps(response, ensure_ascii=False)
