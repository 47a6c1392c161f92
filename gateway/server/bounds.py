"""The limits of a connection, in bytes and seconds."""

from __future__ import annotations

from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits of one connection, and of the number of open connections.

    Attributes:
        line_bytes: length of a request's target; beyond it 414.
        head_bytes: length of the request line and the headers with their line ends, without blanks; beyond it 431.
        headers: number of headers; beyond it 431.
        head_s: from the first moment of a connection or head to the head's end; beyond it 408.
        idle_s: from an answer's end to the next request's first byte. Longer than common clients and proxies keep an
            unused connection (httpx 5 s, nginx and AWS's balancers 60 s): if the server closes a connection just when
            a request is sent on it, that request is reset.
        body_s: from the head's end to the body's end; beyond it 408.
        framing_bytes: overhead of a body's chunks, beyond as many bytes as they carry; beyond it 400.
        linger_bytes: bytes of a refused body that are still read, so that the answer arrives instead of a reset.
        linger_s: how long they are read.
        stall_s: how long a client may read nothing of what was written for it.
        pipelined: requests on one connection that wait for their turn; with more the connection is closed.
        first_bytes: length of a WebSocket message before authentication; a longer one is closed with 1009.
        first_controls: pings and pongs of a WebSocket before authentication; with more it is closed.
        fragments: fragments of one WebSocket message; with more the WebSocket is closed.
        unauthenticated: unauthenticated connections; for one more, the oldest of the address with the most is closed.
        unauthenticated_per_address: the same for one address.
        connections_per_subject: open connections that one subject has authenticated; one more is refused with 429.
        unauthenticated_s: how long one may wait with its first request, unless there are four times too many.
    """

    line_bytes: int = 8 * KIB
    head_bytes: int = 32 * KIB
    headers: int = 100
    head_s: float = 10.0
    idle_s: int = 75
    body_s: float = 30.0
    framing_bytes: int = 16 * KIB
    linger_bytes: int = 32 * MIB
    linger_s: float = 10.0
    stall_s: float = 60.0
    pipelined: int = 16
    first_bytes: int = 64 * KIB
    first_controls: int = 16
    fragments: int = 1_024
    unauthenticated: int = 1_024
    unauthenticated_per_address: int = 256
    connections_per_subject: int = 4_096
    unauthenticated_s: float = 2.0
