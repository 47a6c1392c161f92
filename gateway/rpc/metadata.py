"""What the metadata and the connection of a call say about its caller."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

import grpc

from gateway.problems import Problem
from gateway.server.addresses import network_of
from schemas.refusals import Refusal

# The metadata that is passed on to the gateway, each by the header of the same name.
KEY = "idempotency-key"
PASSED_ON = ("authorization", KEY, "placet-project")

Context = grpc.aio.ServicerContext[Any, Any]


def passed_on(context: Context) -> dict[str, str]:
    """Return the headers of a call's metadata; HTTP itself would remove white space around a value.

    Raises:
        Problem: 400 malformed, a name is given twice; 422 invalid, a value is not one that a header can have.
    """
    found: dict[str, str] = {}
    for name, value in context.invocation_metadata() or ():
        if name not in PASSED_ON or not isinstance(value, str):
            continue
        if name in found:
            raise Problem(Refusal.MALFORMED, f"{name} is given twice: give it once")
        if name == KEY and value != value.strip():
            raise Problem(Refusal.INVALID, f"{name} must have no spaces around it")
        found[name] = value.strip()
    return found


def said_in(context: Context) -> str:
    """Return the token that a call presents, before anything is checked; empty for none.

    The same token is the same text, however its scheme is written and with any white space around it.
    """
    said = [str(value) for name, value in context.invocation_metadata() or () if name == "authorization"]
    return said[0].strip().partition(" ")[2].strip() if len(said) == 1 else ""


def address_of(peer: str) -> str:
    """Return the address of a peer as gRPC writes it, for counting: without its port, of IPv6 the network.

    Args:
        peer: such as `ipv4:192.0.2.1:50000` or `ipv6:%5B2001:db8::1%5D:50000`.
    """
    _, _, place = unquote(peer).partition(":")
    # A Unix socket has none, for example: all of its clients are one.
    return network_of(place.rpartition(":")[0]) or peer.partition(":")[0]
