"""`placet.consume`: from its arguments to a consumer."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from placet.cli.extras import NotInstalled
from placet.client import AsyncPlacet
from placet.config import checked_source, find_config, find_url
from placet.consuming.checkpoints import Checkpoint, FileCheckpoint
from placet.consuming.consumer import Consumer
from placet.consuming.events import Names, Wanted
from placet.consuming.place import MARK
from placet.consuming.registry import Registry
from placet.consuming.scope import Scope
from placet.consuming.source import EARLIEST, LATEST, Source
from placet.consuming.stream import StreamSource
from placet.transport.bearer import Caller, named_project
from placet.transport.port import Patience
from placet.transport.rest import RestTransport

PathText = str | os.PathLike[str]
Token = str | Callable[[], str]
# A gateway's cursor of a log with one partition has 51 characters.
CURSOR_CHARS_MIN = 51


def consume(
    url: str | None = None,
    *,
    token: Token | None = None,
    project: str | None = None,
    types: Names | None = None,
    agents: Names | None = None,
    execution: Names | None = None,
    start: str = EARLIEST,
    checkpoint: PathText | Checkpoint | None = None,
    follow: bool = True,
    bootstrap_servers: str | None = None,
    kafka_settings: PathText | Mapping[str, Any] | None = None,
    topic_prefix: str = "placet",
    keys_dir: PathText | None = None,
    patience: Patience | None = None,
) -> Consumer:
    """The recorded events of executions, from the gateway's stream or, with `bootstrap_servers`, from Kafka.

    Each event is delivered at least once, in the order of its partition, also over lost connections, restarts of the
    gateway and, with a checkpoint, of this program. One that is delivered again has the same `id`.

    Args:
        url: of the gateway; by default as `Placet` finds it. With `bootstrap_servers` only schemas are read there.
        token: the bearer token, or a function that gives a fresh one; not used with `bootstrap_servers`.
        project: the project, for a token of the whole tenant.
        types: only events of these types.
        agents: only events of these agents' executions; not with `bootstrap_servers`.
        execution: only events of this execution, or of these; all are read, and the others left out here.
        start: `"earliest"`, `"latest"`, or an event's `cursor`; not looked at once the checkpoint has a position.
        checkpoint: a file, or an object with `load` and `save`, that keeps the position. A file is for one project
            and one set of filters.
        follow: False to end with what the log has now.
        bootstrap_servers: of Kafka, where the events of all tenants are (`pip install 'placet[kafka]'`).
        kafka_settings: a file of the form of `placet up --kafka-settings`, or its content.
        topic_prefix: of the topics.
        keys_dir: with `deciders.json` and `signed-from.json`, by which signatures are verified; None verifies none.
        patience: how long to try.

    Raises:
        NotConfigured: no gateway or no token is given, or a setting cannot be used.
        NotInstalled: Kafka is to be read without the packages for it.
        ValueError: a filter is empty, `start` is none of these, or an argument does not go with `bootstrap_servers`.
    """
    _check_start(start)
    wanted = Wanted.of(types, agents, execution)
    kept = FileCheckpoint(checkpoint) if isinstance(checkpoint, str | os.PathLike) else checkpoint
    if isinstance(kept, FileCheckpoint):
        named = None if bootstrap_servers else named_project(project)
        kept = kept.within(Scope.of(named, wanted, reads_kafka=bootstrap_servers is not None))
    tried = patience or Patience()
    if bootstrap_servers is None:
        source = _from_gateway(url, token, project, tried, wanted)
    elif agents is not None:
        raise ValueError(
            "agents= is only for a gateway: most records in Kafka do not say whose execution it is"
        )
    else:
        source = _from_kafka(url, (bootstrap_servers, kafka_settings, topic_prefix, keys_dir), tried, wanted)
    return Consumer(source, start, kept, follow)


def _check_start(start: str) -> None:
    """Refuse what no log can have as a position: a misspelt word, or a text that was lost on the way."""
    is_place = start.startswith(MARK) or len(start) >= CURSOR_CHARS_MIN
    if not is_place and start not in (EARLIEST, LATEST):
        raise ValueError(f"start= is {EARLIEST!r}, {LATEST!r} or an event's cursor, not {start!r}")


def _from_gateway(
    url: str | None, token: Token | None, project: str | None, patience: Patience, wanted: Wanted
) -> Callable[[], Source]:
    if callable(token):
        found, tokens = find_url(url), checked_source(token)
    else:
        config = find_config(url, token)
        found, tokens = config.url, lambda: config.token
    caller = Caller(tokens, named_project(project))

    def made() -> Source:
        client = AsyncPlacet(found, token=tokens, transport="rest", patience=patience, project=project)
        return StreamSource(client, caller, _registry(found, patience), patience, wanted)

    return made


def _from_kafka(
    url: str | None, log: tuple[Any, ...], patience: Patience, wanted: Wanted
) -> Callable[[], Source]:
    try:
        from placet.consuming.kafka import KafkaLog, KafkaSource
    except ImportError as error:
        raise NotInstalled("Reading Kafka", "kafka", error) from error
    found, read = find_url(url), KafkaLog.of(*log)
    return lambda: KafkaSource(read, _registry(found, patience), patience, wanted)


def _registry(url: str, patience: Patience) -> Registry:
    return Registry(RestTransport(url, None, patience))
