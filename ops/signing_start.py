"""From where on the log is signed: written down when the topics are made, and found again where that was lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from pathlib import Path

from host.key_files import DECIDERS, KeysUnreadable, locked
from host.public_keys import PublicKeyFile
from log.errors import LogError
from log.places import TopicPartition
from log.port import Log
from ops.config import StackConfig
from ops.errors import OpsError, UsageError
from ops.kafka.acl import READER
from ops.log_ends import opened_log, topic_ends
from schemas.event_signatures import CLAIM_TYPE, HEADER, REQUIRED, TopicSignatures
from schemas.record import RawRecord
from schemas.signed_from import (
    COPY,
    SIGNED_FROM,
    Since,
    installed_signed_from,
    switched,
    write_signed_from,
)
from schemas.topics import Topics


def install_signed_from(config: StackConfig) -> None:
    """Write down from where on the log is signed: 0 of a new topic; where it ends, of one that never was signed.

    Where signing is switched off, or on again, that is written down likewise, for otherwise nothing that was recorded
    meanwhile would count, nor what follows it. No decider may run that was started otherwise (docs/identity.md).

    Raises:
        OpsError: The log does not answer.
        UsageError: What is written there is damaged, or was lost and cannot be told from the log.
    """
    try:
        with locked(config.directory.keys):
            asyncio.run(_install(config, config.directory.keys / SIGNED_FROM))
    except KeysUnreadable as error:
        raise UsageError(str(error)) from error
    except LogError as error:
        raise OpsError(str(error)) from error


async def _install(config: StackConfig, path: Path) -> None:
    topics, on = Topics(prefix=config.topic_prefix), config.log_signatures == REQUIRED
    now = installed_signed_from(path)
    async with opened_log(config) as log:
        for topic in (topics.executions, topics.definitions):
            ends = await topic_ends(log, topic)
            known = now[topic] if topic in now else await _found(config, path, topic, ends, on=on)
            if known is not None:
                now[topic] = _switched(known, ends, on=on)
    if now:
        write_signed_from(path, now)


def _switched(known: Sequence[Since], ends: Sequence[int], *, on: bool) -> tuple[Since, ...]:
    # A partition that is not named is signed from its beginning.
    entries = (*known, *([0] * (len(ends) - len(known))))[: len(ends)]
    turned = tuple(switched(since, end, on=on) for since, end in zip(entries, ends, strict=True))
    return turned if turned != entries else tuple(known)


async def _found(
    config: StackConfig, path: Path, topic: str, ends: Sequence[int], *, on: bool
) -> tuple[Since, ...] | None:
    """From where on a topic is signed of which nothing is written down, by its writers' claims.

    A decider claims a partition before it records anything there. So a log whose claims are all signed was signed
    from its beginning, and one that has no signed claim never was: what it has is taken as it stands. Of anything
    between the two, forgeries cannot be told from what was recorded unsigned. It reads the whole log, once.

    Returns:
        None of a log without a claim that shall not be signed.

    Raises:
        UsageError: It cannot be told.
    """
    if not any(ends):
        return (0,) * len(ends) if on else None
    signatures = TopicSignatures(topic, PublicKeyFile(path.with_name(DECIDERS)))
    signed: bool | None = None
    async with opened_log(config, READER) as log, aclosing(_claims(log, topic, ends)) as claims:
        async for number, claim in claims:
            doubt = signatures.doubt(claim)
            if (doubt and HEADER in dict(claim.headers)) or signed is bool(doubt):
                raise _untold(path, f"{topic}/{number}@{claim.offset}", doubt, ends)
            signed = not doubt
    if signed is False:
        # Nothing is owed of what was never signed; so no later start looks again.
        return tuple(ends) if on else ((0, 0),) * len(ends)
    return (0,) * len(ends) if on or signed else None


async def _claims(log: Log, topic: str, ends: Sequence[int]) -> AsyncGenerator[tuple[int, RawRecord], None]:
    for number, end in enumerate(ends):
        tp = TopicPartition(topic, number)
        first, _ = await log.bounds(tp)
        async with aclosing(log.read(tp, first, end)) as chunks:
            async for chunk in chunks:
                for raw in chunk:
                    if CLAIM_TYPE in raw.headers:
                        yield number, raw


def _untold(path: Path, claim: str, doubt: str, ends: Sequence[int]) -> UsageError:
    return UsageError(
        f"Neither {path} nor {COPY} beside it states from which offset the log is signed, and the log does not show "
        f"it: the claim at {claim} {doubt or 'is signed, and one before it is not'}. Restore {path.name} and "
        f"{DECIDERS} from a backup or another host; docs/identity.md (From where on) describes what to do if "
        f"nobody has them. The partitions end at {list(ends)}."
    )
