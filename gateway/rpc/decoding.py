"""Messages that are not what they should be: refused as the same mistake is over REST, instead of by an exception.

grpcio calls a deserializer before the service's own code, and answers its exception as UNKNOWN with Python's words.
So the deserializers of our services return what is wrong, and the call is refused in its own terms.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, NamedTuple

import grpc
from google.protobuf.message import DecodeError

from gateway.rpc.statuses import CODE
from schemas.refusals import Refusal

# As the body of a REST request. grpcio itself refuses larger messages than `RECEIVED_MAX_BYTES` before they are read.
MESSAGE_MAX_BYTES = 1024 * 1024
RECEIVED_MAX_BYTES = 4 * MESSAGE_MAX_BYTES

Context = grpc.aio.ServicerContext[Any, Any]


class Undecodable(NamedTuple):
    """The reason why a message cannot be read."""

    code: Refusal
    detail: str


class MessageChecks(grpc.aio.ServerInterceptor):
    """Refuses messages of some services that are too long or not of their type."""

    def __init__(self, services: tuple[str, ...]) -> None:
        self._services = services

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler[Any, Any] | None]],
        details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        """Return the handler of a call, which reads messages with care."""
        handler = await continuation(details)
        service = str(details.method).rpartition("/")[0].removeprefix("/")
        if handler is None or service not in self._services:
            return handler
        read, write = _checked(handler.request_deserializer), handler.response_serializer
        if handler.unary_stream is not None:
            return grpc.unary_stream_rpc_method_handler(_stream(handler.unary_stream), read, write)
        return grpc.unary_unary_rpc_method_handler(_answer(handler.unary_unary), read, write)


def _checked(read: Any) -> Callable[[bytes], Any]:
    def checked(raw: bytes) -> Any:
        if len(raw) > MESSAGE_MAX_BYTES:
            return Undecodable(Refusal.TOO_LARGE, f"a message is at most {MESSAGE_MAX_BYTES} bytes long")
        try:
            return read(raw)
        except DecodeError:
            return Undecodable(Refusal.MALFORMED, "this is no message of the method's request type")

    return checked


def _answer(behave: Any) -> Callable[[Any, Context], Awaitable[Any]]:
    async def answer(request: Any, context: Context) -> Any:
        if isinstance(request, Undecodable):
            await _refuse(context, request)
        return await behave(request, context)

    return answer


def _stream(behave: Any) -> Callable[[Any, Context], AsyncIterator[Any]]:
    async def stream(request: Any, context: Context) -> AsyncIterator[Any]:
        if isinstance(request, Undecodable):
            await _refuse(context, request)
        async for one in behave(request, context):
            yield one

    return stream


async def _refuse(context: Context, fault: Undecodable) -> None:
    context.set_trailing_metadata(((CODE, str(fault.code)),))
    await context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"{fault.code}: {fault.detail}")
