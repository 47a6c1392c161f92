"""TCP ports on loopback: one that is free now, and whether a given one is."""

from __future__ import annotations

import socket

LOOPBACK = "127.0.0.1"
EVERY_ADDRESS = ("0.0.0.0", "::")  # noqa: S104 - recognised, never bound here


def free_port(host: str = LOOPBACK) -> int:
    """A port that nothing listens on at this moment."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def is_free(port: int, host: str = LOOPBACK) -> bool:
    """Whether the port could be listened on now; connections still closing do not count."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def reachable(host: str) -> str:
    """The address by which this machine reaches a server that listens on `host`."""
    return LOOPBACK if host in EVERY_ADDRESS else host
