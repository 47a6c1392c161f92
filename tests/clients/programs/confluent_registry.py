"""What Confluent's client asks a registry: look-ups, its settings, and records of its own serializer."""

from __future__ import annotations

import os

from confluent_kafka.schema_registry import (
    RegisteredSchema,
    Schema,
    SchemaRegistryClient,
    record_subject_name_strategy,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.serialization import MessageField, SerializationContext

SUBJECT = "placet.commands.ConsumeGrant"
client = SchemaRegistryClient({"url": os.environ["PLACET_URL"]})
latest = client.get_latest_version(SUBJECT)
print(
    client.get_compatibility(),
    client.get_compatibility(SUBJECT),
    client.get_global_mode(),
    client.get_mode(SUBJECT),
)
found: RegisteredSchema = client.lookup_schema(SUBJECT, latest.schema)
print(found.schema_id == latest.schema_id == client.register_schema(SUBJECT, latest.schema))
other = Schema(
    '{"type": "record", "name": "ConsumeGrant", "namespace": "placet.commands", "fields": []}', "AVRO"
)
for ask in (client.lookup_schema, client.register_schema):
    try:
        ask(SUBJECT, other)
    except SchemaRegistryError as error:
        print(error.http_status_code, error.error_code)

# By its defaults the serializer registers what it sends.
serializer = AvroSerializer(
    client, latest.schema.schema_str, conf={"subject.name.strategy": record_subject_name_strategy}
)
context = SerializationContext("placet.commands", MessageField.VALUE)
body = {"call_id": "c1", "digest": "0" * 64, "attempt_id": "a1", "grant_id": "g1"}
framed = serializer(body, context)
print(framed[:5].hex() == f"{latest.schema_id:010x}", AvroDeserializer(client)(framed, context) == body)
