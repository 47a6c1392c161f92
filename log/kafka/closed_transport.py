"""aiokafka on uvloop: a request on a connection that was lost a moment ago.

A transport of asyncio drops what is written after its end; that of uvloop raises a RuntimeError. aiokafka 0.14
handles only an OSError there (issue 1038): the error reaches whoever asks, and ends the tasks that aiokafka has in
the background. `handle_closed_transports` makes it the KafkaConnectionError that an OSError would have been, for all
clients of the process; aiokafka connects again after that, or the caller translates it (`KafkaSettings.translate`).
"""

import re
from collections.abc import Awaitable, Callable
from typing import Any

from aiokafka.conn import AIOKafkaConnection, CloseReason
from aiokafka.errors import KafkaConnectionError

Send = Callable[..., Awaitable[Any]]
# uvloop/handles/handle.pyx, `_ensure_alive`.
_CLOSED = re.compile(r"unable to perform operation on <.*>; the handler is closed")


def is_closed_transport(error: BaseException) -> bool:
    """Returns True if uvloop refused to write to a closed transport; other RuntimeErrors are none of this."""
    return type(error) is RuntimeError and _CLOSED.fullmatch(str(error)) is not None


def handle_closed_transports() -> None:
    """Let every connection of aiokafka report a closed transport as a broken connection. Can be called again."""
    for name in ("send", "_send_sasl_token"):
        method = getattr(AIOKafkaConnection, name)
        if not hasattr(method, "__wrapped__"):
            setattr(AIOKafkaConnection, name, _reporting(method))


def _reporting(send: Send) -> Send:
    def sent(connection: Any, *request: Any, **how: Any) -> Awaitable[Any]:
        try:
            return send(connection, *request, **how)
        except RuntimeError as error:
            if not is_closed_transport(error):
                raise
            connection.close(reason=CloseReason.CONNECTION_BROKEN)
            where = f"{connection.host}:{connection.port}"
            raise KafkaConnectionError(f"Connection at {where} broken: {error}") from error

    sent.__wrapped__ = send  # type: ignore[attr-defined]
    return sent
