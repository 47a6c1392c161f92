"""One gateway: its parts put together, started in order and stopped.

Starting, in this order:
1. Kafka answers, and its topics are those of this installation;
2. the vault is open;
3. the views say where they stand and what is open there;
4. the tail begins at exactly that place, so that rows and events fit together without a gap;
5. the tail has read what the log held at that moment;
6. the gateway is ready.

A database that does not answer is waited for, as long as it takes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from gateway.asking import Asker, CommandIds
from gateway.audit_reads import AuditReads
from gateway.checking.desk import DefinitionDesk
from gateway.components import Components
from gateway.identity.doors import Authenticator
from gateway.identity.grants import Grants
from gateway.identity.keys import GATEWAYS, ISSUERS, Keys, PublicKeyFile, load_or_create
from gateway.identity.oidc import OidcIssuer
from gateway.identity.oidc_settings import OidcSettings
from gateway.kafka_cluster import check_topics
from gateway.kafka_commands import KafkaCommandLog
from gateway.kafka_heartbeats import HeartbeatTail
from gateway.kafka_past import KafkaPast
from gateway.kafka_records import RecordReader
from gateway.kafka_tail import KafkaTail, Start
from gateway.kafka_trust import TrustTail
from gateway.leaving import Leaving
from gateway.live.cache import MAX_PASSING, key_of
from gateway.live.cursor import CursorKey
from gateway.live.heard import Heard
from gateway.live.live import Live
from gateway.live.reader import Reader
from gateway.live.trust import TrustParts
from gateway.looks import Looks
from gateway.metrics import Metrics
from gateway.operations.plan import Gate
from gateway.outbox import Outbox
from gateway.parts import Parts
from gateway.policy import load_gateway_policy
from gateway.pushes.catching_up import CatchUps
from gateway.pushes.hub import Hub
from gateway.server.visitors import Strangers
from gateway.settings import GatewaySettings, read_kafka_settings
from gateway.shares.budget import Budget
from gateway.shares.quotas import ProposalQuotas
from gateway.shares.rates import Buckets
from gateway.shares.seats import Seats
from gateway.shares.work import Owner, Work
from gateway.timekeeping import keep_time
from gateway.undecided import Undecided, no_tokens
from gateway.vault.desk import Desk
from gateway.vault.keeper import Keeper
from gateway.vault.store import open_database
from gateway.vault.vault import Vault
from gateway.vault.wrapping import wrapper_of
from gateway.views import Beginning, GatewayViews
from log.kafka.client import KafkaSettings
from log.kafka.voice import KafkaVoice
from projections.audit.head_files import HeadFiles
from projections.queries.views import open_views
from projections.store.port import Position, ViewUnavailable
from schemas.audit import AUDIT_KEYS
from schemas.envelope import Signer, Verifier
from schemas.record import Event
from vitals.heart import Heart
from vitals.pulse import Pulse
from vitals.word import BEAT_S

logger = logging.getLogger(__name__)

VIEW_PAUSE_S = 0.1
PATIENCE_S = 600.0


@dataclass(slots=True)
class Gateway:
    """The parts of a running gateway. `gate` and the others are there once it is started."""

    settings: GatewaySettings
    keys: Keys
    grants: Grants
    authenticator: Authenticator
    hub: Hub
    views: GatewayViews
    commands: KafkaCommandLog
    asked_for_time: KafkaCommandLog
    requests: Buckets
    seats: Seats
    components: Components
    audit: AuditReads
    desk: Desk
    keeper: Keeper
    strangers: Strangers
    pulse: Pulse
    heart: Heart
    heard: Heard
    work: Work
    budget: Budget
    definitions: DefinitionDesk = field(default_factory=DefinitionDesk)
    trust: TrustParts = field(default_factory=TrustParts)
    metrics: Metrics = field(default_factory=Metrics)
    leaving: Leaving = field(default_factory=Leaving)
    parts: Parts = field(default_factory=Parts)
    caught_up: bool = False
    port: int = 0
    _gate: Gate | None = None
    _tail: KafkaTail | None = None
    _past: KafkaPast | None = None

    @property
    def started(self) -> bool:
        """Whether the live state is there."""
        return self._gate is not None

    @property
    def gate(self) -> Gate:
        """What operations need.

        Raises:
            RuntimeError: the gateway was not started.
        """
        if self._gate is None:
            raise RuntimeError("the gateway was not started")
        return self._gate

    @property
    def tail(self) -> KafkaTail:
        """The tail; errors as `gate`."""
        if self._tail is None:
            raise RuntimeError("the gateway was not started")
        return self._tail

    async def start(self) -> None:
        """Connect, read up to the end of the log, and be ready.

        Raises:
            LogUnreachable: nobody answers.
            PartitionsDiffer: a topic has another partition count than the gateway was configured for.
            LogError: a topic does not exist, or the views stand outside of the log.
            ViewOutdated: the views are of another version.
            VaultUnavailable: the vault's database lets nobody in.
        """
        settings = self.settings
        self.parts.on_failure(self.give_up)
        await check_topics(self.commands.config, settings.topics, settings.partitions)
        await self.commands.open()
        await self.desk.start()
        live, tail = self._live(await self._beginning())
        self.authenticator.people = lambda: live.definitions.people
        self._tail = tail
        await tail.open()
        self._past = KafkaPast(tail.config, [start.tp for start in tail.starts])
        self._gate = self._assemble(live, tail, self._past)
        ends = await tail.end_offsets()
        self.parts.spawn(tail.run())
        self.parts.spawn(self._gate.asker.outbox.run())
        self.parts.spawn(self._gate.asker.run())
        self.parts.spawn(self.keeper.run())
        trust = TrustTail(self.commands.config, settings.topics.trust, settings.partitions, self.trust)
        self.parts.spawn(trust.run())
        self.parts.spawn(keep_time(self.asked_for_time, settings.topics.commands, settings.partitions))
        self.parts.spawn(HeartbeatTail(self.commands.config, settings.topics.heartbeats, self.heard).run())
        self.parts.spawn(self._feel())
        await until_read(live, ends, lambda: self.parts.failure is not None)
        self.caught_up = self.parts.failure is None

    def leave(self) -> None:
        """Answer long polls as things stand, and end the streams."""
        self.leaving.begin()
        if self._gate is not None:
            self._gate.live.watch.close()

    def give_up(self) -> None:
        """Answer commands under way as when their time is over."""
        if self._gate is not None:
            self._gate.live.waiters.close()

    async def stop(self) -> None:
        """Answer who still waits, and let go of every connection."""
        await self.parts.stop()
        self.give_up()
        if self._gate is not None:
            await self._gate.undecided.close()
        if self._tail is not None:
            await self._tail.close()
        await self.desk.stop()
        await self.definitions.close()
        await self.commands.close()
        await self.asked_for_time.close()
        await self.audit.records.close()
        if self._past is not None:
            await self._past.close()
        await self.authenticator.close()
        self.views.views.close()

    async def _feel(self) -> None:
        while True:
            self.pulse.progress(*self.tail.progress())
            self.pulse.clock = self.commands.time.wrong
            await asyncio.sleep(BEAT_S / 2)

    async def _beginning(self) -> Beginning:
        waited = False
        while True:
            try:
                return await self.views.beginning(MAX_PASSING)
            except ViewUnavailable as error:
                if not waited:
                    logger.info("waiting for the views: %s", error)
                waited = True
                await asyncio.sleep(VIEW_PAUSE_S)

    def _live(self, beginning: Beginning) -> tuple[Live, KafkaTail]:
        topics, partitions = self.settings.topics, self.settings.partitions
        known = {at.partition: at for at in beginning.positions if at.topic == topics.executions}
        lanes = [known.get(p, Position(topics.executions, p, "")) for p in range(partitions)]
        key = CursorKey(self.keys.cursor, 1 + partitions)
        starts = [(0, ""), *((at.next_offset, at.record_id) for at in lanes)]
        live = Live.at(key, self.hub.publish, starts)
        live.time = self.commands.time
        live.took = self._took
        _fill(live, beginning)
        config = KafkaSettings(
            self.settings.bootstrap_servers, read_kafka_settings(self.settings.kafka_settings)
        )
        begins = [
            Start(topics.definitions, 0),
            *(Start(at.topic, at.partition, at.next_offset, at.claim) for at in lanes),
        ]

        def take(lane: int, events: Sequence[Event], next_offset: int) -> None:
            live.take(lane, events, next_offset)
            self.keeper.note(events)

        return live, KafkaTail(config, begins, take, self.settings.seals)

    def _took(self, owner: Owner, seconds: float) -> None:
        # Nobody pays for what is read again at the start.
        if self.caught_up:
            self.work.noted(owner, seconds)

    def _assemble(self, live: Live, tail: KafkaTail, past: KafkaPast) -> Gate:
        signer = Signer(self.keys.gateway.kid, self.keys.gateway.private_key)
        outbox = Outbox(signer, self.commands)
        partitions, limits = self.settings.partitions, self.settings.limits
        return Gate(
            live,
            Asker(live, outbox, self.views, CommandIds.of_gateways(self.keys.cursor)),
            Reader(live, self.views, tail.end_offsets, partitions),
            self.settings.topics,
            partitions,
            load_gateway_policy(self.settings.policy_file),
            self.grants,
            ProposalQuotas(limits.agent_proposals_per_minute, limits.tenant_proposals_per_minute),
            Looks(),
            self.desk,
            self.definitions,
            CatchUps(live, self.hub, past, self.views.state_before, tail.rule_at),
            self.work,
            self._undecided(live, tail.config),
        )

    def _undecided(self, live: Live, config: KafkaSettings) -> Undecided:
        topic, partitions = self.settings.topics.commands, self.settings.partitions
        past = KafkaPast(config, [Start(topic, number).tp for number in range(partitions)])
        gateways = PublicKeyFile(self.settings.keys_dir / GATEWAYS)
        return Undecided(past, live, Verifier(gateways.get, no_tokens), self.views, partitions)


async def until_read(
    live: Live, ends: Sequence[int], has_failed: Callable[[], bool], patience_s: float = PATIENCE_S
) -> None:
    """Wait until the tail has read what the log held, however long that takes, or has failed.

    Whoever is served earlier is served by the roles of long ago.

    Args:
        live: what the tail feeds.
        ends: per lane, the first offset that need not be read.
        has_failed: whether it never will be.
        patience_s: after so many seconds each, the operator is told.
    """
    while not await live.until(
        lambda: all(map(int.__ge__, live.read_through, ends)) or has_failed(), patience_s
    ):
        logger.warning("the log is still being read: at %s of %s", live.read_through, list(ends))


def assemble(settings: GatewaySettings) -> Gateway:
    """A gateway that is not started yet.

    Raises:
        SettingsRefused: the Kafka settings cannot be used.
        GatewayPolicyRefused: the gateway policy cannot be used.
        KeysUnreadable: a key is damaged.
        UnknownDatabase: the views' URL is of another kind.
    """
    load_gateway_policy(settings.policy_file)
    keys = load_or_create(settings.keys_dir)
    grants, issuers = Grants(settings.keys_dir), PublicKeyFile(settings.keys_dir / ISSUERS)
    config = KafkaSettings(settings.bootstrap_servers, read_kafka_settings(settings.kafka_settings))
    views = GatewayViews(open_views(settings.database_url, settings.topics), settings.topics)
    wrapper = wrapper_of(settings.keys_dir)
    heard, pulse = Heard(), Pulse("gateway", settings.name)
    voice = KafkaVoice(config.bootstrap_servers, config.security, settings.topics.heartbeats)
    commands = KafkaCommandLog(config)
    desk = Desk(lambda: Vault(open_database(settings.data_dir, settings.database_url), wrapper))
    limits = settings.limits
    return Gateway(
        settings,
        keys,
        grants,
        Authenticator(issuers.get, oidc=_oidc(settings.oidc), keys_version=issuers.version),
        Hub(grants.token),
        views,
        commands,
        KafkaCommandLog(config, commands.time),
        Buckets(limits.requests_per_s),
        Seats(limits.sockets),
        Components(config, settings.data_dir / "run", heard, settings.partitions),
        AuditReads(
            HeadFiles(settings.audit_heads_dir),
            settings.keys_dir / AUDIT_KEYS,
            RecordReader(config),
            settings.topics,
            settings.audit_head_seconds,
        ),
        desk,
        Keeper(desk, views),
        Strangers(limits.bounds),
        pulse,
        Heart(pulse, voice, settings.status_file),
        heard,
        Work(limits.subject_share, limits.subject_burst_s, limits.subject_patience_s),
        Budget(limits.subject_bytes, limits.total_bytes),
    )


def _oidc(settings: OidcSettings | None) -> OidcIssuer | None:
    if settings is None:
        return None
    # Its HTTP client is loaded only where a provider is believed.
    from gateway.identity.jwks import IssuerKeys

    return OidcIssuer(settings, IssuerKeys(settings.issuer, settings.jwks_url, settings.algorithms))


def _fill(live: Live, beginning: Beginning) -> None:
    for partition, through in beginning.adopted.items():
        live.adopted[partition] = through
    for row in beginning.executions:
        live.cache.put_execution(key_of(row), row)
    for row in beginning.calls:
        live.cache.put_call(key_of(row), row)
    for row in beginning.holds:
        live.cache.put_hold(row)
