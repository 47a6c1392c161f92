"""Server reflection: by `grpc.reflection.v1`, which clients ask first, and by `v1alpha`, which older ones know.

grpcio-reflection serves `v1alpha` alone. The messages of both are the same on the wire, so its servicer serves both;
and it finds no method by its name, as the protocol wants it to, so it is given a pool that does.
"""

from __future__ import annotations

from typing import Any

import grpc
from google.protobuf import descriptor_pool
from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.json_format import MessageToJson, Parse
from grpc_reflection.v1alpha import reflection, reflection_pb2

ALPHA_VERSION, STABLE_VERSION = "v1alpha", "v1"
STABLE_SERVICE = f"grpc.reflection.{STABLE_VERSION}.ServerReflection"


def add_reflection(services: tuple[str, ...], server: grpc.aio.Server) -> None:
    """Serve the reflection of services, by their full names, and of itself."""
    names = (*services, STABLE_SERVICE, reflection.SERVICE_NAME)
    pool: Any = _Pool()
    reflection.enable_server_reflection(names, server, pool)
    servicer = reflection.aio.ReflectionServicer(names, pool=pool)
    info = grpc.stream_stream_rpc_method_handler(
        servicer.ServerReflectionInfo,
        reflection_pb2.ServerReflectionRequest.FromString,
        reflection_pb2.ServerReflectionResponse.SerializeToString,
    )
    handler = grpc.method_handlers_generic_handler(STABLE_SERVICE, {"ServerReflectionInfo": info})
    server.add_generic_rpc_handlers((handler,))


class _Pool:
    """What grpcio-reflection asks of a descriptor pool: that of this process, and the file of `v1`."""

    def __init__(self) -> None:
        self._pools = (descriptor_pool.Default(), _pool_of_stable())

    def FindFileByName(self, name: str) -> FileDescriptor:
        """The file with a name; KeyError if there is none."""
        found: FileDescriptor = self._first("FindFileByName", name)
        return found

    def FindFileContainingSymbol(self, name: str) -> FileDescriptor:
        """The file with a message, an enumeration, a service or one of its methods; KeyError if there is none."""
        found: FileDescriptor
        try:
            found = self._first("FindFileContainingSymbol", name)
        except KeyError:
            found = self._first("FindMethodByName", name).containing_service.file
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pools[0], name)

    def _first(self, find: str, name: str) -> Any:
        for pool in self._pools[:-1]:
            try:
                return getattr(pool, find)(name)
            except KeyError:
                continue
        return getattr(self._pools[-1], find)(name)


def _pool_of_stable() -> descriptor_pool.DescriptorPool:
    """A pool with the file of `v1`, which differs from that of `v1alpha` by its names alone."""
    alpha = FileDescriptorProto()
    reflection_pb2.DESCRIPTOR.CopyToProto(alpha)
    stable = Parse(MessageToJson(alpha).replace(ALPHA_VERSION, STABLE_VERSION), FileDescriptorProto())
    stable.options.ClearField("deprecated")
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(stable.SerializeToString())
    return pool
