"""The messages of the human bridge, and their translation from and to those of `placet.v1`; no network here.

| the client sends | |
|---|---|
| `{type: publish, prompt, task_id?}` | asks a person (an agent's token) |
| `{type: answer, task_id, response, feedback?, hold_id?}` | answers, or with null rejects (a person's token) |
| `{type: authenticate, …}`, `{type: ping}` | as at `/v1/ws` |

| the client gets | |
|---|---|
| `{type: publish, task_id, prompt, kind, options, hold_id, asks, …}` | an open question that it may see |
| `{type: more, shown}` | more are open than it is sent at once |
| `{type: published, task_id, status}`, `{type: answered, task_id}` | what it sent was accepted |
| `{type: answer, task_id, response}` | a question was answered |
| `{type: closed, task_id, status, feedback, response}` | it ended without an answer, perhaps with its default |
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
from gateway.operations.human_input import SEVERAL
from gateway.problems import Problem, renamed
from gateway.resources.human_input import WAITING, default_taken, question_of, unanswered_status
from gateway.sockets.session import HIDDEN
from gateway.sockets.snapshots import ITEMS_MAX, Shown
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
# The open questions that a person has been sent are kept in memory. When there is room for so many again, the next
# ones are looked for among all that are open.
SHOWN_MAX = 5_000
LOOK_FOR = ITEMS_MAX
RETRY_AFTER_S = 60
# What a person has to see of a question to answer it: a prompt alone does not say what a permission is for.
SHOWN_AS_THEY_ARE = (
    "kind",
    "options",
    "hold_id",
    "asks",
    "fields",
    "decision_type",
    "input_schema",
    "deadline_at",
)
# How a question ends for somebody who may no longer see it.
WITHDRAWN = "withdrawn"


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
class Namesakes:
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
        self._open: dict[str, Namesakes] = {}
        self._shown = 0
        # The items of a snapshot that have come so far, and whether questions are open that were not sent.
        self._items = 0
        self._left_out = self._told_more = False
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

    def view(self, shown: Shown) -> Shown:
        """Of the open holds the questions that the client was not sent yet, so that a snapshot is cut after these."""
        if shown.channel != HOLDS:
            return shown
        sees = shown.sees
        return shown._replace(
            sees=lambda row: _is_question(row) and not self._knows(row) and (sees is None or sees(row))
        )

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
                yield from self._snapshot(message)
            case "hold_resolved":
                yield from self._closed(message)
            case "hold_changed" if message["change"] == "expired":
                yield from self._closed(message)
            case "hitl_requested" | "hold_changed":
                # A change may have delegated it to this person, or escalated it to a role of theirs.
                yield from self._published(message)
            case kind if kind == HIDDEN:
                yield from self._withdrawn(message)
            case "reply":
                yield from self._replied(message)
            case "error":
                # It may be the snapshot that was refused.
                self._left_out = not self._is_agent
                yield {"task_id": None, **message}
            case "pong":
                yield message

    def _follow_people(self) -> None:
        self._open.clear()
        self._shown = self._items = 0
        if not self._is_agent:
            self._look_for_more()

    def _look_for_more(self) -> None:
        self._left_out = False
        self.own.append({"type": "subscribe", "channels": [HOLDS]})

    def _snapshot(self, part: Json) -> Iterator[Json]:
        """Publish the questions of a part of a snapshot; behind the last ask for those that had no room in it."""
        if not self._items:
            self._left_out = False
        for hold in part["items"]:
            yield from self._published(hold)
        self._items += len(part["items"])
        if part["more"]:
            return
        came, self._items = self._items, 0
        if came < part["total"]:
            self._left_out = True
            if self._shown >= SHOWN_MAX:
                yield from self._more()
            elif came:
                self._look_for_more()
        elif not self._left_out:
            self._told_more = False

    def _more(self) -> Iterator[Json]:
        """Say once that there are more questions than are sent."""
        if not self._told_more:
            self._told_more = True
            yield {"type": "more", "shown": self._shown}

    def _note(self, hold: Json) -> None:
        self._shown += not self._knows(hold)
        self._open.setdefault(hold["request_id"], Namesakes()).add(hold["hold_id"])

    def _knows(self, hold: Mapping[str, Any]) -> bool:
        namesakes = self._open.get(hold["request_id"])
        return namesakes is not None and hold["hold_id"] in namesakes.holds

    def _answer(self, answer: Answer) -> Json:
        """The answer with its hold, if that is known here; without one the endpoint finds it by the task id."""
        hold_id = answer.hold_id
        if hold_id is None:
            shown = self._open.get(answer.task_id, Namesakes())
            if shown.shared:
                raise Problem(Refusal.ID_REUSED, SEVERAL)
            hold_id = next(iter(shown.holds), None)
        said = {"response": answer.response, "feedback": answer.feedback}
        return {"type": ANSWER, "task_id": answer.task_id, "hold_id": hold_id, **said}

    def _published(self, hold: Json) -> Iterator[Json]:
        if self._is_agent or not _is_question(hold) or self._knows(hold):
            return
        if self._shown >= SHOWN_MAX:
            self._left_out = True
            yield from self._more()
            return
        self._note(hold)
        told = {"type": "publish", "task_id": hold["request_id"], "prompt": hold["question"]}
        yield told | {name: hold[name] for name in SHOWN_AS_THEY_ARE}

    def _closed(self, hold: Json) -> Iterator[Json]:
        if not self._forgotten(hold):
            return
        if self._is_agent:
            self.own.append({"type": "unsubscribe", "channels": [f"executions:{hold['execution_id']}"]})
        yield _ended({**hold, **(hold["decision"] or {"decision": None, "feedback": None})})

    def _withdrawn(self, hold: Json) -> Iterator[Json]:
        if self._forgotten(hold):
            ended = {"status": WITHDRAWN, "feedback": None, "response": None}
            yield {"type": "closed", "task_id": hold["request_id"], **ended}

    def _forgotten(self, hold: Json) -> bool:
        """Forget a question that this client was sent; False if it was not."""
        if not self._knows(hold):
            return False
        namesakes = self._open[hold["request_id"]]
        namesakes.holds.discard(hold["hold_id"])
        if not namesakes.holds:
            del self._open[hold["request_id"]]
        self._shown -= 1
        if self._left_out and self._shown <= max(SHOWN_MAX - LOOK_FOR, 0):
            self._look_for_more()
        return True

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
        self._note(request)
        channel, cursor = f"executions:{request['execution_id']}", request["cursor"]
        self.own.append({"type": "subscribe", "channels": [channel], "cursor": cursor})


def _is_question(hold: Mapping[str, Any]) -> bool:
    """Whether people are asked it here: the values of variables are typed where nobody else sees them."""
    return bool(hold["request_id"]) and hold["status"] == "open" and hold["kind"] != "env_var"


def _request(publish: Publish) -> Json:
    named = {} if publish.task_id is None else {"request_id": publish.task_id}
    return {"type": PUBLISH, "body": {**question_of(publish.prompt), **named}}


def _ended(request: Json) -> Json:
    """The message about a closed question: its answer, or how it ended without one."""
    task_id, status = request["request_id"], unanswered_status(request["status"], request["decision"])
    if status is None:
        return {"type": "answer", "task_id": task_id, "response": request["response"]}
    ended = {"feedback": request["feedback"], "response": default_taken(request)}
    return {"type": "closed", "task_id": task_id, "status": status, **ended}


def _error(problem: Mapping[str, Any], task_id: str | None) -> Json:
    return {
        **problem,
        "type": "error",
        "problem": problem.get("problem", problem.get("type")),
        "task_id": task_id,
    }
