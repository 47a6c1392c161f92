"""One snapshot of one partition, by a separate read: the process that `snapshot_scheduler` starts.

python -m services.runtime.snapshot_once PARTITION reads the decider's settings (JSON) from its input and prints the
offset that the snapshot reaches (JSON).
"""

import json
import os
import sys
import uuid
from collections.abc import Mapping

import uvloop

from host.errors import OperatorError
from log.kafka.log import KafkaLog
from log.kafka.settings import client_settings
from log.places import TopicPartition
from log.port import Log
from schemas.event_signatures import EventSigner, LogSignatures, event_signer_of, load_signatures, signs
from schemas.term import rule_of
from schemas.topics import Topics
from services.domain.definitions import Definitions
from services.domain.policy import PolicySet
from services.runtime.claim import read_up_to
from services.runtime.executions_partition import ExecutionsPartition
from services.runtime.ledger import Ledger
from services.runtime.snapshots import Manifest, Snapshots

# Nothing waits for this process, and it shares its cores with processes for which users wait.
NICENESS = 10


async def take_snapshot(
    log: Log,
    partition: int,
    snapshot_id: str,
    event_signer: EventSigner | None = None,
    signatures: LogSignatures | None = None,
) -> Manifest:
    """Read an executions partition from its newest snapshot to its end, and write the next.

    Raises:
        LogError: the log cannot be read, or the snapshot not be written.
    """
    events_tp = TopicPartition(log.topics.executions, partition)
    snapshots = Snapshots(
        log, events_tp, event_signer, signatures.keys if event_signer and signatures else None
    )
    # Folding decides nothing, so it needs no rules.
    executions = ExecutionsPartition(lambda: Definitions(policies=PolicySet()))
    ledger = Ledger(executions, rule_of(signatures, events_tp.topic))
    await snapshots.restore(ledger, executions)
    _, end = await log.bounds(events_tp)
    await read_up_to(log, events_tp, ledger, end)
    return await snapshots.save(ledger, executions, snapshot_id)


async def _take(settings: Mapping[str, str], partition: int) -> Manifest:
    topics = Topics(settings.get("topic_prefix") or "placet")
    log = KafkaLog(settings["bootstrap_servers"], topics, client_settings(settings.get("kafka_settings")))
    try:
        signatures = load_signatures(settings)
        event_signer = event_signer_of(settings) if signs(settings) else None
        return await take_snapshot(log, partition, str(uuid.uuid4()), event_signer, signatures)
    finally:
        await log.close()


def main(partition: int) -> None:
    """Take the snapshot, or end with one sentence."""
    os.nice(NICENESS)
    try:
        manifest = uvloop.run(_take(json.load(sys.stdin), partition))
    except OperatorError as error:
        raise SystemExit(str(error)) from error
    sys.stdout.write(json.dumps({"next_offset": manifest.next_offset}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
