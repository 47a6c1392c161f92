"""The parts of a gateway before it is started: none of them has read the log."""

from __future__ import annotations

from dataclasses import dataclass, field

from gateway.checking.desk import DefinitionDesk
from gateway.identity.keys import Keys
from gateway.kafka.commands import KafkaCommandLog
from gateway.parts import Parts
from gateway.service.served import Served
from gateway.vault.desk import Desk
from gateway.vault.keeper import Keeper
from vitals.heartbeat_sender import HeartbeatSender


@dataclass(slots=True, kw_only=True)
class Assembled(Served):
    """The parts that requests use, and those that work in the background."""

    keys: Keys
    commands: KafkaCommandLog
    asked_for_time: KafkaCommandLog
    desk: Desk
    keeper: Keeper
    heartbeat_sender: HeartbeatSender
    definitions: DefinitionDesk = field(default_factory=DefinitionDesk)
    parts: Parts = field(default_factory=Parts)
