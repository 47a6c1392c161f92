"""The messages of the human bridge, and their translation from and to those of `placet.v1`; no network here.

| the client sends | |
|---|---|
| `{type: publish, prompt, task_id?}` | asks a person (an agent's token) |
| `{type: answer, task_id, response, feedback?, hold_id?}` | answers, or with null rejects (a person's token) |
| `{type: authenticate, …}`, `{type: ping}` | as at `/v1/ws` |

| the client gets | |
|---|---|
| `{type: publish, task_id, prompt, kind, options, hold_id}` | an open question that it may see |
| `{type: published, task_id, status}`, `{type: answered, task_id}` | what it sent was accepted |
| `{type: answer, task_id, response}` | a question was answered |
| `{type: closed, task_id, status, feedback}` | it ended without an answer |
| `{type: error, task_id, code, detail, …}` | a refusal |
| `{type: authenticated, …}`, `{type: pong}`, `{type: resync_required, …}` | as at `/v1/ws` |
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from pydantic import Field

from gateway.bodies import Body, ClientId, Prompt, Text, read_body
from gateway.problems import Problem, renamed
from gateway.resources.human_input import WAITING, question_of, unanswered_status
from gateway.sockets.subscriptions import CHANNELS_MAX
from gateway.sockets.verbs import Frame, UnreadFrame
from schemas.refusals import Refusal
from schemas.trace_context import TRACEPARENT

HOLDS = "holds"
# The bridge's own messages to the endpoint: a task was answered, by the hold that the bridge or the client names; an
# agent asks.
ANSWER, PUBLISH = "answer", "publish"
AGENT_ROLES = ["agent"]
Json = dict[str, Any]
# The execution of each question is followed by a channel of its own.
FOLLOWED_MAX = CHANNELS_MAX
RETRY_AFTER_S = 60


class Publish(Body):
    """Ask a person."""

    type: Literal["publish"]
    prompt: Prompt
    task_id: str | None = None


class Answer(Body):
    """Answer a question, or reject it; its hold names it if two agents chose one task id."""

    type: Literal["answer"]
    task_id: ClientId
    response: Any = Field(
        description="The answer, as `value` of a decision; null rejects the question, with `feedback`."
    )
    feedback: Text = ""
    hold_id: ClientId | None = None


MODELS: Mapping[str, type[Publish | Answer]] = {"publish": Publish, "answer": Answer}
# What refusals call the fields of the commands that these messages become, and what the bridge calls them.
NAMES: Mapping[str, Mapping[str, str]] = {
    "publish": {"question": "prompt", "request_id": "task_id"},
    "answer": {"value": "response"},
}


class Pending(NamedTuple):
    """What the client sent and was not answered yet; without a kind if it is no message of a bridge."""

    kind: str | None
    task_id: str | None


@dataclass(slots=True)
class Shown:
    """The open questions of one task id that were shown to a client.

    Attributes:
        holds: their holds.
        shared: True once there were several. It stays while one is open: an answer that was meant for one that is
            closed must not become that to another agent's question.
    """

    holds: set[str] = field(default_factory=set)
    shared: bool = False

    def add(self, hold_id: str) -> None:
        """Note that a question was shown."""
        self.holds.add(hold_id)
        self.shared = self.shared or len(self.holds) > 1


class BridgeMessages:
    """The state of one client: the questions that it knows, and what it has sent.

    Attributes:
        own: messages of `placet.v1` that the bridge itself has to send to follow the questions: for a person
            all that they may see, for an agent those that it published here.
    """

    def __init__(self) -> None:
        self.own: deque[Json] = deque()
        self._open: dict[str, Shown] = {}
        self._sent: dict[str, Pending] = {}
        self._is_agent = False

    def from_client(self, message: Frame) -> Frame:
        """The message of `placet.v1` for a client's message.

        Raises:
            UnreadFrame: it cannot be sent; the answer to its `ref` is the error for the client.
        """
        kind = message.get("type")
        if kind in ("authenticate", "ping"):
            return message
        ref, task_id = str(uuid.uuid4()), message.get("task_id")
        known = kind if isinstance(kind, str) and kind in MODELS else None
        self._sent[ref] = Pending(known, task_id if isinstance(task_id, str) else None)
        try:
            trace = {TRACEPARENT: message[TRACEPARENT]} if TRACEPARENT in message else {}
            return {"ref": ref, **trace, **self._translated(message, known)}
        except Problem as problem:
            raise UnreadFrame(problem, ref) from problem

    def _translated(self, message: Frame, kind: str | None) -> Json:
        if kind is None:
            accepted = ", ".join(("authenticate", *MODELS, "ping"))
            raise Problem(Refusal.INVALID, f"type: a bridge accepts {accepted}")
        read = read_body(
            MODELS[kind], {name: value for name, value in message.items() if name != TRACEPARENT}
        )
        if isinstance(read, Answer):
            return self._answer(read)
        is_new = read.task_id not in self._open
        if self._is_agent and is_new and len(self._open) + self._publishing > FOLLOWED_MAX:
            detail = f"one connection follows at most {FOLLOWED_MAX:,} open questions: ask by another one"
            raise Problem(Refusal.QUOTA, detail, retry_after=RETRY_AFTER_S)
        return _request(read)

    @property
    def _publishing(self) -> int:
        """The number of questions that were sent, and not answered yet by what became of them."""
        return sum(pending.kind == "publish" for pending in self._sent.values())

    def to_client(self, message: Json) -> Iterator[Json]:
        """The messages for the client that a message of `placet.v1` leads to."""
        match message["type"]:
            case "authenticated":
                self._is_agent = message["roles"] == AGENT_ROLES
                self._follow_people()
                yield message
            case "resync_required":
                self._follow_people()
                if self._is_agent:
                    yield message
            case "snapshot" if message["channel"] == HOLDS:
                for hold in message["items"]:
                    yield from self._published(hold)
            case "hitl_requested":
                yield from self._published(message)
            case "hold_resolved":
                yield from self._closed(message)
            case "hold_changed" if message["change"] == "expired":
                yield from self._closed(message)
            case "reply":
                yield from self._replied(message)
            case "error":
                yield {"task_id": None, **message}
            case "pong":
                yield message

    def _follow_people(self) -> None:
        self._open.clear()
        if not self._is_agent:
            self.own.append({"type": "subscribe", "channels": [HOLDS]})

    def _answer(self, answer: Answer) -> Json:
        """The answer with its hold, if that is known here; without one the endpoint finds it by the task id."""
        hold_id = answer.hold_id
        if hold_id is None:
            shown = self._open.get(answer.task_id, Shown())
            if shown.shared:
                raise Problem(Refusal.ID_REUSED, "several questions have this task_id: give the hold_id, too")
            hold_id = next(iter(shown.holds), None)
        said = {"response": answer.response, "feedback": answer.feedback}
        return {"type": ANSWER, "task_id": answer.task_id, "hold_id": hold_id, **said}

    def _published(self, hold: Json) -> Iterator[Json]:
        task_id = hold.get("request_id")
        # The values of variables are typed where nobody else sees them, not in a chat.
        if self._is_agent or not task_id or hold["status"] != "open" or hold["kind"] == "env_var":
            return
        self._open.setdefault(task_id, Shown()).add(hold["hold_id"])
        told = {"prompt": hold["question"], "kind": hold["kind"], "options": hold["options"]}
        told["hold_id"] = hold["hold_id"]
        yield {"type": "publish", "task_id": task_id, **told}

    def _closed(self, hold: Json) -> Iterator[Json]:
        task_id = hold.get("request_id")
        shown = self._open.get(task_id or "")
        if not task_id or shown is None or hold["hold_id"] not in shown.holds:
            return
        shown.holds.discard(hold["hold_id"])
        if not shown.holds:
            del self._open[task_id]
        if self._is_agent:
            self.own.append({"type": "unsubscribe", "channels": [f"executions:{hold['execution_id']}"]})
        yield _ended({**hold, **(hold["decision"] or {"decision": None, "feedback": None})})

    def _replied(self, reply: Json) -> Iterator[Json]:
        sent = self._sent.pop(reply["ref"] or "", None)
        if sent is None:
            # Of the bridge's own subscription.
            return
        body = reply["body"]
        if reply["status"] >= 400:
            yield _error(renamed(body, NAMES.get(sent.kind or "", {})), sent.task_id)
        elif sent.kind == "publish":
            yield from self._followed(body)
        else:
            yield {"type": "answered", "task_id": sent.task_id}

    def _followed(self, request: Json) -> Iterator[Json]:
        """Follow what an agent has asked, from the state on that this answer shows."""
        task_id = request["request_id"]
        yield {"type": "published", "task_id": task_id, "status": WAITING}
        if request["status"] != "open":
            # Asked before, and answered since: nothing more would come.
            yield _ended(request)
            return
        self._open.setdefault(task_id, Shown()).add(request["hold_id"])
        channel, cursor = f"executions:{request['execution_id']}", request["cursor"]
        self.own.append({"type": "subscribe", "channels": [channel], "cursor": cursor})


def _request(publish: Publish) -> Json:
    named = {} if publish.task_id is None else {"request_id": publish.task_id}
    return {"type": PUBLISH, "body": {**question_of(publish.prompt), **named}}


def _ended(request: Json) -> Json:
    """The message about a closed question: its answer, or how it ended without one."""
    task_id, status = request["request_id"], unanswered_status(request["status"], request["decision"])
    if status is None:
        return {"type": "answer", "task_id": task_id, "response": request["response"]}
    return {"type": "closed", "task_id": task_id, "status": status, "feedback": request["feedback"]}


def _error(problem: Mapping[str, Any], task_id: str | None) -> Json:
    return {
        **problem,
        "type": "error",
        "problem": problem.get("problem", problem.get("type")),
        "task_id": task_id,
    }
