"""Messages that are not what they should be: refused as the same mistake is over REST, instead of by an exception.

grpcio calls a deserializer before the service's own code, and answers its exception as UNKNOWN with Python's words.
So our deserializers return what is wrong, and the call is refused in its own terms.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from gateway.problems import Problem
from gateway.rpc.metadata import Context
from schemas.refusals import Refusal

# As the body of a REST request. grpcio itself refuses larger messages than `RECEIVED_MAX_BYTES` before they are read.
MESSAGE_MAX_BYTES = 1024 * 1024
RECEIVED_MAX_BYTES = 4 * MESSAGE_MAX_BYTES
# The time for the message of a call that has only one; a client sends it with the call.
MESSAGE_WITHIN_S = 10.0


def checked(read: Callable[[bytes], Any] | None) -> Callable[[bytes], Any]:
    """Return a deserializer that returns the refusal of a message that is too long, or not of its type.

    Args:
        read: the deserializer of the message's type; None leaves the message as bytes.
    """

    def checked_read(raw: bytes) -> Any:
        if len(raw) > MESSAGE_MAX_BYTES:
            return Problem(Refusal.TOO_LARGE, f"a message is at most {MESSAGE_MAX_BYTES} bytes long")
        try:
            return raw if read is None else read(raw)
        except DecodeError:
            return Problem(Refusal.MALFORMED, "this is no message of the method's request type")

    return checked_read


async def messages(received: AsyncIterator[Any]) -> AsyncIterator[Any]:
    """Yield a stream's messages.

    Raises:
        Problem: one of them cannot be read.
    """
    async for message in received:
        if isinstance(message, Problem):
            raise message
        yield message


async def only_message(context: Context, within_s: float = MESSAGE_WITHIN_S) -> Any:
    """Return the message of a call that has one.

    Raises:
        Problem: it cannot be read, or the client has not sent it in time.
    """
    try:
        async with asyncio.timeout(within_s):
            message = await context.read()
    except TimeoutError as error:
        raise Problem(Refusal.MALFORMED, f"the call's message has not come within {within_s:g} s") from error
    if message is grpc.aio.EOF:
        raise Problem(Refusal.MALFORMED, "the call has no message")
    if isinstance(message, Problem):
        raise message
    return message
