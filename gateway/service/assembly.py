"""Assembles a gateway from its settings, without starting it."""

from __future__ import annotations

from gateway.audit_reads import AuditReads
from gateway.components import Components
from gateway.identity.authenticators import authenticator_of
from gateway.identity.grants import Grants
from gateway.identity.keys import ISSUERS, load_or_create
from gateway.kafka.commands import KafkaCommandLog
from gateway.kafka.records import RecordReader
from gateway.live.heartbeats import LatestHeartbeats
from gateway.metrics import Metrics
from gateway.policy import load_gateway_policy
from gateway.pushes.hub import Hub
from gateway.server.connections import Connections
from gateway.service.gateway import Gateway
from gateway.service.vault_access import vault_access_of
from gateway.settings import GatewaySettings
from gateway.shares.budget import Budget
from gateway.shares.open_limit import OpenLimit
from gateway.shares.rates import Buckets
from gateway.shares.work import Work
from gateway.vault.reconciler import VaultReconciler
from gateway.views import GatewayViews
from log.kafka.client import KafkaSettings
from log.kafka.heartbeat_producer import HeartbeatProducer
from log.kafka.settings import client_settings
from projections.audit.head_files import HeadFiles
from projections.queries.views import open_views
from schemas.audit import AUDIT_KEYS
from vitals.heartbeat_sender import HeartbeatSender
from vitals.metrics import role_registry
from vitals.process_status import ProcessStatus

_TOO_MANY_SOCKETS = "{} sockets of this subject are open: close some, or send more over one of them"
_TOO_MANY_WAITS = "{} requests of this subject wait: wait for fewer at once, or use the WebSocket"

# What a stream sends of a turn's past is limited in bytes as well, so that a few of them fit into a subject's budget.
PASTS_AT_ONCE = 8
_TOO_MANY_PASTS = (
    f"{PASTS_AT_ONCE} streams of this subject are being sent what has already happened: read these first"
)


def assemble(settings: GatewaySettings) -> Gateway:
    """Assemble a gateway that is not started yet.

    Raises:
        SettingsRefused: the Kafka settings or the gateway policy cannot be used.
        KeysUnreadable: a key is damaged.
        UnknownDatabase: the views' URL is of an unsupported kind.
    """
    load_gateway_policy(settings.policy_file)
    keys = load_or_create(settings.keys_dir)
    grants = Grants(settings.keys_dir)
    authenticator = authenticator_of(settings.keys_dir / ISSUERS, settings.oidc)
    config = KafkaSettings(settings.bootstrap_servers, client_settings(settings.kafka_settings))
    views = GatewayViews(open_views(settings.database_url, settings.topics), settings.topics)
    tail_views = GatewayViews(open_views(settings.database_url, settings.topics, 1), settings.topics)
    vault_access = vault_access_of(settings)
    heartbeats, status = LatestHeartbeats(), ProcessStatus("gateway", settings.name)
    producer = HeartbeatProducer(config.bootstrap_servers, config.security, settings.topics.heartbeats)
    commands = KafkaCommandLog(config)
    limits = settings.limits
    work = Work(limits.subject_share, limits.subject_burst_s, limits.subject_patience_s)
    return Gateway(
        settings=settings,
        keys=keys,
        grants=grants,
        authenticator=authenticator,
        hub=Hub(grants.token, work.handed),
        views=views,
        tail_views=tail_views,
        commands=commands,
        asked_for_time=KafkaCommandLog(config, commands.time),
        requests=Buckets(limits.requests_per_s),
        socket_limit=OpenLimit(limits.sockets, _TOO_MANY_SOCKETS.format(limits.sockets)),
        waiting_limit=OpenLimit(limits.requests_per_s, _TOO_MANY_WAITS.format(limits.requests_per_s)),
        past_limit=OpenLimit(PASTS_AT_ONCE, _TOO_MANY_PASTS),
        components=Components(config, settings.data_dir / "run", heartbeats, settings.partitions),
        audit=_audit_reads(settings, config),
        vault_access=vault_access,
        vault_reconciler=VaultReconciler(vault_access, views),
        client_connections=Connections(limits.bounds),
        status=status,
        metrics=Metrics(role_registry(status)),
        heartbeat_sender=HeartbeatSender(status, producer, settings.status_file),
        heartbeats=heartbeats,
        work=work,
        budget=Budget(limits.subject_bytes, limits.total_bytes),
    )


def _audit_reads(settings: GatewaySettings, config: KafkaSettings) -> AuditReads:
    return AuditReads(
        HeadFiles(settings.audit_heads_dir),
        settings.keys_dir / AUDIT_KEYS,
        RecordReader(config),
        settings.topics,
        settings.audit_head_seconds,
    )
