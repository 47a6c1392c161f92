"""Ask a broker over a bare socket whether it serves: no client library, no event loop, no log noise.

The request is Kafka's Metadata (key 3, version 1) for no topics, as in the protocol guide; a broker lists
itself in the answer only once its controller has unfenced it.
"""

from __future__ import annotations

import socket
import struct

METADATA_KEY = 3
METADATA_VERSION = 1
_HEADER = struct.Struct(">hhih")
_CORRELATION_ID = 1


def brokers_alive(host: str, port: int, timeout_s: float = 1.0) -> int:
    """How many live brokers the one at `host:port` knows; 0 when it does not answer."""
    try:
        with socket.create_connection((host, port), timeout_s) as connection:
            connection.sendall(_request())
            connection.settimeout(timeout_s)
            return _broker_count(connection)
    except (OSError, EOFError):
        return 0


def _request() -> bytes:
    client = b"placet"
    body = _HEADER.pack(METADATA_KEY, METADATA_VERSION, _CORRELATION_ID, len(client)) + client
    body += struct.pack(">i", 0)
    return struct.pack(">i", len(body)) + body


def _broker_count(connection: socket.socket) -> int:
    size = struct.unpack(">i", _read(connection, 4))[0]
    correlation_id, count = struct.unpack_from(">ii", _read(connection, size))
    return int(count) if correlation_id == _CORRELATION_ID else 0


def _read(connection: socket.socket, size: int) -> bytes:
    content = b""
    while len(content) < size:
        chunk = connection.recv(size - len(content))
        if not chunk:
            raise EOFError
        content += chunk
    return content
