"""The guard before every call: who calls and how much is open, before its message is read; and how its errors end.

A client may open a call and never send its message. So every method takes its message from a stream, which is the
same to a client: grpcio then calls the method at once, with the address and metadata of its caller.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, aclosing, asynccontextmanager, nullcontext
from typing import Any

import grpc
from google.protobuf.message import Message

from gateway.problems import Problem
from gateway.rpc.admission import Admission
from gateway.rpc.callers import Caller
from gateway.rpc.decoding import checked, messages, only_message
from gateway.rpc.metadata import Context
from gateway.rpc.statuses import CODE, end, refuse
from gateway.rpc.tracing import call_span
from gateway.rpc.upstream import Refused

logger = logging.getLogger(__name__)

INTERNAL = "internal"
GONE_WITHIN_S = 1.0


class Guard(grpc.aio.ServerInterceptor):
    """Admits calls, and answers what they raise."""

    def __init__(
        self, services: tuple[str, ...], admission: Admission, waits: Callable[[Message], bool]
    ) -> None:
        """Guard a server.

        Args:
            services: those whose calls need a token.
            admission: counts the calls.
            waits: returns True for the message of a call that waits for a person.
        """
        self._services = services
        self._admission = admission
        self._waits = waits
        self._guarded: dict[str, grpc.RpcMethodHandler[Any, Any]] = {}

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler[Any, Any] | None]],
        details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        """Return the guarded handler of a call; None if there is no such method."""
        method = str(details.method)
        if method not in self._guarded:
            handler = await continuation(details)
            if handler is None:
                return None
            self._guarded[method] = self._handler(method, handler)
        return self._guarded[method]

    def _handler(
        self, method: str, handler: grpc.RpcMethodHandler[Any, Any]
    ) -> grpc.RpcMethodHandler[Any, Any]:
        needs_token = method.rpartition("/")[0].removeprefix("/") in self._services
        admitted = self._admission.call if needs_token else self._admission.stranger
        read, write = checked(handler.request_deserializer), handler.response_serializer
        if handler.unary_unary is not None:
            spanned = call_span if needs_token else _without_span
            behave = self._answer(method, handler.unary_unary, admitted, spanned)
            return grpc.stream_unary_rpc_method_handler(behave, read, write)
        if handler.unary_stream is not None:
            stream = self._stream(method, handler.unary_stream, admitted)
        else:
            stream = self._exchange(method, handler.stream_stream, admitted)
        return grpc.stream_stream_rpc_method_handler(stream, read, write)

    def _answer(
        self, method: str, behave: Any, admitted: Any, spanned: Any
    ) -> Callable[[Any, Context], Awaitable[Any]]:
        async def answer(_: Any, context: Context) -> Any:
            with spanned(method, context):
                async with self._request(method, context, admitted) as request:
                    return await behave(request, context)

        return answer

    def _stream(self, method: str, behave: Any, admitted: Any) -> Callable[[Any, Context], Awaitable[None]]:
        async def stream(_: Any, context: Context) -> None:
            async with self._request(method, context, admitted) as request:
                await _send(context, behave(request, context))

        return stream

    @asynccontextmanager
    async def _request(self, method: str, context: Context, admitted: Any) -> AsyncIterator[Any]:
        """Admit a call and yield its only message; what its method raises is answered."""
        async with _answering(method, context), admitted(method, context) as caller:
            request = await only_message(context)
            with self._waiting(caller, request):
                yield request

    def _exchange(self, method: str, behave: Any, admitted: Any) -> Callable[[Any, Context], Awaitable[None]]:
        async def exchange(received: AsyncIterator[Any], context: Context) -> None:
            async with _answering(method, context), admitted(method, context):
                await _send(context, behave(messages(received), context))

        return exchange

    def _waiting(self, caller: Caller | None, request: Message) -> AbstractContextManager[None]:
        return self._admission.waiting(caller) if self._waits(request) else nullcontext()


def _without_span(method: str, context: Context) -> AbstractContextManager[None]:
    return nullcontext()


async def _send(context: Context, answers: Any) -> None:
    """Send what a method answers: it yields it, or sends it itself."""
    if inspect.isawaitable(answers):
        await answers
        return
    async with aclosing(answers):
        async for answer in answers:
            await context.write(answer)


@asynccontextmanager
async def _answering(method: str, context: Context) -> AsyncIterator[None]:
    """Turn a refusal within it into the status of the call, and anything unexpected into INTERNAL."""
    try:
        yield
    except grpc.aio.AbortError:
        raise
    except Problem as problem:
        await refuse(context, problem)
    except Refused as error:
        await end(context, error.code, str(error), error.metadata)
    except NotImplementedError:
        # Its service has the method, and this server does not: what anybody may ask for is not logged each time.
        await end(context, grpc.StatusCode.UNIMPLEMENTED, f"{method} is not served here", ())
    except grpc.aio.InternalError:
        # It could not be sent, because the caller is gone: grpc cancels this task once it has heard of that, too.
        await asyncio.sleep(GONE_WITHIN_S)
        raise
    except Exception:
        if context.done():
            # Nobody is there to be told.
            raise
        logger.exception("%s failed", method)
        detail = f"{INTERNAL}: something unexpected went wrong; it was logged"
        await end(context, grpc.StatusCode.INTERNAL, detail, ((CODE, INTERNAL),))
