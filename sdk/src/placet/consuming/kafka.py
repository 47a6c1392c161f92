"""Events from Kafka itself: every partition of the executions, without a consumer group.

aiokafka's defaults are unsafe for this: a group, auto-commit, and `latest` in place of an offset that is gone.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaConsumer
from aiokafka.errors import (
    AuthenticationFailedError,
    AuthenticationMethodNotSupported,
    ClusterAuthorizationFailedError,
    IllegalSaslStateError,
    KafkaError,
    OffsetOutOfRangeError,
    TopicAuthorizationFailedError,
    UnsupportedSaslMechanismError,
)
from aiokafka.helpers import create_ssl_context

from placet.config import NotConfigured
from placet.consuming.events import LogEvent, Reached, Wanted
from placet.consuming.kafka_run import KafkaRun
from placet.consuming.records import Reader, Schemas
from placet.consuming.registry import Registry
from placet.consuming.signatures import Signatures
from placet.errors import CheckpointRefused
from placet.transport.port import ConnectionLost, Patience
from placet.transport.retry import Outage

FETCH_BYTES = 4 * 1024 * 1024
# Errors that no retry resolves.
REFUSALS = (
    AuthenticationFailedError,
    AuthenticationMethodNotSupported,
    ClusterAuthorizationFailedError,
    IllegalSaslStateError,
    TopicAuthorizationFailedError,
    UnsupportedSaslMechanismError,
)
NO_SETTINGS = (
    "; no kafka_settings= are given: a broker with TLS or SASL closes such a connection. Those of a stack of "
    "`placet up` are in .placet/kafka/clients/reader.json"
)
# What uvloop raises for a request on a connection that was lost a moment ago; aiokafka 0.14 does not handle it (its
# issue 1038).
CLOSED_TRANSPORT = re.compile(r"unable to perform operation on <.*>; the handler is closed")


@dataclass(frozen=True)
class KafkaLog:
    """Where the events are.

    Attributes:
        servers: the bootstrap servers.
        security: aiokafka's settings of the connection.
        topic: of the events.
        keys_dir: with the deciders' public keys; None to verify no signature.
    """

    servers: str
    security: Mapping[str, Any] = field(repr=False)
    topic: str
    keys_dir: str | os.PathLike[str] | None

    @classmethod
    def of(
        cls,
        servers: str,
        settings: str | os.PathLike[str] | Mapping[str, Any] | None,
        prefix: str,
        keys_dir: str | os.PathLike[str] | None,
    ) -> KafkaLog:
        """The log of a consumer's arguments.

        Raises:
            NotConfigured: the settings or keys cannot be used.
        """
        topic = f"{prefix}.executions"
        if keys_dir is not None:
            Signatures(topic, keys_dir)
        return cls(servers, _security(settings), topic, keys_dir)

    def consumer(self) -> AIOKafkaConsumer:
        """A consumer that never commits and never chooses an offset by itself."""
        return AIOKafkaConsumer(
            bootstrap_servers=self.servers,
            enable_auto_commit=False,
            auto_offset_reset="none",
            isolation_level="read_committed",
            max_partition_fetch_bytes=FETCH_BYTES,
            **self.security,
        )


class KafkaSource:
    """The events topic of one Kafka."""

    def __init__(self, log: KafkaLog, registry: Registry, patience: Patience, wanted: Wanted) -> None:
        self.url = log.servers
        self._log, self._registry, self._patience, self._wanted = log, registry, patience, wanted

    async def close(self) -> None:
        """See `Source`."""
        await self._registry.close()

    async def wants(self, event: LogEvent) -> bool:
        """See `Source`."""
        return self._wanted.fits(event)

    @property
    def _hint(self) -> str:
        # A broker that wants TLS or SASL closes a plain connection without a word.
        return "" if self._log.security else NO_SETTINGS

    async def reached(self, start: str, *, follow: bool) -> AsyncGenerator[Sequence[Reached], None]:
        """See `Source`.

        Raises:
            NotConfigured: Kafka refuses the connection, or has no such topic.
        """
        await self._registry.check_types(self._wanted.types)
        keys_dir = self._log.keys_dir
        signatures = None if keys_dir is None else Signatures(self._log.topic, keys_dir)
        reader = Reader(Schemas(self._registry), signatures)
        outage = Outage(self._patience)
        while True:
            run = KafkaRun(self._log.consumer(), self._log.topic, reader, self._wanted)
            try:
                await run.open(start)
                outage.heard()
                while follow or not await run.is_over():
                    reached = await run.poll()
                    outage.heard()
                    if reached:
                        start = reached[-1].cursor
                        yield reached
                return
            except REFUSALS as error:
                raise NotConfigured(f"Kafka at {self._log.servers} refuses: {error!r}") from error
            except OffsetOutOfRangeError as error:
                raise CheckpointRefused("gone", "the log no longer has what follows the position") from error
            except (KafkaError, OSError, TimeoutError, RuntimeError) as error:
                # KafkaError is a RuntimeError, too.
                is_known = isinstance(error, KafkaError | OSError) or CLOSED_TRANSPORT.fullmatch(str(error))
                if not is_known:
                    raise
                outage.tolerate(
                    ConnectionLost(f"Kafka at {self._log.servers} cannot be read: {error!r}{self._hint}")
                )
            finally:
                await run.close()
            await outage.pause()


def _security(settings: str | os.PathLike[str] | Mapping[str, Any] | None) -> dict[str, Any]:
    """The settings of the connection for aiokafka."""
    if settings is None:
        return {}
    if not isinstance(settings, Mapping):
        try:
            settings = json.loads(Path(settings).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise NotConfigured(f"{settings} cannot be read: {error}") from error
    if not isinstance(settings, Mapping):
        raise NotConfigured("the Kafka settings are no object")
    tls = {name.removeprefix("ssl_"): value for name, value in settings.items() if name.startswith("ssl_")}
    found = {name: value for name, value in settings.items() if not name.startswith("ssl_")}
    if str(found.get("security_protocol", "")).endswith("SSL"):
        try:
            found["ssl_context"] = create_ssl_context(**tls)
        except (OSError, TypeError, ValueError) as error:
            raise NotConfigured(f"the TLS settings of Kafka cannot be used: {error}") from error
    return found
