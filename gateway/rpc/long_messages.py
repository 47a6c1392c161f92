"""The processor time that reading the messages of callers takes, which protobuf does in Python.

A message of one megabyte can have so many fields that it takes a second. So long ones are read on a thread, one at a
time for each caller, and their time is counted: a caller that takes more than its share is delayed, and refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from typing import Any, TypeVar

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

from gateway.problems import Problem
from gateway.settings import Limits
from gateway.shares.work import Owner, Work
from schemas.refusals import Refusal

# One that is shorter takes a few milliseconds at most.
LONG_BYTES = 4 * 1024
T = TypeVar("T")
M = TypeVar("M", bound=Message)
# For whom the present call is counted.
_owner: ContextVar[Owner] = ContextVar("owner")


class LongMessages:
    """Reads and makes messages."""

    def __init__(self, limits: Limits) -> None:
        """Begin with nothing spent.

        Args:
            limits: the share of the process that one caller's messages may take.
        """
        self._work = Work(limits.subject_share, limits.subject_burst_s, limits.subject_patience_s)

    async def of_size(self, size: int, work: Callable[[], T]) -> T:
        """Do work whose time depends on a number of bytes, for the caller of the present call (`counts_for`).

        Raises:
            Problem: 429 quota, the caller is far beyond its share.
        """
        if size <= LONG_BYTES:
            return work()
        owner = _owner.get()
        await self._work.admit(owner)
        return await self._work.done(owner, work)

    async def read(self, message: M, read: Callable[[M], T]) -> T:
        """Read a message that has no field which this version does not know.

        Raises:
            Problem: it has; else as `of_size`, and those of `read`.
        """

        def known() -> T:
            check_known(message)
            return read(message)

        return await self.of_size(message.ByteSize(), known)


def counts_for(owner: Owner) -> None:
    """Count the messages of the present call, which is a task of its own, for an owner."""
    _owner.set(owner)


def check_known(message: Message) -> None:
    """Refuse a message with fields that this version does not know, at any depth.

    Raises:
        Problem: it has.
    """
    # A walk through all fields is made only to name the one that is wrong.
    known = type(message)()
    known.CopyFrom(message)
    known.DiscardUnknownFields()
    if known.ByteSize() != message.ByteSize():
        name, number = next(_unknown_fields(message), (message.DESCRIPTOR.name, 0))
        raise Problem(Refusal.INVALID, f"field {number} of {name} is unknown to this version")


def _unknown_fields(message: Message) -> Iterator[tuple[str, int]]:
    """The message's name and the number of each field that this version does not know, at any depth."""
    unknown = UnknownFieldSet(message)
    for place in range(len(unknown)):
        yield message.DESCRIPTOR.name, unknown[place].field_number
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            for child in _children(field, value):
                yield from _unknown_fields(child)


def _children(field: FieldDescriptor, value: Any) -> Iterable[Message]:
    if isinstance(value, Message):
        return (value,)
    kind = field.message_type
    if kind is not None and kind.GetOptions().map_entry:
        value = value.values()
    return (child for child in value if isinstance(child, Message))
