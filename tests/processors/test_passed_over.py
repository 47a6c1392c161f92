"""What the processors do not decode changes nothing for them, and what they follow they decode."""

from __future__ import annotations

import copy
from unittest.mock import MagicMock

import pytest

from schemas import codec
from schemas.events import EVENTS
from schemas.events.calls import ToolCallProposed
from schemas.message import Message
from schemas.record import Event, EventMeta
from services.processors import attribution, fold
from services.processors.notifications import facts
from services.processors.notifications import fold as notices
from services.processors.notifications.notice import Source
from tests.schemas.samples import full

META = EventMeta("e", 1_800_000_000_000, 0, 1, "c", "d" * 32, "acme")
KEY = b"acme/main/x"
SOURCE = Source(0, 1, 1, KEY, "")


def event_of(body: Message) -> Event:
    return Event(body, META, KEY, 0, 1)


@pytest.mark.parametrize("model", sorted(fold._UNUSED, key=str))
def test_trust_passes_over_only_what_is_no_evidence(model: type[Message]) -> None:
    body = full(model)
    calls = attribution.OpenCalls()
    opened = full(ToolCallProposed).model_copy(update={"call_id": getattr(body, "call_id", "c")})
    calls.follow(event_of(opened))
    before = copy.deepcopy(calls._calls)

    assert calls.follow(event_of(body)) is None
    assert calls._calls == before


@pytest.mark.parametrize("model", sorted(notices._PASSED_OVER, key=str))
def test_notifier_passes_over_only_what_tells_nothing(model: type[Message]) -> None:
    context = MagicMock()

    assert facts.Facts(context).follow(event_of(full(model)), SOURCE) is None
    assert context.mock_calls == []


def test_claims_are_never_passed_over() -> None:
    names = {model.__name__ for model in fold._UNUSED | notices._PASSED_OVER}
    assert "WriterClaimed" not in names
    assert {"HoldOpened", "GrantConsumed", "ToolCallReleased"} <= {m.__name__ for m in fold._UNUSED}


@pytest.mark.parametrize("model", EVENTS, ids=lambda model: model.__name__)
def test_type_is_told_by_the_frame_alone(model: type[Message]) -> None:
    frame = codec.encode(full(model))[:5]
    assert codec.type_of(frame + b"\xff") is model


@pytest.mark.parametrize("value", [b"", b"\x00\x00", b"\x01\x00\x00\x00\x01", b"\x00\xff\xff\xff\xff", b"{}"])
def test_foreign_bytes_have_no_type(value: bytes) -> None:
    assert codec.type_of(value) is None
