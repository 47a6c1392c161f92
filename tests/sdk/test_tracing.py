"""The spans of an agent: none and no import unless asked for, and the context in each request otherwise."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import version

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode
from starlette.responses import JSONResponse

from placet import Placet, asks, otlp, tracing
from placet.channel import Channel
from placet.errors import (
    Denied,
    HITLPending,
    PlacetError,
    Refused,
    StillHeld,
    Unanswered,
    Unavailable,
    Unreachable,
)
from placet.models import HumanRequest, ToolCall
from placet.parsing import UnexpectedAnswer
from placet.transport.rest import RestTransport
from tests.sdk.desk import Desk
from tests.sdk.runs import running
from tests.sdk.scripted import QUICK, Asked, Scripted, serving
from tests.sdk.threaded import serving_thread
from tests.servers.otlp import collecting

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def exported(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """A client whose program has set a provider of its own."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(tracing, "_tracer", provider.get_tracer("test"))
    yield exporter
    provider.shutdown()


def run(program: str, *args: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """A program in a process of its own, with only these variables of OpenTelemetry."""
    path = {"PYTHONPATH": ":".join(sys.path)}
    return subprocess.run(
        [sys.executable, "-c", program, *args],
        capture_output=True,
        text=True,
        check=True,
        env={**path, **environ},
    )


ONE_SPAN = """
import logging, sys
{before}
logging.basicConfig(format="%(levelname)s %(message)s")
from placet import tracing
for _ in range(2):
    with tracing.span("placet.propose", {{}}) as trace:
        pass
print(bool(trace), [name for name in sys.modules if name.startswith("opentelemetry.sdk")] == [])
"""


def test_client_that_is_not_asked_imports_nothing_of_it() -> None:
    done = run(ONE_SPAN.format(before=""))
    assert (done.stdout.strip(), done.stderr) == ("False True", "")


def test_client_that_is_asked_without_the_packages_warns_once() -> None:
    absent = "sys.modules['opentelemetry.exporter'] = None"
    done = run(ONE_SPAN.format(before=absent), OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:1")
    assert done.stdout.split()[0] == "False"
    (line,) = done.stderr.splitlines()
    assert line.startswith("WARNING nothing is traced")
    assert "pip install placet[otel]" in line


def test_client_that_is_asked_for_another_protocol_warns_once() -> None:
    environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}
    done = run(ONE_SPAN.format(before=""), **environ)
    assert done.stderr.splitlines() == [
        "WARNING nothing is traced: grpc is not supported, only http/protobuf"
    ]


OWN_PROVIDER = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
trace.set_tracer_provider(TracerProvider())
"""


def test_program_with_a_provider_of_its_own_is_traced_by_it_whatever_protocol_it_asks_for() -> None:
    environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}
    done = run(ONE_SPAN.format(before=OWN_PROVIDER), **environ)
    assert (done.stdout.strip(), done.stderr) == ("True False", "")


ENDS = """
import sys, time, atexit
from placet import tracing
# Called last, since it was registered first.
atexit.register(lambda: print(time.monotonic() - ended))
with tracing.span("placet.propose", {}):
    pass
time.sleep(float(sys.argv[1]))
ended = time.monotonic()
"""


@pytest.mark.parametrize("before_s", ["0", "1.5"])
def test_collector_that_does_not_answer_holds_an_end_back_for_two_seconds_at_most(before_s: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        environ = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{silent.getsockname()[1]}",
            "OTEL_BSP_SCHEDULE_DELAY": "100",
        }
        done = run(ENDS, before_s, **environ)
    assert otlp.END_S - 0.2 <= float(done.stdout) < otlp.END_S + 1.5


def test_collector_that_refuses_holds_an_end_back_for_two_seconds_at_most() -> None:
    done = run(ENDS, "0", OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:1")
    assert float(done.stdout) < otlp.END_S + 1.5


SPANS = """
import os, sys
from placet import tracing
with tracing.span("placet.propose", {}):
    pass
if sys.argv[1] == "forks":
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        os._exit(0)
    with tracing.span("placet.ask", {}):
        pass
"""


@pytest.mark.parametrize(("how", "name"), [("", "placet.propose"), ("forks", "placet.ask")])
def test_program_that_ends_sends_what_is_left(how: str, name: str) -> None:
    with collecting() as collector:
        # Sent at the end alone: the parent, which ends without sending, can wait longer for its child than the batch.
        run(SPANS, how, **{**collector.environ, "OTEL_BSP_SCHEDULE_DELAY": "600000"})
    assert [span.name for span in collector.spans] == [name]
    (scope,) = ExportTraceServiceRequest.FromString(collector.raw[0]).resource_spans[0].scope_spans
    assert (scope.scope.name, scope.scope.version) == ("placet", version("placet"))


@pytest.mark.parametrize(
    ("environ", "named"),
    [
        ({}, ("placet-agent", version("placet"))),
        ({"OTEL_SERVICE_NAME": "billing"}, ("billing", None)),
        ({"OTEL_RESOURCE_ATTRIBUTES": "service.name=books,service.version=7"}, ("books", "7")),
        (
            {"OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test"},
            ("placet-agent", version("placet")),
        ),
    ],
)
def test_spans_name_the_program_as_the_variables_do(
    environ: dict[str, str], named: tuple[str, str | None]
) -> None:
    with collecting() as collector:
        run(SPANS, "", **collector.environ, **environ)
    (span,) = collector.spans
    assert (span.service, collector.versions.get(span.service)) == named


@pytest.mark.parametrize(
    ("environ", "asked"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://x"}, True),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_TRACES_EXPORTER": "none"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_SDK_DISABLED": "TRUE"}, False),
    ],
)
def test_standard_variables_ask_for_spans(environ: dict[str, str], asked: bool) -> None:
    assert tracing.is_asked_for(environ) is asked


async def test_request_carries_the_context_of_the_current_span(exported: InMemorySpanExporter) -> None:
    async def answer(asked: Asked) -> JSONResponse:
        return JSONResponse({"id": "x"})

    script = Scripted(on_http=answer)
    async with serving(script):
        transport = RestTransport(script.url, lambda: "secret", QUICK)
        channel = Channel(transport, QUICK)
        await channel.ask(asks.put_tool("pay", {}))
        with tracing.span("placet.run", {}, TRACE) as trace:
            await channel.ask(asks.put_tool("pay", {}))
        with tracing.continuing(TRACE):
            await channel.ask(asks.put_tool("pay", {}))
        await transport.close()
    assert [asked.headers.get("traceparent") for asked in script.asked] == [None, trace, TRACE]
    assert trace[3:35] == TRACE[3:35]
    (span,) = exported.get_finished_spans()
    assert span.parent is not None
    assert f"{span.parent.span_id:016x}" == TRACE[36:52]


def test_message_carries_the_context_beside_its_body() -> None:
    request = asks.start_execution("run-1", "bot", None, None, None, None)
    assert "traceparent" not in json.loads(request.frame_text())
    message = json.loads(replace(request, trace=TRACE).frame_text())
    assert message["traceparent"] == TRACE
    assert "traceparent" not in message["body"]


def test_refusal_is_told_by_its_code_and_never_by_its_text(exported: InMemorySpanExporter) -> None:
    with pytest.raises(Refused), tracing.span("placet.propose", {"placet.tool": "send_money"}):
        raise Refused("quota", 429, "GB29 is too much")
    (span,) = exported.get_finished_spans()
    assert span.attributes == {"placet.tool": "send_money", "placet.refusal_code": "quota"}
    assert (span.events, span.status.status_code, span.status.description) == ((), StatusCode.UNSET, None)


CALL = ToolCall("run", "call", "held", tool="send_money")
QUESTION = HumanRequest("question", status="open")


@pytest.mark.parametrize(
    ("error", "is_request", "has_failed"),
    [
        (Refused("already_decided", 409, "late"), True, False),
        (StillHeld(CALL, 0.0), True, False),
        (Denied(CALL), True, False),
        (HITLPending(QUESTION), True, False),
        (Unanswered(QUESTION), True, False),
        (Unavailable("unavailable", 503, "views"), True, True),
        (Unreachable("no answer"), True, True),
        (UnexpectedAnswer("no object"), True, True),
        (Denied(CALL), False, True),
        (Refused("quota", 429, "late"), False, True),
    ],
    ids=lambda one: type(one).__name__ if isinstance(one, Exception) else str(one),
)
def test_request_that_was_answered_has_not_failed(
    exported: InMemorySpanExporter, error: PlacetError, is_request: bool, has_failed: bool
) -> None:
    with pytest.raises(type(error)), tracing.span("placet.ask", {}, is_request=is_request):
        raise error
    (span,) = exported.get_finished_spans()
    assert span.status.status_code is (StatusCode.ERROR if has_failed else StatusCode.UNSET)
    told = (span.attributes or {}).get("error.type")
    assert told == (type(error).__name__ if has_failed else None)


async def test_gated_coroutine_runs_in_the_trace_of_its_proposal(exported: InMemorySpanExporter) -> None:
    desk = Desk()
    script = desk.scripted()
    within: list[str] = []
    async with running(desk, script) as run:

        @run.gated
        async def send_money(recipient: str) -> str:
            within.append(tracing.current())
            return "paid"

        assert await send_money("GB29") == "paid"
    check_spans(exported, script, within)


def test_gated_function_runs_in_the_trace_of_its_proposal(exported: InMemorySpanExporter) -> None:
    within: list[str] = []
    desk = Desk()
    script = desk.scripted()
    with (
        serving_thread(script) as served,
        Placet(served.url, token="t", agent="billing-bot", patience=QUICK) as client,
        client.execution(id="run") as run,
    ):

        @run.gated
        def send_money(recipient: str) -> str:
            within.append(tracing.current())
            return "paid"

        assert send_money("GB29") == "paid"
    check_spans(exported, script, within)


async def test_gated_function_that_fails_fails_its_span_without_a_text(
    exported: InMemorySpanExporter,
) -> None:
    async with running(Desk()) as run:

        @run.gated
        async def send_money(recipient: str) -> None:
            raise StopAsyncIteration("GB29 is closed")

        with pytest.raises((StopAsyncIteration, RuntimeError)):
            await send_money("GB29")
    (span,) = [one for one in exported.get_finished_spans() if one.name == "placet.run"]
    assert (span.attributes or {})["error.type"] in ("StopAsyncIteration", "RuntimeError")
    assert "GB29" not in span.to_json()


def check_spans(exported: InMemorySpanExporter, script: Scripted, within: list[str]) -> None:
    """The run is a child of the proposal, and each message carries the context in which it was sent."""
    spans = {span.name: span for span in exported.get_finished_spans()}
    proposed, ran = spans["placet.propose"], spans["placet.run"]
    assert proposed.context is not None
    assert ran.context is not None
    assert ran.parent is not None
    assert ran.parent.span_id == proposed.context.span_id
    (current,) = within
    assert current[36:52] == f"{ran.context.span_id:016x}"
    (proposal,), (result,) = script.frames("propose"), script.frames("result")
    assert proposal["traceparent"][36:52] == f"{proposed.context.span_id:016x}"
    assert result["traceparent"] == current
    assert all("traceparent" not in frame for frame in script.frames("start_execution"))
