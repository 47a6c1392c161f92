"""The servers that other tests stand on: they must be real."""

from __future__ import annotations

import psycopg
import pytest
from aiokafka.admin import AIOKafkaAdminClient


@pytest.mark.broker
async def test_kafka_fixture_lists_a_live_broker(kafka: str) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka)
    await admin.start()
    try:
        cluster = await admin.describe_cluster()
    finally:
        await admin.close()
    assert cluster["brokers"]


@pytest.mark.postgres
def test_postgres_fixture_runs_a_transaction(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        row = connection.execute("SELECT current_setting('server_version_num')::int").fetchone()
    assert row is not None
    assert row[0] >= 150000
