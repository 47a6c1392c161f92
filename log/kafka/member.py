"""A member of a group under a name of its own (static membership, KIP-345), where aiokafka 0.14 leaves it undone.

Whoever joins under the name of a member takes its place, with its partitions, at once: a worker that was killed
is back without anybody waiting for its session to end. What aiokafka does, and what this module does about it:

* Its heartbeats do not carry the name. So a member whose place was taken is told that it is unknown, joins again
  and takes the place back, and so for ever, twice a second. Hence heartbeats of version 3: the broker answers them,
  and any other request of such a member, with FENCED_INSTANCE_ID, and that is its end.
* It never says good-bye for a member with a name, and others would wait for its session. Hence `leave_at_close`.
* The broker hands over what the predecessor had, whatever the new one subscribes to. Hence the topics in the name
  (`schemas.members`).
"""

from collections.abc import Callable
from typing import Any

from aiokafka import AIOKafkaConsumer
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.group import HeartbeatRequest, HeartbeatResponse_v1
from aiokafka.protocol.types import Int32, Schema, String

FENCED_INSTANCE_ID = 82


def watch(consumer: AIOKafkaConsumer, instance: str, replaced: Callable[[], None]) -> None:
    """Let a consumer that has not been started yet speak under its name, and tell when its place was taken.

    Args:
        consumer: with this `group_instance_id`.
        instance: its name.
        replaced: called when the broker says that another has it now.
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
    """Let a consumer that is about to be closed leave its group by its member id."""
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
