"""Server reflection as gRPC's tools ask for it: both versions, and every symbol that they list."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from grpc_reflection.v1alpha import reflection_pb2

from gateway.rpc.serving import SERVICES, serving
from gateway.rpc.settings import RpcSettings
from tests.house.sources import ROOT

VERSIONS = ("grpc.reflection.v1", "grpc.reflection.v1alpha")
GET = "placet.human_input.v1.HumanInput.GetHumanInput"
Response = reflection_pb2.ServerReflectionResponse


@pytest.fixture
async def channel() -> AsyncIterator[Any]:
    async with (
        serving(RpcSettings("http://127.0.0.1:9", "127.0.0.1", 0)) as address,
        grpc.aio.insecure_channel(address) as found,
    ):
        yield found


async def asked(channel: Any, version: str, **request: Any) -> Response:
    """The answer to one question to the reflection of a version."""
    call = channel.stream_stream(
        f"/{version}.ServerReflection/ServerReflectionInfo",
        reflection_pb2.ServerReflectionRequest.SerializeToString,
        Response.FromString,
    )
    async for answer in call(iter([reflection_pb2.ServerReflectionRequest(**request)])):
        assert isinstance(answer, Response)
        return answer
    raise AssertionError("no answer")


def files_in(answer: Response) -> list[FileDescriptorProto]:
    return [
        FileDescriptorProto.FromString(file) for file in answer.file_descriptor_response.file_descriptor_proto
    ]


@pytest.mark.parametrize("version", VERSIONS)
async def test_every_listed_service_is_described(channel: Any, version: str) -> None:
    listed = (await asked(channel, version, list_services="")).list_services_response.service
    names = {service.name for service in listed}
    assert names >= {*SERVICES, *(f"{one}.ServerReflection" for one in VERSIONS)}

    for name in names:
        files = files_in(await asked(channel, version, file_containing_symbol=name))
        services = {f"{file.package}.{one.name}" for file in files for one in file.service}
        assert name in services


@pytest.mark.parametrize("version", VERSIONS)
async def test_method_is_found_by_its_name(channel: Any, version: str) -> None:
    files = files_in(await asked(channel, version, file_containing_symbol=GET))
    assert "schemas/human_input/v1/human_input.proto" in {file.name for file in files}


async def test_reflection_of_the_stable_version_is_not_deprecated(channel: Any) -> None:
    service = f"{VERSIONS[0]}.ServerReflection"
    (file,) = files_in(await asked(channel, VERSIONS[0], file_containing_symbol=service))
    assert not file.options.deprecated
    assert files_in(await asked(channel, VERSIONS[0], file_by_filename=file.name)) == [file]


@pytest.mark.parametrize("symbol", [f"{GET}s", "placet.human_input.v1.Nothing", "", "."])
async def test_symbol_that_there_is_not_is_not_found(channel: Any, symbol: str) -> None:
    answer = await asked(channel, VERSIONS[0], file_containing_symbol=symbol)
    assert answer.error_response.error_code == grpc.StatusCode.NOT_FOUND.value[0]


def test_generators_of_go_and_java_know_where_their_code_belongs() -> None:
    """protoc-gen-go makes nothing of a file that does not say so."""
    from schemas.human_input.v1 import human_input_pb2 as pb

    options = pb.DESCRIPTOR.GetOptions()
    assert options.go_package.endswith(";humaninputv1")
    assert (options.java_package, options.java_multiple_files) == ("placet.human_input.v1", True)


@pytest.mark.parametrize("name", ["task_id", "taskId"])
def test_example_for_the_shell_reads_the_task_id_by_either_name(name: str) -> None:
    """By reflection grpcurl prints the names of the .proto, with `-proto` those of JSON."""
    script = (ROOT / "examples" / "hitl" / "grpc.sh").read_text("utf-8")
    (read,) = [line for line in script.splitlines() if line.startswith("task=")]
    asked = f'{{\n  "status": "waiting_for_human",\n  "{name}": "t-1"\n}}'

    said = subprocess.run(
        ["bash", "-c", f'{read}\necho "$task"'],
        env={**os.environ, "asked": asked},
        capture_output=True,
        text=True,
    )

    assert said.stdout == "t-1\n"
