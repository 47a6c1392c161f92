"""The parts of a gateway before it is started: none of them has read the log."""

from __future__ import annotations

from dataclasses import dataclass, field

from gateway.background_tasks import BackgroundTasks
from gateway.checking.definition_readers import DefinitionReaders
from gateway.identity.keys import Keys
from gateway.kafka.commands import KafkaCommandLog
from gateway.service.served import Served
from gateway.vault.access import VaultAccess
from gateway.vault.reconciler import VaultReconciler
from gateway.views import GatewayViews
from vitals.heartbeat_sender import HeartbeatSender


@dataclass(slots=True, kw_only=True)
class Assembled(Served):
    """The parts that requests use, and those that work in the background.

    `tail_views` is for the tail alone: behind the reads of requests, it would not be answered in time.
    """

    keys: Keys
    tail_views: GatewayViews
    commands: KafkaCommandLog
    asked_for_time: KafkaCommandLog
    vault_access: VaultAccess
    vault_reconciler: VaultReconciler
    heartbeat_sender: HeartbeatSender
    definitions: DefinitionReaders = field(default_factory=DefinitionReaders)
    tasks: BackgroundTasks = field(default_factory=BackgroundTasks)
