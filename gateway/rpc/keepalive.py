"""Pings of gRPC: those that its clients may send, and those by which the server notices that a client is gone."""

from __future__ import annotations

# gRPC's clients can be told to ping every 10 s. A network delays one ping more than the next, so some arrive sooner.
# By default gRPC permits one in five minutes, and cuts off who sends three too many.
LEAST_BETWEEN_MS = 5_000
TOO_EARLY_MAX = 2
# The calls of a client that is gone without a word, as behind a NAT that forgot it, would keep their places.
EVERY_MS = 30_000
ANSWER_WITHIN_MS = 20_000


def options() -> tuple[tuple[str, int], ...]:
    """The arguments of a server."""
    return (
        ("grpc.http2.min_ping_interval_without_data_ms", LEAST_BETWEEN_MS),
        ("grpc.http2.max_ping_strikes", TOO_EARLY_MAX),
        # Either side pings between two calls, too.
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.keepalive_time_ms", EVERY_MS),
        ("grpc.keepalive_timeout_ms", ANSWER_WITHIN_MS),
        # The core of grpcio 1.85 never starts the clock of the line above, but that of each ping, of 60 s by default.
        ("grpc.http2.ping_timeout_ms", ANSWER_WITHIN_MS),
    )
