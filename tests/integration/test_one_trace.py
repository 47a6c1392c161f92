"""One trace from an agent's proposal to its effect, as a collector gets it from all processes of a stack."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import grpc
import pytest
import websockets
from opentelemetry.sdk.trace import TracerProvider

from ops.role import ALWAYS
from placet import AsyncPlacet, AsyncTurn
from placet import tracing as client_tracing
from schemas.human_input.v1 import human_input_pb2 as pb
from schemas.human_input.v1 import human_input_pb2_grpc as rpc
from schemas.trace_context import TRACEPARENT
from tests.integration.doors import Tenant, asked, fresh, new_tenant, received, socket
from tests.integration.site import PAY, READ, Site
from tests.integration.test_notifications import write
from tests.processors.notifications.receiver import Receiver, receiving
from tests.servers.otlp import Collector, Told, collecting
from tests.servers.stack import running_stack, wait_for

pytestmark = [pytest.mark.stack, pytest.mark.broker]
SECRET_PAYEE = "GB29-must-not-be-told"
# The span of a question that was asked by gRPC.
BY_GRPC = "placet.human_input.v1.HumanInputTool/Run"
POLICY = """
policy: own
rules:
  - {id: payments, match: {tools: [send_money]}, then: hold}
  - {id: files, match: {tools: [read_file]}, then: hold, hold: {timeout_seconds: 1}}
"""
# The processes that take part in one held call.
SERVICES = {
    "placet-agent",
    "placet-gateway",
    "placet-decider",
    "placet-projector",
    "placet-notifier",
    "placet-trust",
}


@dataclass(frozen=True)
class Traced:
    """A stack that exports to a collector, and whoever its notifier tells."""

    site: Site
    collector: Collector
    listens: Receiver


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Traced]:
    directory = tmp_path_factory.mktemp("traced")
    with pytest.MonkeyPatch.context() as patch, collecting() as collector, receiving() as listens:
        for name, value in {**collector.environ, "PLACET_LOG_FORMAT": "json"}.items():
            patch.setenv(name, value)
        file = write(directory, listens.url)
        arguments = ("--partitions", "2", "--notifications", str(file), "--grpc-port", "0")
        with running_stack(directory / "data", *arguments) as stack:
            yield Traced(Site(stack, stack.status()["url"], "", ""), collector, listens)


@pytest.fixture(scope="module")
def tenant(traced: Traced) -> Iterator[Tenant]:
    with new_tenant(traced.site) as found:
        found.publish(POLICY, PAY, READ)
        yield found


@pytest.fixture(scope="module")
def paid(traced: Traced, tenant: Tenant, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The execution of an agent, a process of its own, whose payment was held, approved and made."""
    execution_id = fresh("run")
    effects = tmp_path_factory.mktemp("agent") / "effects"
    command = [
        sys.executable,
        "-m",
        "tests.integration.traced_agent",
        traced.site.url,
        execution_id,
        str(effects),
    ]
    environ = {**os.environ, "AGENT_TOKEN": tenant.token("bot", "agent", agent="bot"), "PAYEE": SECRET_PAYEE}
    agent = subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True)
    try:
        held = wait_for(
            lambda: tenant.rita.get("/holds").json()["items"],
            lambda found: any(hold["execution_id"] == execution_id for hold in found),
        )
        hold = next(one for one in held if one["execution_id"] == execution_id)
        # A notice about a hold that is closed already would not be sent.
        wait_for(traced.listens.types, lambda told: ("hold_opened", hold["hold_id"]) in told)
        answer = tenant.rita.post(
            f"/holds/{hold['hold_id']}/decision", {"decision": "approve", "digest": hold["digest"]}
        )
        assert answer.status_code == 200, answer.text
        _, errors = agent.communicate(timeout=60)
    finally:
        agent.kill()
    assert agent.returncode == 0, errors
    assert effects.read_text().strip() == f"{SECRET_PAYEE} 98.5"
    return execution_id


