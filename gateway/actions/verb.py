"""A verb: an action on a subject, declared once for REST and the WebSocket."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Generic, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from gateway.bodies import Body, read_body
from gateway.idempotency import KEY_MAX_CHARS, KEY_PATTERN
from schemas.message import Message

B = TypeVar("B", bound=Body)

Ref = Annotated[
    str,
    Field(
        min_length=1,
        max_length=KEY_MAX_CHARS,
        pattern=KEY_PATTERN,
        description="Names the reply and is the idempotency key: unique for the subject, the same in a repeat.",
    ),
]


class ClientMessage(BaseModel):
    """A message that a client sends."""

    model_config = ConfigDict(extra="forbid")


class NotifiedEvent(NamedTuple):
    """The word for an event in a reader's notification; of several events of one command, the highest rank counts."""

    event: type[Message]
    word: str
    rank: int


@dataclass(frozen=True, kw_only=True)
class Action(Generic[B]):
    """The names and documentation of an action on a subject.

    Attributes:
        name: its part of the route's path and of the route's name.
        operation: its id in the OpenAPI document.
        says: its description in the OpenAPI document.
        body: the body that it takes.
        message: its message on the WebSocket; None if the WebSocket does not take it.
    """

    name: str
    operation: str
    says: str
    body: type[B]
    message: type[BaseModel] | None = None


@dataclass(frozen=True, kw_only=True)
class Verb(Action[B]):
    """An action on a subject by one command that is made from its body alone.

    Attributes:
        command: makes the command for the decider from the subject's id and a body.
        notified: the word for its event in notifications.
    """

    command: Callable[[str, B], Message]
    notified: NotifiedEvent | None = None

    def asked(self, subject_id: str, given: Callable[[], dict[str, Any]]) -> Message:
        """Return the command that a body requests.

        Raises:
            Problem: the body is invalid.
        """
        return self.command(subject_id, read_body(self.body, given()))
