"""A policy's document as it comes: a long one is parsed in its sender's turn, and what is wrong is said later."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from gateway.problems import Problem
from gateway.rest.policies import _document
from gateway.strictjson import LONG_BYTES
from schemas.refusals import Refusal

SHORT = {"policy": "p"}
LONG = {"policy": "p", "note": "x" * LONG_BYTES}


async def asked(raw: bytes, content_type: str = "application/json") -> tuple[Callable[[], Any], int]:
    """What is to be asked for the document, and how often its sender had a turn for it."""
    turns = 0

    async def done(work: Callable[[], Any]) -> Any:
        nonlocal turns
        turns += 1
        return work()

    async def stream() -> AsyncIterator[bytes]:
        yield raw

    door: Any = SimpleNamespace(done=done)
    request: Any = SimpleNamespace(headers={"content-type": content_type}, stream=stream)
    return await _document(door, request), turns


@pytest.mark.parametrize(("document", "turns"), [(SHORT, 0), (LONG, 1)], ids=["short", "long"])
async def test_document_that_is_long_takes_a_turn_of_its_sender(document: Any, turns: int) -> None:
    read, taken = await asked(json.dumps(document).encode())

    assert (read(), taken) == (document, turns)


@pytest.mark.parametrize("size", [0, LONG_BYTES])
async def test_document_that_is_no_json_is_refused_when_it_is_asked_for(size: int) -> None:
    read, _ = await asked(b"{" + b" " * size)

    with pytest.raises(Problem) as refused:
        read()
    assert refused.value.code == Refusal.MALFORMED


async def test_document_of_text_is_handed_on_as_it_is() -> None:
    text = "# ☃\n" + "x" * LONG_BYTES

    assert (await asked(text.encode(), "application/yaml"))[0]() == text
