"""The decider process: one worker of the group, until it is stopped."""

import asyncio
import logging
import random
import signal
import socket
import uuid
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

import uvloop

from host.errors import EXIT_UNREACHABLE, OperatorError, end_process
from host.garbage_collector import collect_seldom
from host.key_files import DECIDER_KEY, DECIDERS, load_published
from host.public_keys import PublicKeyFile
from log.completeness import check_complete
from log.kafka.log import KafkaLog
from log.kafka.settings import client_settings
from log.port import Log
from schemas.actor import Actor
from schemas.envelope import Signer, Verifier
from schemas.event_signatures import event_signer_of, load_signatures, signs
from schemas.members import member_name
from schemas.topics import Topics
from services.domain.definitions import Definitions
from services.domain.policy import PolicySet
from services.runtime.assembly import Assembly
from services.runtime.cel_helper import CelHelper
from services.runtime.deferred_imports import DeferredImports
from services.runtime.definitions_book import DefinitionsBook
from services.runtime.identity import check_identity, watch_identity
from services.runtime.large_commands import LargeCommands
from services.runtime.meters import Meters
from services.runtime.offloading import on_thread
from services.runtime.snapshot_scheduler import SnapshotScheduler, take_in_process
from services.runtime.trial import ForkedTrial
from services.runtime.trust_tail import TrustTail
from services.runtime.worker import Worker
from vitals.health_reporting import HealthReporter, health_reporting
from vitals.heartbeat import READY, STARTING

ROLE = "decider"

logger = logging.getLogger(__name__)


def run(settings: Mapping[str, str]) -> None:
    """Run a decider until SIGTERM or SIGINT.

    Args:
        settings: see docs/architecture.md, Processes.

    Raises:
        SystemExit: 3 with one sentence, if the log or its own key cannot be used.
    """
    # The state of open executions lives for long: scanning all of it would cost more than deciding.
    collect_seldom()
    try:
        with health_reporting(settings, ROLE) as health:
            uvloop.run(_serve(settings, health))
    except OperatorError as error:
        end_process(error, EXIT_UNREACHABLE)


async def _serve(settings: Mapping[str, str], health: HealthReporter) -> None:
    log = KafkaLog(
        settings["bootstrap_servers"],
        Topics(settings.get("topic_prefix") or "placet"),
        client_settings(settings.get("kafka_settings")),
    )
    try:
        await check_identity(log, Path(settings["data_dir"]) / "topics.json")
        counted = await check_complete(log, load_signatures(settings))
        with CelHelper() as helper:
            empty = Definitions(policies=PolicySet(), evaluate=helper.evaluate, check_schema=helper.misfit)
            await _work(log, settings, empty, health, helper.leave, counted)
    finally:
        await log.close()


async def _work(
    log: Log,
    settings: Mapping[str, str],
    empty: Definitions,
    health: HealthReporter,
    leave: Callable[[], None],
    counted: Mapping[int, int],
) -> None:
    signatures = load_signatures(settings)
    imports = DeferredImports()
    book = DefinitionsBook(log, empty, signatures=signatures, offload=on_thread)
    await book.load()
    trust = TrustTail(log)
    await trust.load()
    keys_dir = Path(settings["keys_dir"])
    # For claims: attempts of this process must not count for the process that is started after it.
    name = f"{settings['worker_id']}/{uuid.uuid4().hex[:12]}"
    assembly = Assembly(
        log=log,
        verifier=_verifier(keys_dir),
        book=book,
        empty=empty,
        worker_id=name,
        partitions=await log.partition_count(log.topics.executions),
        fresh_id=lambda: str(uuid.uuid4()),
        trust=trust.known,
        signer=_signer(keys_dir),
        event_signer=event_signer_of(settings) if signs(settings) else None,
        signatures=signatures,
        trial=ForkedTrial(leave, imports.loaded),
        meters=Meters(health.registry),
        large=LargeCommands(),
        counted=counted,
    )
    worker = Worker(log, name, assembly.build, random.random, member_name(settings, socket.gethostname()))
    book.listeners.add(worker.wake)
    _stop_on_signals(worker)
    scheduler = SnapshotScheduler(worker.ends, lambda partition: take_in_process(settings, partition))
    updating = health.keep_updating(lambda: _update_status(worker, health, imports))
    watching = watch_identity(log, Path(settings["data_dir"]) / "topics.json")
    await _together(
        worker, [watching, book.follow(), trust.follow(), trust.watch(), scheduler.run(), updating]
    )


async def _together(worker: Worker, readers: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Run the worker with the tasks that it needs; the first failure ends all."""
    beside = [asyncio.create_task(reader) for reader in readers]
    work = asyncio.create_task(worker.run(), name="worker")
    try:
        done, _ = await asyncio.wait([work, *beside], return_when=asyncio.FIRST_COMPLETED)
        worker.stop()
        for task in done:
            task.result()
        await work
    finally:
        for task in (work, *beside):
            task.cancel()
        await asyncio.gather(work, *beside, return_exceptions=True)


def _update_status(worker: Worker, health: HealthReporter, imports: DeferredImports) -> None:
    if worker.settled:
        imports.begin()
    terms = worker.terms()
    health.status.partitions = tuple(sorted(terms))
    health.status.terms = tuple(terms[partition] for partition in sorted(terms))
    health.status.reason = worker.trouble
    health.status.progress(*worker.progress())
    health.set_state(READY if worker.settled else STARTING)


def _stop_on_signals(worker: Worker) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, worker.stop)


def _verifier(keys_dir: Path) -> Verifier:
    issuers = PublicKeyFile(keys_dir / "issuers.json")

    def check_token(text: str, at_ms: int) -> Actor:
        # Only services that write to the log themselves send tokens; all other commands have signatures.
        from schemas import token

        return token.verify(text, issuers, at_ms / 1000)

    deciders = PublicKeyFile(keys_dir / DECIDERS)
    return Verifier(PublicKeyFile(keys_dir / "gateways.json"), check_token, deciders)


def _signer(keys_dir: Path) -> Signer:
    """This installation's key for commands that deciders carry between partitions, made at the first start."""
    key = load_published(keys_dir, DECIDER_KEY, DECIDERS)
    return Signer(key.kid, key.private_key, b"/placet/decider")
