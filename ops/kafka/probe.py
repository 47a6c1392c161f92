"""Ask a broker over a bare socket whether it serves: no client library, no event loop, no log noise.

The requests are Kafka's Metadata (key 3, version 1) for no topics and ApiVersions (key 18, version 0), as in
the protocol guide; a broker lists itself in the metadata only once its controller has unfenced it.
"""

from __future__ import annotations

import struct

from ops.kafka.wire import Connection, SignIn

METADATA = (3, 1)
API_VERSIONS = (18, 0)
FETCH_KEY = 1
FETCH_SINCE_3_9 = 17


def brokers_alive(host: str, port: int, timeout_s: float = 1.0, who: SignIn | None = None) -> int:
    """How many live brokers the one at `host:port` knows; 0 when it does not answer, or not this user."""
    no_topics = struct.pack(">i", 0)
    answer = _ask(host, port, METADATA, no_topics, timeout_s, who)
    return int(struct.unpack_from(">i", answer)[0]) if answer else 0


def is_recent(host: str, port: int, timeout_s: float = 1.0) -> bool:
    """Whether the broker is Kafka 3.9 or newer, by the newest Fetch that it speaks (KIP-853)."""
    answer = _ask(host, port, API_VERSIONS, b"", timeout_s, None)
    if not answer:
        return False
    _, count = struct.unpack_from(">hi", answer)
    ranges = struct.iter_unpack(">hhh", answer[6 : 6 + 6 * count])
    return any(key == FETCH_KEY and newest >= FETCH_SINCE_3_9 for key, _, newest in ranges)


def _ask(
    host: str, port: int, request: tuple[int, int], body: bytes, timeout_s: float, who: SignIn | None
) -> bytes:
    """The body of the answer to one request; empty when there is none."""
    try:
        with Connection(host, port, timeout_s) as connection:
            if who is not None:
                connection.sign_in(who)
            return connection.ask(request, body)
    except (OSError, EOFError):
        return b""
