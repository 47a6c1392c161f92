"""A verb: what may be done to a subject, said once for every door."""

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
        description="Names the answer, and is the idempotency key: unique for the subject, the same in a repeat.",
    ),
]


class Sent(BaseModel):
    """A message of a client."""

    model_config = ConfigDict(extra="forbid")


class Told(NamedTuple):
    """What readers are told happened, by the event; of several of one command the one with the highest rank."""

    event: type[Message]
    word: str
    rank: int


@dataclass(frozen=True, kw_only=True)
class Words(Generic[B]):
    """How what may be done to a subject is said at the doors.

    Attributes:
        name: in its route, and in the route's name.
        operation: its id in the OpenAPI document.
        says: what the document says of it.
        body: what it takes.
        message: what stands for it on the WebSocket; None where it is not taken there.
    """

    name: str
    operation: str
    says: str
    body: type[B]
    message: type[BaseModel] | None = None


@dataclass(frozen=True, kw_only=True)
class Verb(Words[B]):
    """What may be done to a subject by one command that is made of its body alone.

    Attributes:
        command: what it asks of the decider, from the subject's id and a body.
        told: what its event is told as.
    """

    command: Callable[[str, B], Message]
    told: Told | None = None

    def asked(self, subject_id: str, given: Callable[[], dict[str, Any]]) -> Message:
        """The command that a body asks for.

        Raises:
            Problem: what is wrong with the body.
        """
        return self.command(subject_id, read_body(self.body, given()))
