"""Which connections are authenticated, for whom they count, and under which address the others do."""

from __future__ import annotations

import pytest

from gateway.problems import Problem
from gateway.server.addresses import network_of
from gateway.server.bounds import Bounds
from gateway.server.connections import STATE, ClientConnection, Connections, mark_request_authenticated
from schemas.refusals import Refusal

MOST = 3


@pytest.fixture
def connections() -> Connections:
    return Connections(Bounds(connections_per_subject=MOST))


def opened(connections: Connections) -> ClientConnection:
    async def caught_up() -> None:
        return

    return ClientConnection("192.0.2.1", lambda: None, connections, lambda: False, caught_up)


def authenticated(connections: Connections, owner: str) -> ClientConnection:
    """A new connection, whose first request has the token of an owner."""
    connection = opened(connections)
    mark_request_authenticated({"state": {STATE: connection}}, owner)
    return connection


def test_case_30_connections_of_one_subject_are_limited_and_others_have_theirs(
    connections: Connections,
) -> None:
    first, *_ = [authenticated(connections, "anna") for _ in range(MOST)]
    with pytest.raises(Problem) as refused:
        authenticated(connections, "anna")
    assert refused.value.code is Refusal.QUOTA
    assert len(connections) == 1, "it is one of those without a token, which are closed if they are too many"
    authenticated(connections, "ben")
    first.closed()
    authenticated(connections, "anna")


def test_connection_counts_for_the_first_of_its_subjects_until_a_token_is_refused(
    connections: Connections,
) -> None:
    proxied = authenticated(connections, "anna")
    for _ in range(2 * MOST):
        assert proxied.mark_authenticated("ben")
    proxied.mark_unauthenticated()
    assert len(connections) == 1
    for _ in range(MOST):
        authenticated(connections, "anna")
    assert proxied.mark_authenticated("ben")
    proxied.closed()
    for _ in range(MOST):
        authenticated(connections, "ben")
    assert len(connections) == 0


def test_token_that_is_verified_once_its_connection_is_gone_counts_for_nobody(
    connections: Connections,
) -> None:
    for _ in range(2 * MOST):
        connection = opened(connections)
        connection.closed()
        mark_request_authenticated({"state": {STATE: connection}}, "anna")
    for _ in range(MOST):
        authenticated(connections, "anna")


@pytest.mark.parametrize(
    ("host", "network"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3::1", "2001:db8:1:2::/64"),
        ("[2001:db8:1:2:4::1]", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("fe80::1%eth0", "fe80::/64"),
        ("/run/placet.sock", None),
        ("", None),
    ],
)
def test_address_counts_with_its_network(host: str, network: str | None) -> None:
    assert network_of(host) == network