@pytest.fixture(scope="module")
def trace(traced: Traced, paid: str) -> list[Told]:
    """The spans of the trace that the proposal began, once every process has told of its part."""
    (proposed,) = wait_for(
        lambda: traced.collector.named("placet.propose", execution_id=paid), lambda found: len(found) == 1
    )

    def has_ended(spans: list[Told]) -> bool:
        names = {span.name for span in spans}
        return {span.service for span in spans} >= SERVICES and "wait for a person" in names

    return wait_for(lambda: traced.collector.of_trace(proposed.trace_id), has_ended)


@pytest.fixture(scope="module")
def by_grpc(traced: Traced, tenant: Tenant) -> str:
    """The trace in which a question was asked by gRPC."""
    trace = new_trace()
    metadata = (("authorization", f"Bearer {tenant.bot.token}"), (TRACEPARENT, trace))
    with grpc.insecure_channel(traced.site.stack.status()["grpc_address"]) as channel:
        rpc.HumanInputToolStub(channel).Run(pb.RunRequest(prompt=SECRET_PAYEE), metadata=metadata)
    return trace


def test_one_trace_goes_from_the_proposal_to_the_effect_over_all_processes(trace: list[Told]) -> None:
    names = {span.name for span in trace}
    assert {
        "placet.propose",
        "placet.run",
        "send placet.commands",
        "decide ProposeToolCall",
        "decide ConsumeGrant",
        "decide ReportResult",
        "process placet.executions",
        "count trust",
        "notify",
    } <= names
    assert {span.service for span in trace} >= SERVICES
    assert not any(span.has_failed or span.events for span in trace)


def test_each_span_continues_one_of_the_trace(trace: list[Told]) -> None:
    known = {span.span_id for span in trace}
    (root,) = [span for span in trace if not span.parent_id]
    assert root.name == "placet.propose"
    assert {span.parent_id for span in trace if span is not root} <= known
    by_id = {span.span_id: span for span in trace}
    (decided,) = [span for span in trace if span.name == "decide ProposeToolCall"]
    message = by_id[decided.parent_id]
    assert (message.service, message.name) == ("placet-gateway", "ws propose")
    assert by_id[message.parent_id] is root
    (sent,) = [
        span for span in trace if span.name == "send placet.commands" and span.parent_id == message.span_id
    ]
    assert message.began_ns <= sent.began_ns < sent.ended_ns
    assert decided.attributes["placet.verdict"] == "hold"


def test_run_ends_long_after_the_span_of_the_proposal(trace: list[Told]) -> None:
    (run,) = [span for span in trace if span.name == "placet.run"]
    (proposed,) = [span for span in trace if span.name == "placet.propose"]
    assert proposed.ended_ns < run.began_ns
    assert run.parent_id == proposed.span_id


def test_wait_for_a_person_has_its_true_times_and_a_link_to_the_decision(
    traced: Traced, tenant: Tenant, trace: list[Told], paid: str
) -> None:
    (wait,) = [span for span in trace if span.name == "wait for a person"]
    (hold,) = [
        one
        for one in tenant.rita.get("/holds?status=resolved").json()["items"]
        if one["execution_id"] == paid
    ]
    assert wait.service == "placet-projector"
    assert wait.attributes["placet.hold_id"] == hold["hold_id"]
    (decision,) = traced.collector.named("decide DecideHold", hold_id=hold["hold_id"])
    assert decision.trace_id != wait.trace_id
    assert wait.links == (decision.trace_id,)
    (decided,) = [span for span in trace if span.name == "decide ProposeToolCall"]
    assert by_ms(wait.began_ns) <= by_ms(decided.ended_ns) + 1
    assert by_ms(wait.ended_ns) <= by_ms(decision.ended_ns) + 1
    assert wait.ended_ns > wait.began_ns


