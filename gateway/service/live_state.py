"""The live state, which the tail keeps current from a moment of the views on, and the services built on it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from gateway.asking.asker import Asker, CommandIds
from gateway.asking.outbox import Outbox
from gateway.asking.undecided import Undecided, no_tokens
from gateway.identity.keys import GATEWAYS, PublishedKeyFile
from gateway.kafka.past import KafkaPast
from gateway.kafka.tail import KafkaTail, Start
from gateway.live.cache import key_of
from gateway.live.cursor import CursorKey
from gateway.live.live import Live
from gateway.live.prefetch import Prefetch
from gateway.live.reader import Reader
from gateway.live.shelf import MAX_PASSING
from gateway.operations.plan import Gate
from gateway.policy import load_gateway_policy
from gateway.pushes.catching_up import CatchUps
from gateway.service.assembled import Assembled
from gateway.shares.quotas import ProposalQuotas
from gateway.shares.work import Owner
from gateway.view_times import ViewTimes
from gateway.views import Beginning, GatewayViews
from log.kafka.client import KafkaSettings
from log.kafka.settings import client_settings
from projections.store.port import Position, ViewUnavailable
from schemas.envelope import Signer, Verifier
from schemas.record import Event

logger = logging.getLogger(__name__)

VIEW_PAUSE_S = 0.1
PATIENCE_S = 600.0


async def beginning_of(views: GatewayViews, waits_for: Callable[[str], None]) -> Beginning:
    """Return the moment of the views to begin from; if the views are unavailable, wait for them.

    Args:
        views: of the gateway.
        waits_for: called, at each failed attempt, with a sentence about what is waited for.
    """
    said = ""
    while True:
        try:
            return await views.beginning(MAX_PASSING)
        except ViewUnavailable as error:
            if str(error) != said:
                said = str(error)
                logger.info("waiting for the views: %s", said)
            waits_for(error.public)
            await asyncio.sleep(VIEW_PAUSE_S)


def live_of(parts: Assembled, beginning: Beginning) -> tuple[Live, KafkaTail]:
    """Return the live state at a moment of the views, and the tail that continues from exactly there."""
    settings = parts.settings
    topics, partitions = settings.topics, settings.partitions
    known = {at.partition: at for at in beginning.positions if at.topic == topics.executions}
    lanes = [known.get(p, Position(topics.executions, p, "")) for p in range(partitions)]
    key = CursorKey(parts.keys.cursor, 1 + partitions)
    starts = [(0, ""), *((at.next_offset, at.record_id) for at in lanes)]
    live = Live.at(key, parts.hub.publish, starts)
    live.time = parts.commands.time
    live.took = _noting(parts)
    _fill(live, beginning)
    config = KafkaSettings(settings.bootstrap_servers, client_settings(settings.kafka_settings))
    begins = [
        Start(topics.definitions, 0),
        *(Start(at.topic, at.partition, at.next_offset, at.claim) for at in lanes),
    ]

    prefetch = Prefetch(live.cache, parts.tail_views)

    async def take(lane: int, events: Sequence[Event], next_offset: int) -> None:
        await prefetch.before(events)
        live.take(lane, events, next_offset)
        parts.vault_reconciler.note(events)

    return live, KafkaTail(config, begins, take, settings.signatures)


def gate_of(parts: Assembled, live: Live, tail: KafkaTail, past: KafkaPast) -> Gate:
    """Return the services that operations need, over a live state."""
    signer = Signer(parts.keys.gateway.kid, parts.keys.gateway.private_key)
    outbox = Outbox(signer, parts.commands)
    partitions, limits = parts.settings.partitions, parts.settings.limits
    return Gate(
        live,
        Asker(live, outbox, parts.views, CommandIds.of_gateways(parts.keys.cursor)),
        Reader(live, parts.views.lookups, tail.end_offsets, partitions),
        parts.settings.topics,
        partitions,
        load_gateway_policy(parts.settings.policy_file),
        parts.grants,
        ProposalQuotas(limits.agent_proposals_per_minute, limits.tenant_proposals_per_minute),
        ViewTimes(),
        parts.vault_access,
        parts.definitions,
        CatchUps(live, parts.hub, past, parts.views.state_before, tail.rule_at),
        parts.work,
        _undecided(parts, live, tail.config),
        parts.views,
    )


async def until_read(
    live: Live, ends: Sequence[int], has_failed: Callable[[], bool], patience_s: float = PATIENCE_S
) -> None:
    """Wait until the tail has read what the log contained, however long that takes, or has failed.

    A request that was served earlier would be checked by outdated roles.

    Args:
        live: the state that the tail feeds.
        ends: per lane, the first offset that need not be read.
        has_failed: returns True if reading will never complete.
        patience_s: after each such number of seconds, a warning is logged.
    """
    while not await live.until(
        lambda: all(map(int.__ge__, live.read_through, ends)) or has_failed(), patience_s
    ):
        logger.warning("the log is still being read: at %s of %s", live.read_through, list(ends))


def _noting(parts: Assembled) -> Callable[[Owner, float], None]:
    def took(owner: Owner, seconds: float) -> None:
        # Old events that are read again at the start are charged to no subject.
        if parts.caught_up:
            parts.work.noted(owner, seconds)

    return took


def _undecided(parts: Assembled, live: Live, config: KafkaSettings) -> Undecided:
    topic, partitions = parts.settings.topics.commands, parts.settings.partitions
    past = KafkaPast(config, [Start(topic, number).tp for number in range(partitions)])
    gateways = PublishedKeyFile(parts.settings.keys_dir / GATEWAYS)
    return Undecided(past, live, Verifier(gateways.get, no_tokens), parts.views, partitions)


def _fill(live: Live, beginning: Beginning) -> None:
    for partition, through in beginning.adopted.items():
        live.adopted[partition] = through
    for call in beginning.calls:
        live.cache.put_call(key_of(call), call)
    for hold in beginning.holds:
        live.cache.put_hold(hold)
    for turn in beginning.turns:
        live.cache.put_turn(turn)
    # Last: those of the open work stay, however many there are.
    for execution in beginning.executions:
        live.cache.put_execution(key_of(execution), execution)
