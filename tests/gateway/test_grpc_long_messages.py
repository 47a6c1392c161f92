"""Case 30 over gRPC: messages that take long to read leave others theirs, whether or not they are right."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from gateway.rpc import long_messages, servicers
from gateway.settings import Limits
from schemas.human_input.v1 import human_input_pb2 as pb
from tests.gateway.rpc_gateway import Code, client_of, ended, rpc_site

RUN = pb.RunRequest(prompt="?")
TOOL = "human_input"


def run_tool(**arguments: Any) -> pb.RunToolRequest:
    request = pb.RunToolRequest(name=TOOL)
    request.arguments.update(arguments)
    return request


def run_tool_of_lists() -> pb.RunToolRequest:
    """The arguments of 400 KB that take longest: many empty lists."""
    return run_tool(prompt="?", lists=[[] for _ in range(100_000)])


async def test_case_30_long_messages_are_read_on_a_thread_and_short_ones_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_in: dict[int, bool] = {}
    read = servicers._json

    def noted(message: Any, name: str) -> Any:
        read_in[message.ByteSize()] = threading.current_thread() is threading.main_thread()
        return read(message, name)

    monkeypatch.setattr(servicers, "_json", noted)
    async with rpc_site(tmp_path) as site, client_of(site) as client:
        for request in (run_tool(prompt="?"), run_tool_of_lists()):
            answer = await client.tasks.RunTool(request, metadata=site.by("bot"))
            assert answer.result.struct_value["task_id"] == "t"
    assert list(read_in.values()) == [True, False]


async def test_case_30_caller_far_beyond_its_share_is_refused_and_another_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each message of the one takes all that a caller may take for long.
    monkeypatch.setattr(
        "gateway.rpc.serving.Limits", lambda: Limits(subject_share=1e-6, subject_burst_s=1e-6)
    )
    async with rpc_site(tmp_path) as site, client_of(site) as client:
        long = run_tool_of_lists()
        await client.tasks.RunTool(long, metadata=site.by("greedy"))
        code, _, own = await ended(client.tasks.RunTool(long, metadata=site.by("greedy")))
        assert (code, own) == (Code.RESOURCE_EXHAUSTED, "quota")
        assert (await client.tool.Run(RUN, metadata=site.by("greedy"))).task_id == "t"
        assert (await client.tasks.RunTool(long, metadata=site.by("bot"))).result.struct_value[
            "task_id"
        ] == "t"


async def test_unknown_field_deep_in_a_long_message_is_named(tmp_path: Path) -> None:
    request = run_tool_of_lists()
    last = request.arguments.fields["lists"].list_value.values.add()
    # Field 15, of the wire type for a number.
    last.MergeFromString(bytes((15 << 3, 1)))
    async with rpc_site(tmp_path) as site, client_of(site) as client:
        code, detail, _ = await ended(client.tasks.RunTool(request, metadata=site.by("bot")))
    assert (code, detail) == (
        Code.INVALID_ARGUMENT,
        "invalid: field 15 of Value is unknown to this version",
    )


def test_message_without_unknown_fields_is_not_walked_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_messages, "_unknown_fields", None)
    long_messages.check_known(run_tool_of_lists())
