"""The address of a client, for counting."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address

# A client with one IPv6 address has all of its network.
NETWORK_BITS = 64


def network_of(host: str) -> str | None:
    """Return the address under which a client is counted: that of IPv4, or the network of IPv6.

    Args:
        host: an address, perhaps in brackets and with a zone: `192.0.2.1`, `[2001:db8::1]`, `fe80::1%eth0`.

    Returns:
        It as text, such as `2001:db8::/64`; None if it is not an address.
    """
    try:
        address = ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return None
    if not isinstance(address, IPv6Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    bits = 128 - NETWORK_BITS
    return f"{IPv6Address(int(address) >> bits << bits)}/{NETWORK_BITS}"
