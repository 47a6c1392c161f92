"""The Metadata request that aiokafka lacks, byte by byte."""

from __future__ import annotations

import uuid

from log.kafka.metadata import MetadataResponseV10, TopicRequest

TOPIC_ID = uuid.UUID("01020304-0506-0708-090a-0b0c0d0e0f10")


def test_request_encoded_as_the_protocol_guide_says() -> None:
    request = TopicRequest("t").prepare({3: (0, 13)})
    topics = b"\x02" + bytes(16) + b"\x02t" + b"\x00"
    assert (request.API_KEY, request.API_VERSION) == (3, 10)
    assert request.encode() == topics + b"\x00\x00\x00" + b"\x00"


def test_response_decoded_as_the_protocol_guide_says() -> None:
    broker = (7).to_bytes(4) + b"\x05host" + (9092).to_bytes(4) + b"\x00" + b"\x00"
    partition = (
        b"\x00\x00" + (1).to_bytes(4) + (7).to_bytes(4) + (3).to_bytes(4)
        + b"\x02" + (7).to_bytes(4) + b"\x02" + (7).to_bytes(4) + b"\x01" + b"\x00"
    )  # fmt: skip
    topic = b"\x00\x03" + b"\x02t" + TOPIC_ID.bytes + b"\x00" + b"\x02" + partition + bytes(4) + b"\x00"
    cluster = b"\x03id" + (7).to_bytes(4)
    data = bytes(4) + b"\x02" + broker + cluster + b"\x02" + topic + bytes(4) + b"\x00"
    response = MetadataResponseV10.decode(data)
    assert response.brokers == [(7, "host", 9092, None, {})]
    assert response.topics == [
        (3, "t", TOPIC_ID, False, [(0, 1, 7, 3, [7], [7], [], {})], 0, {}),
    ]
