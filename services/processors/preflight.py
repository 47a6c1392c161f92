"""Before the worker starts: faust ignores a topic that does not exist, and then never reads it."""

from log.errors import FactsDeleted, LogError
from log.kafka.log import KafkaLog
from log.port import Log
from log.whole import check_begun
from services.processors.errors import KafkaUnreachable, LogChanged, PartitionsDiffer
from services.processors.settings import TrustSettings, client_settings


async def check_topics(settings: TrustSettings, written: str) -> str:
    """Check that the facts' topic and the one that is written exist with the log's partition count, and all facts.

    Returns:
        The id of the topic of facts: one recreated under the same name has another.

    Raises:
        KafkaUnreachable: nobody answers, or a topic is missing.
        PartitionsDiffer: a topic has another partition count.
        LogChanged: the first facts of a partition are gone.
    """
    log = KafkaLog(settings.bootstrap_servers, settings.topics, client_settings(settings.kafka_settings))
    try:
        for topic in (settings.topics.executions, written):
            await _check_count(log, topic, settings.partitions)
        await check_begun(log, settings.topics.executions)
        return await log.topic_id(settings.topics.executions)
    except FactsDeleted as error:
        raise LogChanged(str(error)) from error
    except LogError as error:
        raise KafkaUnreachable(str(error)) from error
    finally:
        await log.close()


async def _check_count(log: Log, topic: str, wanted: int) -> None:
    found = await log.partition_count(topic)
    if found != wanted:
        raise PartitionsDiffer(
            f"The topic {topic} has {found} partitions and {wanted} were asked for: the count is fixed for "
            f"the life of the log, so start with --partitions {found}."
        )
