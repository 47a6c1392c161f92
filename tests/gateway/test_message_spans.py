"""The spans of WebSocket messages: marked as failed by a fault of the gateway alone, with ids and nothing else."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from gateway.problems import Problem
from gateway.settings import Limits
from gateway.sockets.session import Session
from gateway.sockets.tracing import message_span
from schemas.actor import Actor
from schemas.refusals import Refusal
from tests.gateway.exporting import exporting
from tests.gateway.facts import new_outgoing, new_work
from tests.schemas.test_trace_context import TRACE
from vitals import tracing
from vitals.json_logs import JsonFormatter
from vitals.spans import ids_in_hand

BOT = Actor(subject="bot", tenant="acme", project="books", roles=("agent",), agent="billing")
TOKEN = "eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJib3QifQ.c2lnbmF0dXJl"
MESSAGE = {"type": "propose", "ref": "1", "execution_id": "run-1", "call_id": "c-1"}


@pytest.fixture
def exported() -> Iterator[InMemorySpanExporter]:
    with exporting() as found:
        yield found


def session(asked: Callable[..., Any]) -> Session:
    """A socket whose gateway carries out each proposal by `asked`."""
    hub: Any = SimpleNamespace(forget=lambda _: None)
    metrics: Any = SimpleNamespace(messages=SimpleNamespace(inc=lambda: None))
    gate: Any = SimpleNamespace(work=new_work(), live=None, asker=SimpleNamespace(ask=asked))
    claims: Any = SimpleNamespace(actor=BOT)

    def verb(*_: Any) -> Any:
        return lambda: SimpleNamespace(ask=None, timeout_s=1.0)

    return Session(gate, hub, claims, Limits(), metrics, new_outgoing(Limits()), {"propose": verb})


@pytest.fixture(autouse=True)
def _planned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.sockets.session.Plan", SimpleNamespace)
    monkeypatch.setattr("gateway.sockets.session.begun", lambda _, make: make())


def the_span(exported: InMemorySpanExporter) -> ReadableSpan:
    (span,) = exported.get_finished_spans()
    return span


def refusing(code: Refusal) -> Callable[..., Any]:
    def asked(*_: Any) -> None:
        raise Problem(code, "no")

    return asked


def answering(code: Refusal) -> Callable[..., Any]:
    return lambda _, answered, __: answered(Problem(code, "no"))


@pytest.mark.parametrize("refused", [refusing, answering])
@pytest.mark.parametrize(
    ("code", "failure"), [(Refusal.UNAVAILABLE, "503"), (Refusal.QUOTA, None), (Refusal.NOT_RELEASED, None)]
)
def test_message_has_failed_only_by_a_fault_of_the_gateway(
    exported: InMemorySpanExporter, refused: Callable[..., Any], code: Refusal, failure: str | None
) -> None:
    one = session(answering(code))
    if refused is refusing:
        one.own = {"propose": lambda *_: refusing(code)}
    one.handle(lambda: MESSAGE)

    span = the_span(exported)
    assert span.name == "ws propose"
    assert (span.attributes or {})["placet.refusal_code"] == code
    assert (span.attributes or {}).get("error.type") == failure
    assert (span.status.status_code is StatusCode.ERROR) is (failure is not None)


def test_message_that_fails_unexpectedly_has_a_span_that_has_failed_and_ended(
    exported: InMemorySpanExporter,
) -> None:
    """Its answer was awaited already, and nobody will give one."""

    def asked(*_: Any) -> None:
        raise KeyError("GB29")

    with pytest.raises(KeyError):
        session(asked).handle(lambda: MESSAGE)

    span = the_span(exported)
    assert (span.attributes or {})["error.type"] == "KeyError"
    assert span.status.status_code is StatusCode.ERROR
    assert span.events == ()


def test_answer_that_comes_after_the_failure_ends_the_span_no_second_time(
    exported: InMemorySpanExporter, caplog: pytest.LogCaptureFixture
) -> None:
    late: list[Callable[[Any], Any]] = []

    def failing() -> None:
        assert tracing.spans is not None
        with tracing.spans.work("ws propose", SpanKind.SERVER):
            late.append(tracing.carried(lambda _: None))
            raise KeyError("GB29")

    with pytest.raises(KeyError):
        failing()
    late[0](None)
    assert the_span(exported).name == "ws propose"
    assert caplog.messages == []


def test_answer_that_fails_marks_the_span_of_its_message(exported: InMemorySpanExporter) -> None:
    def failing(_: object) -> None:
        raise KeyError("GB29")

    assert tracing.spans is not None
    with tracing.spans.work("ws propose", SpanKind.SERVER):
        answered = tracing.carried(failing)
    with pytest.raises(KeyError):
        answered(None)
    span = the_span(exported)
    assert ((span.attributes or {})["error.type"], span.status.status_code) == ("KeyError", StatusCode.ERROR)


def test_log_line_of_a_late_answer_has_the_ids_of_its_message_and_no_others(
    exported: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[Callable[[Any], Any]] = []

    def asked(_: Any, answered: Callable[[Any], Any], __: Any) -> None:
        answers.append(answered)

    one = session(asked)
    one.handle(lambda: {**MESSAGE, "traceparent": TRACE})
    # The answer cannot be written: what the session says of that is the line.
    monkeypatch.setattr(Session, "_conclude", None)
    stream = io.StringIO()
    handler, logger = logging.StreamHandler(stream), logging.getLogger("gateway.sockets.session")
    handler.setFormatter(JsonFormatter())
    logger.addHandler(handler)
    try:
        assert tracing.spans is not None
        with tracing.spans.continuing("", {"placet.tenant": "other", "placet.hold_id": "h-9"}):
            answers[0](None)
            after = dict(ids_in_hand())
    finally:
        logger.removeHandler(handler)

    line = json.loads(stream.getvalue().splitlines()[0])
    assert line["event"] == "an answer could not be written"
    ids = ("tenant", "project", "execution_id", "call_id", "hold_id")
    assert {name: line[name] for name in ids if name in line} == {
        "tenant": "acme",
        "project": "books",
        "execution_id": "run-1",
        "call_id": "c-1",
    }
    assert line["trace_id"] == TRACE[3:35]
    assert after == {"tenant": "other", "hold_id": "h-9"}
    assert the_span(exported).status.status_code is StatusCode.ERROR


def test_token_in_an_ids_place_is_not_told(exported: InMemorySpanExporter) -> None:
    assert tracing.spans is not None
    frame = {"type": "propose", "execution_id": TOKEN, "call_id": "not an id", "hold_id": "h-1"}
    with message_span(tracing.spans, frame, BOT, ()):
        ids = dict(ids_in_hand())
    assert the_span(exported).attributes == {
        "placet.tenant": "acme",
        "placet.project": "books",
        "placet.execution_id": "[token]",
        "placet.hold_id": "h-1",
    }
    assert ids["execution_id"] == "[token]"
