"""The messages of a WebSocket client: each type with its operation."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Any

from gateway.actions import calls as call_actions
from gateway.actions import holds as hold_actions
from gateway.actions import turns as turn_actions
from gateway.actions.verb import Action
from gateway.idempotency import idempotency_key
from gateway.operations import calls, conversations, executions, holds, requests
from gateway.operations.plan import Gate, Make, Plan, Unprepared, planned
from gateway.problems import Problem
from gateway.sockets.protocol import type_of
from gateway.strictjson import parse_object
from schemas.ids import is_client_id
from schemas.refusals import Refusal
from schemas.token import Claims
from schemas.trace_context import TRACEPARENT

Frame = Mapping[str, Any]
_BESIDE_BODY = frozenset({"type", "ref", "hold_id", TRACEPARENT})
Verb = Callable[[Gate, Claims, Frame, str | None], Make]


class UnreadFrame(Problem):
    """A message that cannot be accepted as written.

    Attributes:
        ref: the message's, if it can be read: it identifies the answer.
    """

    def __init__(self, problem: Problem, ref: str | None) -> None:
        super().__init__(problem.code, problem.detail, **problem.fields)
        self.ref = ref


def frame_of(raw: bytes) -> Frame:
    """Parse a message.

    Raises:
        UnreadFrame: as `parse_object`.
    """
    try:
        return parse_object(raw)
    except Problem as problem:
        raise UnreadFrame(problem, _ref_in(raw)) from problem


def ref_of(frame: Frame) -> str | None:
    """Return the frame's `ref`: it identifies the answer, and is the idempotency key of the command.

    Raises:
        Problem: 422, it is not a valid key.
    """
    ref = frame.get("ref")
    return None if ref is None else idempotency_key(ref, "ref")


def _ref_in(raw: bytes) -> str | None:
    """Return the `ref` of a message that a lenient parser can read: one that is too deep or ambiguous, or has a NaN.

    None if the message has several, since parsers differ in which of them they use.
    """
    try:
        frame = json.loads(raw, object_pairs_hook=tuple, parse_int=float)
        refs = [value for name, value in frame if name == "ref"] if isinstance(frame, tuple) else []
        return idempotency_key(refs[0], "ref") if len(refs) == 1 else None
    except (ValueError, RecursionError, Problem):
        return None


def body_of(frame: Frame) -> dict[str, Any]:
    """Return the frame's `body`: the REST body.

    Raises:
        Problem: it is not an object.
    """
    body = frame.get("body", {})
    if not isinstance(body, dict):
        raise Problem(Refusal.MALFORMED, "body must be an object")
    return body


def _id_of(frame: Frame, name: str) -> str:
    if name not in frame:
        raise Problem(Refusal.INVALID, f"{name}: this field is missing; add it beside type")
    value = frame[name]
    if not isinstance(value, str) or not is_client_id(value):
        raise Problem(Refusal.INVALID, f"{name} must be 1 to 128 of A-Za-z0-9._:-")
    return value


def _rest_of(frame: Frame) -> dict[str, Any]:
    """Return the body of a message that has the body's fields beside its own (decision, claim)."""
    return {name: value for name, value in frame.items() if name not in _BESIDE_BODY}


def _start(gate: Gate, claims: Claims, frame: Frame, key: str | None) -> Make:
    return lambda: executions.plan_start(gate, claims, lambda: body_of(frame), key)


def _finish(gate: Gate, claims: Claims, frame: Frame, key: str | None) -> Make:
    execution_id = _id_of(frame, "execution_id")
    return lambda: executions.plan_finish(gate, claims, execution_id, lambda: body_of(frame), key)


def _propose(gate: Gate, claims: Claims, frame: Frame, key: str | None) -> Make:
    execution_id = _id_of(frame, "execution_id")
    return lambda: calls.plan_propose(gate, claims, execution_id, lambda: body_of(frame), key)


def _request(gate: Gate, claims: Claims, frame: Frame, key: str | None) -> Make:
    def asked() -> Awaitable[Plan]:
        return requests.plan_request(gate, claims, lambda: body_of(frame), key)

    def make() -> Plan:
        raise Unprepared(partial(planned, gate, asked))

    return make


def _decision(gate: Gate, claims: Claims, frame: Frame, key: str | None) -> Make:
    hold_id = _id_of(frame, "hold_id")
    return lambda: holds.plan_decision(gate, claims, hold_id, lambda: _rest_of(frame), key)


def _change_of_call(name: str) -> Verb:
    def change(gate: Gate, claims: Claims, frame: Frame, key: str | None) -> Make:
        where = _id_of(frame, "execution_id"), _id_of(frame, "call_id")
        return lambda: calls.plan_change(gate, claims, *where, name, lambda: body_of(frame), key)

    return change


def _change_of_hold(name: str) -> Verb:
    def change(gate: Gate, claims: Claims, frame: Frame, key: str | None) -> Make:
        hold_id = _id_of(frame, "hold_id")
        return lambda: holds.plan_change(gate, claims, hold_id, name, lambda: _rest_of(frame), key)

    return change


def _change_of_turn(name: str) -> Verb:
    def change(gate: Gate, claims: Claims, frame: Frame, key: str | None) -> Make:
        where = _id_of(frame, "execution_id"), _id_of(frame, "turn_id")
        return lambda: conversations.plan_turn_change(gate, claims, *where, name, lambda: body_of(frame), key)

    return change


def _said(subject: Iterable[Action[Any]], change: Callable[[str], Verb]) -> dict[str, Verb]:
    return {type_of(words.message): change(words.name) for words in subject if words.message is not None}


VERBS: Mapping[str, Verb] = {
    "start_execution": _start,
    "finish_execution": _finish,
    "propose": _propose,
    "request": _request,
    "decision": _decision,
    **_said(call_actions.VERBS, _change_of_call),
    **_said(hold_actions.VERBS, _change_of_hold),
    **_said(turn_actions.VERBS, _change_of_turn),
}
