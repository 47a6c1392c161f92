"""What the client's reads send as query parameters is what the gateway's routes take."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from typing import Any

from placet import AsyncPlacet
from placet.channel import Channel
from placet.transport.port import CallKey, Patience, Reply, Request
from tests.clients.documents import document

# Of any other type than text is what only a write takes.
TEXTS = ("str", "str | None", "datetime | str | None", "int | None")


class Recorder:
    """A transport that keeps the requests, and lets none through."""

    class Stopped(Exception):
        """The request is kept."""

    def __init__(self) -> None:
        self.reads: list[Request] = []

    async def send(self, request: Request) -> Reply:
        if request.method == "GET":
            self.reads.append(request)
        raise self.Stopped

    async def decision(self, key: CallKey, wait_s: float) -> Reply:
        raise self.Stopped

    async def close(self) -> None:
        """Nothing is open."""


def methods_of_texts(client: AsyncPlacet) -> Iterator[Callable[..., Coroutine[Any, Any, Any]]]:
    """The methods of the client and of its parts that take nothing but texts."""
    for part in (client, *vars(client).values()):
        if not hasattr(part, "channel"):
            continue
        for name, method in inspect.getmembers(part, inspect.iscoroutinefunction):
            taken = inspect.signature(method).parameters.values()
            if not name.startswith("_") and all(one.annotation in TEXTS for one in taken):
                yield method


async def reads_of_all_methods() -> list[Request]:
    """What each of them asks when it is given all that it takes."""
    recorder = Recorder()
    client = AsyncPlacet("http://127.0.0.1:1", token="t", agent="bot")
    for part in (client, *vars(client).values()):
        if hasattr(part, "channel"):
            object.__setattr__(part, "channel", Channel(recorder, Patience()))
    for method in methods_of_texts(client):
        taken = inspect.signature(method).parameters.values()
        in_place = ["1" for one in taken if one.kind is one.POSITIONAL_OR_KEYWORD]
        by_name = {one.name: "1" for one in taken if one.kind is one.KEYWORD_ONLY}
        with suppress(Recorder.Stopped):
            await method(*in_place, **by_name)
    return recorder.reads


async def test_routes_take_the_parameters_that_the_client_sends() -> None:
    routes = {
        re.compile(re.sub(r"\{\w+\}", "[^/]+", path)): {
            one["name"] for one in operations["get"].get("parameters", ()) if one["in"] == "query"
        }
        for path, operations in document()["paths"].items()
        if "get" in operations
    }
    reads = await reads_of_all_methods()
    unknown = []
    for read in reads:
        taken = next(names for path, names in routes.items() if path.fullmatch(f"/v1{read.path}"))
        unknown += [f"{read.path}?{name}" for name in read.params if name not in taken]
    assert unknown == []
    assert {"/audit", "/audit/impact", "/executions", "/holds", "/standing-rules", "/tools"} <= {
        read.path for read in reads
    }
