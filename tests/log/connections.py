"""The connections of a client of aiokafka."""

import asyncio
from typing import Any


async def lose_all(client: Any) -> None:
    """Lose all connections before the client knows: a part of an answer has come, and nothing has read it yet."""
    for connection in list(client._conns.values()):
        connection._read_task.cancel()
        await asyncio.wait([connection._read_task])
        connection._reader.feed_data(b"\0")
        connection._writer.transport.abort()
        await connection._closed_fut
        assert connection.connected()
