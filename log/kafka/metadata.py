"""Kafka's Metadata request, version 10: the first whose response has topic ids (Kafka 2.8).

aiokafka 0.14 supports up to version 5. The fields are those of Kafka's protocol guide, `Metadata`.
"""

import uuid
from io import BytesIO

from aiokafka.protocol.abstract import AbstractType
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import (
    Boolean,
    CompactArray,
    CompactString,
    Int16,
    Int32,
    Schema,
    TaggedFields,
)

METADATA_API_KEY = 3
VERSION = 10


class Uuid(AbstractType[uuid.UUID]):  # type: ignore[misc]
    """Kafka's uuid type: sixteen bytes, big-endian. aiokafka 0.14 does not have it."""

    @classmethod
    def encode(cls, value: uuid.UUID) -> bytes:
        """The sixteen bytes."""
        return value.bytes

    @classmethod
    def decode(cls, data: BytesIO) -> uuid.UUID:
        """The uuid in the next sixteen bytes."""
        return uuid.UUID(bytes=data.read(16))


class MetadataResponseV10(Response):  # type: ignore[misc]
    """The response to `MetadataRequestV10`."""

    API_KEY = METADATA_API_KEY
    API_VERSION = VERSION
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "brokers",
            CompactArray(
                ("node_id", Int32),
                ("host", CompactString()),
                ("port", Int32),
                ("rack", CompactString()),
                ("tags", TaggedFields),
            ),
        ),
        ("cluster_id", CompactString()),
        ("controller_id", Int32),
        (
            "topics",
            CompactArray(
                ("error_code", Int16),
                ("name", CompactString()),
                ("topic_id", Uuid),
                ("is_internal", Boolean),
                (
                    "partitions",
                    CompactArray(
                        ("error_code", Int16),
                        ("partition", Int32),
                        ("leader", Int32),
                        ("leader_epoch", Int32),
                        ("replicas", CompactArray(Int32)),
                        ("isr", CompactArray(Int32)),
                        ("offline_replicas", CompactArray(Int32)),
                        ("tags", TaggedFields),
                    ),
                ),
                ("authorized_operations", Int32),
                ("tags", TaggedFields),
            ),
        ),
        ("cluster_authorized_operations", Int32),
        ("tags", TaggedFields),
    )


class MetadataRequestV10(RequestStruct):  # type: ignore[misc]
    """A request for topics by name; a topic id of zeros means by name."""

    FLEXIBLE_VERSION = True
    API_KEY = METADATA_API_KEY
    API_VERSION = VERSION
    RESPONSE_TYPE = MetadataResponseV10
    SCHEMA = Schema(
        ("topics", CompactArray(("topic_id", Uuid), ("name", CompactString()), ("tags", TaggedFields))),
        ("allow_auto_topic_creation", Boolean),
        ("include_cluster_authorized_operations", Boolean),
        ("include_topic_authorized_operations", Boolean),
        ("tags", TaggedFields),
    )


class TopicRequest(Request[MetadataRequestV10]):  # type: ignore[misc]
    """A request for one topic by name, which never creates the topic."""

    API_KEY = METADATA_API_KEY

    def __init__(self, topic: str) -> None:
        self._topic = topic

    def build(self, request_struct_class: type[MetadataRequestV10]) -> MetadataRequestV10:
        """The request in the wire format."""
        return request_struct_class([(uuid.UUID(int=0), self._topic, {})], False, False, False, {})