def test_metrics_are_sent_by_every_role(traced: Traced, paid: str) -> None:
    roles = SERVICES - {"placet-agent"} | {"placet-grpc"}
    metrics = wait_for(lambda: traced.collector.metrics, lambda found: found.keys() >= roles)
    assert "placet_gateway_request_seconds" in metrics["placet-gateway"]
    assert all("placet_role_ready" in metrics[role] for role in roles)


def test_logs_are_json(traced: Traced, paid: str) -> None:
    for role in ALWAYS:
        text = (traced.site.stack.data_dir / "logs" / f"{role}.log").read_text("utf-8")
        lines = [json.loads(line) for line in text.splitlines()]
        assert lines
        assert all({"timestamp", "level", "logger", "event"} <= line.keys() for line in lines)


async def test_request_by_any_door_continues_the_trace_of_its_sender(
    traced: Traced, tenant: Tenant, by_grpc: str
) -> None:
    by_rest, by_socket, by_bridge = new_trace(), new_trace(), new_trace()
    run = fresh("run")
    body = {"execution_id": run, "agent": "bot"}
    answer = tenant.bot.post("/executions", body, headers={TRACEPARENT: by_rest})
    assert answer.status_code == 201, answer.text
    async with socket(traced.site, tenant.bot.token) as ws:
        proposal = {"call_id": "c1", "tool": "send_money", "arguments": {"to": "x", "amount": 1}}
        reply = await asked(ws, "propose", execution_id=run, body=proposal, traceparent=by_socket)
        assert reply["status"] in (200, 202), reply
    bridge = traced.site.url.replace("http", "ws", 1) + "/human-bridge"
    headers = {"Authorization": f"Bearer {tenant.bot.token}"}
    async with websockets.connect(bridge, additional_headers=headers) as ws:
        assert (await received(ws))["type"] == "authenticated"
        await ws.send(json.dumps({"type": "publish", "prompt": SECRET_PAYEE, TRACEPARENT: by_bridge}))
        assert (await received(ws))["type"] == "published"

    expected = {
        by_rest: [("placet-gateway", "POST /v1/executions"), ("placet-decider", "decide StartExecution")],
        by_socket: [("placet-gateway", "ws propose"), ("placet-decider", "decide ProposeToolCall")],
        by_bridge: [("placet-gateway", "ws publish"), ("placet-decider", "decide RequestHumanInput")],
        by_grpc: [
            ("placet-grpc", BY_GRPC),
            ("placet-gateway", "POST /v1/tools:run"),
            ("placet-decider", "decide RequestHumanInput"),
        ],
    }
    for parent, parts in expected.items():
        spans = wait_for(
            lambda parent=parent: traced.collector.of_trace(parent[3:35]),  # type: ignore[misc]
            lambda spans, parts=parts: set(parts) <= {(span.service, span.name) for span in spans},  # type: ignore[misc]
        )
        (first,) = [span for span in spans if (span.service, span.name) == parts[0]]
        assert first.parent_id == parent[36:52]
        assert first.attributes.get("placet.tenant", tenant.name) == tenant.name


def test_wait_that_ended_by_its_deadline_is_told_without_a_link(traced: Traced, tenant: Tenant) -> None:
    run, parent = fresh("run"), new_trace()
    tenant.execution(run)
    body = {"call_id": "c1", "tool": "read_file", "arguments": {"path": "a"}}
    answer = tenant.bot.post(f"/executions/{run}/tool-calls?wait=0", body, headers={TRACEPARENT: parent})
    hold_id = answer.json()["hold_id"]
    (wait,) = wait_for(
        lambda: traced.collector.named("wait for a person", hold_id=hold_id), lambda found: len(found) == 1
    )
    assert (wait.trace_id, wait.links) == (parent[3:35], ())
    assert wait.attributes["placet.hold_status"] == "expired"


