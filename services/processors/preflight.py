"""Checks before the worker starts: faust ignores a topic that does not exist, and then never reads it."""

from log.completeness import check_begun, check_count
from log.kafka.log import KafkaLog
from log.kafka.settings import client_settings
from services.processors.settings import ProcessorSettings


async def check_topics(settings: ProcessorSettings, written: str) -> str:
    """Check that the facts' topic and the target exist with the log's partition count, and that no facts are missing.

    Returns:
        The id of the topic of facts: a topic recreated under the same name has another.

    Raises:
        PartitionsDiffer: a topic has another partition count.
        FactsDeleted: the first facts of a partition are gone.
        LogError: the broker does not answer, or a topic is missing.
    """
    log = KafkaLog(settings.bootstrap_servers, settings.topics, client_settings(settings.kafka_settings))
    try:
        for topic in (settings.topics.executions, written):
            await check_count(log, topic, settings.partitions)
        await check_begun(log, settings.topics.executions)
        return await log.topic_id(settings.topics.executions)
    finally:
        await log.close()
