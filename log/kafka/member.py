"""Static membership in a group (KIP-345), of which aiokafka 0.14 implements only a part.

A process that joins under the name of a member replaces it and gets its partitions at once: a worker that was killed
is back without waiting for its session to end. What aiokafka does, and what this module does about it:

* Its heartbeats do not carry the name. So a replaced member gets the answer that it is unknown, joins again and
  replaces the other, and so on for ever, twice a second. Hence heartbeats of version 3: the broker answers them,
  and any other request of a replaced member, with FENCED_INSTANCE_ID, which ends that member.
* It never leaves the group for a static member, and others would wait for its session to end. Hence
  `leave_at_close`.
* The broker hands over the predecessor's partitions, whatever topics the new member subscribes to. Hence the topics
  are a part of the name (`schemas.members`).
"""

from collections.abc import Callable
from typing import Any

from aiokafka import AIOKafkaConsumer
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.group import HeartbeatRequest, HeartbeatResponse_v1
from aiokafka.protocol.types import Int32, Schema, String

FENCED_INSTANCE_ID = 82


def watch(consumer: AIOKafkaConsumer, instance: str, replaced: Callable[[], None]) -> None:
    """Let a consumer that is not started yet send its name in heartbeats, and report when it is replaced.

    Args:
        consumer: the consumer with this `group_instance_id`.
        instance: its name.
        replaced: called when the broker answers that another process has the name now.
    """
    client = consumer._client
    send = client.send

    async def sent(node_id: Any, request: Any, **how: Any) -> Any:
        if isinstance(request, HeartbeatRequest):
            request = _NamedHeartbeat(request._group, request._generation_id, request._member_id, instance)
        response = await send(node_id, request, **how)
        if getattr(response, "error_code", 0) == FENCED_INSTANCE_ID:
            replaced()
        return response

    client.send = sent


def leave_at_close(consumer: AIOKafkaConsumer) -> None:
    """Make a consumer leave its group, by its member id, when it is closed."""
    if consumer._coordinator is not None:
        consumer._coordinator._group_instance_id = None


class _HeartbeatResponse3(Response):  # type: ignore[misc]
    API_KEY = 12
    API_VERSION = 3
    SCHEMA = HeartbeatResponse_v1.SCHEMA


class _HeartbeatRequest3(RequestStruct):  # type: ignore[misc]
    API_KEY = 12
    API_VERSION = 3
    RESPONSE_TYPE = _HeartbeatResponse3
    SCHEMA = Schema(
        ("group", String("utf-8")),
        ("generation_id", Int32),
        ("member_id", String("utf-8")),
        ("group_instance_id", String("utf-8")),
    )


class _NamedHeartbeat(Request[_HeartbeatRequest3]):  # type: ignore[misc]
    API_KEY = 12

    def __init__(self, *fields: str | int) -> None:
        self._fields = fields

    def build(self, request_struct_class: type[_HeartbeatRequest3]) -> _HeartbeatRequest3:
        return request_struct_class(*self._fields)
