"""TCP ports: one that is free now, why a given one cannot be listened on, and how a host is written in a URL."""

from __future__ import annotations

import errno
import socket
from collections.abc import Collection

from ops.errors import PortTakenError, UsageError

LOOPBACK = "127.0.0.1"
EVERY_ADDRESS = ("0.0.0.0", "::")  # noqa: S104 - recognised, never bound here
HIGHEST = 65_535
KAFKA = "9092"


def free_port(host: str = LOOPBACK, other_than: Collection[int] = ()) -> int:
    """A port that nothing listens on at this moment.

    Args:
        host: A name or an address of this machine.
        other_than: Ports that were chosen before; nobody holds them yet, so the system may offer one of them again.
    """
    port = _bound(0, host)
    while port in other_than:
        port = _bound(0, host)
    return port


def is_free(port: int, host: str = LOOPBACK) -> bool:
    """Whether the port could be listened on now; connections still closing do not count."""
    try:
        _bound(port, host)
    except OSError:
        return False
    return True


def check_listening(port: int, host: str, option: str = "") -> None:
    """Refuse an address that nothing could listen on.

    Args:
        port: The port; 0 where any free one will do.
        host: A name or an address of this machine.
        option: The first words of the options that say them, such as `probe-`.

    Raises:
        PortTakenError: The port is held by another program.
        UsageError: The host is no address of this machine, or the port is not for this user.
    """
    port_option, host_option = f"--{option}port", f"--{option}host"
    try:
        _bound(port, host)
    except (OSError, UnicodeError) as error:
        code = error.errno if isinstance(error, OSError) else None
        if code == errno.EADDRINUSE:
            raise PortTakenError(
                f"Port {port} on {host} is taken: choose another with {port_option}, "
                f"or {port_option} 0 for any free one."
            ) from error
        if code in (errno.EACCES, errno.EPERM):
            raise UsageError(
                f"This user may not listen on port {port}: choose one above 1023 with {port_option}."
            ) from error
        raise UsageError(
            f"{host} is not an address of this machine: give one with {host_option}, such as {LOOPBACK}, "
            f"or {EVERY_ADDRESS[0]} for all of them."
        ) from error


def _bound(port: int, host: str) -> int:
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    with socket.socket(family, kind, protocol) as probe:
        if port:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(address)
        return int(probe.getsockname()[1])


def broker_addresses(servers: str) -> list[tuple[str, int]]:
    """Kafka's brokers as host and port, from `HOST:PORT,HOST:PORT`; Kafka's own port where none is said.

    Raises:
        UsageError: One of them is no address.
    """
    found = []
    for address in servers.split(","):
        host, _, port = address.strip().rpartition(":") if ":" in address else (address.strip(), "", KAFKA)
        if not host or not (port.isascii() and port.isdecimal() and 0 < int(port) <= HIGHEST):
            raise UsageError(
                f"--bootstrap-servers takes HOST:PORT,HOST:PORT: {address.strip()!r} is not one."
            )
        found.append((host, int(port)))
    return found


def in_url(host: str) -> str:
    """A host as a URL names it: an IPv6 address stands in brackets (RFC 3986, 3.2.2)."""
    return f"[{host}]" if ":" in host else host


def reachable(host: str) -> str:
    """The address by which this machine reaches a server that listens on `host`."""
    return LOOPBACK if host in EVERY_ADDRESS else host