async def test_turn_of_a_conversation_is_worked_on_in_the_trace_of_its_message(
    traced: Traced, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = TracerProvider(shutdown_on_exit=False)
    monkeypatch.setattr(client_tracing, "_tracer", provider.get_tracer("test"))
    parent = new_trace()
    seen: list[str] = []

    async def answer(turn: AsyncTurn) -> str:
        seen.append(client_tracing.current())
        return "done"

    token = tenant.token("bot", "agent", agent="bot")
    async with AsyncPlacet(traced.site.url, token=token, agent="bot") as client:
        working = asyncio.create_task(client.serve({"bot": answer}))
        with client_tracing.continuing(parent):
            events = [event.type async for event in client.conversations.chat("hello")]
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
    assert events[-1] == "complete"
    assert [trace[:35] for trace in seen] == [parent[:35]]
    wanted = {"POST /agent/chat", "decide SendMessage", "decide EndTurn"}
    wait_for(
        lambda: {span.name for span in traced.collector.of_trace(parent[3:35])},
        lambda names: names >= wanted,
    )


@pytest.mark.parametrize("header", ["", "nonsense", f"00-{'0' * 32}-{'0' * 16}-01", "x" * 3000])
def test_malformed_context_changes_no_answer(traced: Traced, tenant: Tenant, header: str) -> None:
    run = fresh("run")
    body = {"execution_id": run, "agent": "bot"}
    answer = tenant.bot.post("/executions", body, headers={TRACEPARENT: header})
    assert answer.status_code == 201, answer.text
    (decided,) = wait_for(
        lambda: traced.collector.named("decide StartExecution", execution_id=run),
        lambda found: len(found) == 1,
    )
    assert decided.parent_id


async def test_malformed_context_of_a_message_changes_no_answer(traced: Traced, tenant: Tenant) -> None:
    async with socket(traced.site, tenant.bot.token) as ws:
        for said in ("nonsense", 7, None, ["x"]):
            body = {"execution_id": fresh("run"), "agent": "bot"}
            reply = await asked(ws, "start_execution", body=body, traceparent=said)
            assert reply["status"] == 201, reply


def test_refusal_is_told_by_its_code(traced: Traced, tenant: Tenant) -> None:
    parent = new_trace()
    _, call = tenant.held()
    body = {"decision": "approve", "digest": "0" * 64}
    answer = tenant.rita.post(f"/holds/{call['hold_id']}/decision", body, headers={TRACEPARENT: parent})
    assert answer.status_code == 409, answer.text
    code = answer.json()["code"]
    spans = wait_for(
        lambda: traced.collector.of_trace(parent[3:35]),
        lambda found: any(span.name.startswith("POST") for span in found),
    )
    (request,) = [span for span in spans if span.name.startswith("POST")]
    assert request.name == "POST /v1/holds/{hold_id}/decision"
    assert request.attributes["placet.refusal_code"] == code
    assert request.attributes["placet.hold_id"] == call["hold_id"]
    assert request.attributes["http.response.status_code"] == 409


def test_neither_spans_nor_logs_have_an_argument_or_a_question(
    traced: Traced, trace: list[Told], by_grpc: str
) -> None:
    wait_for(
        lambda: traced.collector.of_trace(by_grpc[3:35]),
        lambda spans: {BY_GRPC, "decide RequestHumanInput"} <= {span.name for span in spans},
    )
    assert trace
    sent = b"".join(traced.collector.raw)
    assert SECRET_PAYEE.encode() not in sent
    assert tokens_in(sent.decode(errors="replace")) == []
    logs = traced.site.stack.data_dir / "logs"
    for file in logs.glob("*.log"):
        assert SECRET_PAYEE not in file.read_text("utf-8"), file


def new_trace() -> str:
    return f"00-{uuid.uuid4().hex}-{uuid.uuid4().hex[:16]}-01"


def by_ms(at_ns: int) -> int:
    return at_ns // 1_000_000


def tokens_in(text: str) -> list[str]:
    return [word for word in text.split() if word.startswith("eyJ")]
