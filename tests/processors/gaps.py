"""Offsets of the executions topic under which nobody finds a record."""

from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete

from tests.processors.role import Role


async def commit_foreign_record(role: Role) -> None:
    """A transaction's end takes an offset of its own, under which nobody finds a record."""
    producer = AIOKafkaProducer(bootstrap_servers=role.bootstrap_servers, transactional_id=role.topics.prefix)
    await producer.start()
    try:
        async with producer.transaction():
            await producer.send(role.topics.executions, b"foreign", b"stranger", partition=0)
    finally:
        await producer.stop()


async def delete_records(role: Role, partition: int, before: int) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=role.bootstrap_servers)
    await admin.start()
    try:
        where = TopicPartition(role.topics.executions, partition)
        await admin.delete_records({where: RecordsToDelete(before_offset=before)})
    finally:
        await admin.close()
