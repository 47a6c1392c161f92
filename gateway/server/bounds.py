"""How much a connection may send and hold back, in bytes and seconds."""

from __future__ import annotations

from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True, slots=True)
class Bounds:
    """What one connection may do, and how many may be open that nobody has vouched for with a token.

    Attributes:
        line_bytes: length of a request's target; beyond it 414.
        head_bytes: length of the request line and the headers with their line ends, without blanks; beyond it 431.
        headers: number of headers; beyond it 431.
        head_s: from a connection's or a head's first moment to the head's end; beyond it 408.
        idle_s: from an answer's end to the next request's first byte. Longer than common clients and proxies keep a
            connection that is not used (httpx 5 s, nginx and AWS's balancers 60 s): one that the server ends just as
            a request is sent on it resets that request.
        body_s: from the head's end to the body's end; beyond it 408.
        framing_bytes: what the chunks of a body may cost beside as many bytes as they carry; beyond it 400.
        linger_bytes: of a refused body that are still read, so that the answer arrives and no reset.
        linger_s: how long they are read.
        stall_s: how long a client may read nothing of what was written for it.
        pipelined: requests on one connection that wait for their turn; one that sends more is cut off.
        first_bytes: of a WebSocket before its token is believed; a longer message is closed with 1009.
        first_controls: pings and pongs of a WebSocket before its token is believed; with more it is cut off.
        fragments: parts of one WebSocket message; with more it is cut off.
        strangers: connections without a believed token; for one more, the oldest where the most are is closed.
        strangers_each: likewise of one address.
        strangers_s: how long one is left alone for its first request, unless there are four times too many.
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
    strangers: int = 1_024
    strangers_each: int = 256
    strangers_s: float = 2.0
