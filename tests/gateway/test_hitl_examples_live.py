"""The programs of examples/hitl as they are, each in a process or browser of its own, on a running stack."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import grpc
import httpx
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from playwright.async_api import Page, expect

from ops.ports import free_port
from placet import AsyncTurn, gated
from tests.clients.tools import run_tool
from tests.gateway.another import another_gateway
from tests.gateway.browser import open_page, served
from tests.gateway.conftest import Caller, Doors
from tests.gateway.people import answer_next, decide, event_types, open_hold
from tests.gateway.test_chat_anew_live import of_another_log
from tests.gateway.test_chat_live import Function, serving
from tests.pages import ROOT
from tests.servers.stack import wait_for

pytestmark = [pytest.mark.stack, pytest.mark.broker]

EXAMPLES = ROOT / "examples" / "hitl"


def fresh(word: str) -> str:
    return f"{word}-{uuid4().hex[:10]}"


@pytest.fixture
def own(doors: Doors) -> Caller:
    """A caller with the token of an agent that no other test has."""
    agent = fresh("example")
    return doors.caller(agent, "agent", agent=agent)


@contextmanager
def running(caller: Caller, *command: str) -> Iterator[subprocess.Popen[str]]:
    """A program with an agent's token, in a group of processes that ends with the test."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PLACET_")}
    process = subprocess.Popen(
        [sys.executable, *command],
        env={**plain, "PLACET_URL": caller.url, "PLACET_TOKEN": caller.token},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=30)


def example(own: Caller, anna: Caller, program: str, *answers: Any, arguments: tuple[str, ...] = ()) -> str:
    """What an example prints, whose questions get these answers, one after another."""
    with running(own, str(EXAMPLES / program), *arguments) as process:
        executions = wait_for(lambda: own.get("/v1/executions").json()["items"], bool)
        for value in answers:
            answer_next(anna, executions[0]["agent"], value)
        said, wrong = process.communicate(timeout=60)
    assert process.returncode == 0, wrong
    return said


def test_example_of_a_clarification(own: Caller, anna: Caller) -> None:
    assert example(own, anna, "clarification.py", "copy it") == "the user wants: copy it\n"


def test_example_of_a_clarification_that_is_rejected(own: Caller, anna: Caller) -> None:
    with running(own, str(EXAMPLES / "clarification.py")) as process:
        executions = wait_for(lambda: own.get("/v1/executions").json()["items"], bool)
        hold = open_hold(anna, executions[0]["agent"])
        decide(anna, hold, decision="reject", feedback="nothing at all")
        said, wrong = process.communicate(timeout=60)
    assert (process.returncode, wrong) == (0, "")
    assert said.startswith("left as it is: ")
    assert "nothing at all" in said


def test_example_of_a_decision(own: Caller, anna: Caller) -> None:
    assert example(own, anna, "decision.py", "production") == "deploying to production\n"
    (execution,) = own.get("/v1/executions").json()["items"]
    assert (execution["state"], execution["result"]) == ("completed", {"deployed_to": "production"})


def test_example_of_variables_writes_them_nowhere(doors: Doors, own: Caller, anna: Caller) -> None:
    secret = fresh("key")
    said = example(own, anna, "env_var.py", {"STORE_KEY": secret, "STORE_REGION": "eu-1"})
    assert said == "uploading with STORE_KEY, STORE_REGION\n"
    (execution,) = own.get("/v1/executions").json()["items"]
    events = anna.get(f"/v1/executions/{execution['execution_id']}/events?limit=200").text
    assert "HumanInputProvided" in events
    assert secret not in events


def test_example_of_a_permission(own: Caller, anna: Caller) -> None:
    answers = (False, {"granted": True, "remember": True})
    said = example(own, anna, "permission.py", *answers, arguments=("a", "b", "c"))
    assert said.splitlines() == ["kept a", "would remove b", "would remove c"]


@contextmanager
def web_worker(own: Caller, port: int) -> Iterator[subprocess.Popen[str]]:
    """The web worker, once it answers."""
    app = (
        "-m",
        "uvicorn",
        "--app-dir",
        str(EXAMPLES),
        "web_worker:app",
        "--port",
        str(port),
        "--no-access-log",
    )
    with running(own, *app) as process:
        wait_for(lambda: listens(port), bool)
        yield process


def listens(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/").status_code == 404
    except httpx.TransportError:
        return False


def test_web_worker_goes_on_in_another_process_once_people_have_decided(own: Caller, anna: Caller) -> None:
    port, name = free_port(), fresh("r")
    execution_id = f"release-{name}"
    address = f"http://127.0.0.1:{port}/releases/{name}"

    def ask() -> tuple[int, dict[str, Any]]:
        answer = httpx.post(address, timeout=60)
        return answer.status_code, answer.json()

    with web_worker(own, port) as first:
        status, body = ask()
        assert (status, ask()) == (202, (status, body))
        assert (body["question"], body["options"]) == ("Where to?", ["staging", "production"])
        first.send_signal(signal.SIGKILL)
        first.wait(20)
    agent = str(own.get(f"/v1/executions/{execution_id}").json()["agent"])
    assert answer_next(anna, agent, "production")["hold_id"] == body["waits_for"]
    with web_worker(own, port) as second:
        status, body = ask()
        call = open_hold(anna, agent, tool="deploy")
        assert (status, body) == (202, {"waits_for": call["hold_id"]})
        assert call["arguments"] == {"release": name, "to": "production"}
        decide(anna, call, decision="approve")
        with ThreadPoolExecutor(4) as pool:
            at_once = [status for status, _ in pool.map(lambda _: ask(), range(4))]
        # A request can find that another one runs the call.
        assert set(at_once) <= {200, 409}
        assert ask() == (200, {"deployed_to": "production"})
        assert httpx.post(f"http://127.0.0.1:{port}/releases/a%20b").status_code == 404
        second.terminate()
        said, _ = second.communicate(timeout=30)
    assert said == f"deploying {name} to production\n"
    assert event_types(anna, execution_id).count("ToolCallSucceeded") == 1


@gated(tool="read_file")
async def read_file(path: str) -> str:
    return "42"


async def deployer(turn: AsyncTurn) -> str:
    await turn.say("<b>Let me see.</b>")
    plan = await read_file("plan.txt")
    options = [{"id": "staging", "label": "Staging"}, {"id": "production", "label": "Production"}]
    where = await turn.hitl.request_decision("Where?", options)
    sure = await turn.hitl.request_permission(tool="shell", action="deploy", risk="high", question="Shall I?")
    return f"deployed {plan} to {where}" if sure else "nothing was deployed"


async def enter(page: Page, gateway: str, token: str, agent: str) -> None:
    """Fill in how the page reaches the agent."""
    for name, value in (("gateway", gateway), ("token", token), ("agent", agent)):
        await page.fill(f"[name={name}]", value)


@dataclass(frozen=True)
class Chat:
    """A page of the examples in a browser, and how Olga reaches an agent by it."""

    page: Page
    url: str
    token: str
    agent: str

    async def sign_in(self) -> None:
        """Fill it in, and leave the fields: the page may read what was said before."""
        await enter(self.page, self.url, self.token, self.agent)
        await self.page.locator("[name=token]").blur()

    async def say(self, text: str) -> None:
        """Send a message."""
        await self.page.fill("[name=text]", text)
        await self.page.click("text=Send")


@asynccontextmanager
async def chatting(
    doors: Doors, agent: str, function: Function, file: str = "chat.html"
) -> AsyncIterator[Chat]:
    """A page before an agent, at a gateway that accepts its origin; Olga is signed in."""
    with served({"/": (EXAMPLES / file).read_bytes()}) as origin:
        async with (
            another_gateway(doors, more={"gateway_origins": origin}) as url,
            serving(doors, agent, function, wait_s=0),
            open_page(f"{origin}/") as page,
        ):
            chat = Chat(page, url, doors.token("olga", "operator"), agent)
            await chat.sign_in()
            yield chat


async def test_page_in_a_browser_chats_and_answers(doors: Doors, anna: Caller) -> None:
    agent = fresh("deployer")
    async with chatting(doors, agent, deployer) as chat:
        page = chat.page
        await chat.say("Deploy it")
        await expect(page.locator(".message")).to_have_text("<b>Let me see.</b>", timeout=30_000)
        await page.click("text=Production", timeout=30_000)
        permission = page.locator(".hitl_requested").last
        await expect(permission).to_have_text(
            "Shall I? tool: shell action: deploy risk: high Yes (true)No (false)", timeout=30_000
        )
        # The permission is for another person than the one who opened the conversation.
        await page.click("button:has-text('true')", timeout=30_000)
        await expect(page.locator(".error")).to_contain_text("a person other than", timeout=30_000)
        await asyncio.to_thread(answer_next, anna, agent, True)
        await expect(page.locator(".complete")).to_be_visible(timeout=30_000)
        await expect(page.locator(".message")).to_have_text(
            ["<b>Let me see.</b>", "deployed 42 to production"]
        )
        await expect(page.locator(".hitl_requested")).to_have_text(
            ['Where? resolved: "production"', "Shall I? resolved: true"]
        )
        await expect(page.locator(".tool_call").last).to_have_text("read_file: succeeded")


async def test_page_of_60_lines_chats_answers_and_goes_on_after_a_lost_connection(
    doors: Doors, anna: Caller
) -> None:
    agent, page_of_60 = fresh("deployer"), (EXAMPLES / "page.html").read_bytes()
    assert page_of_60.count(b"\n") <= 60
    async with chatting(doors, agent, deployer, "page.html") as chat:
        page = chat.page
        await chat.say("Deploy it")
        await expect(page.locator(".hitl_requested")).to_contain_text("Where?", timeout=30_000)
        await expect(page.locator(".hitl_requested button").last).to_contain_text("Production")
        await page.context.set_offline(True)
        await asyncio.to_thread(answer_next, anna, agent, "production", kind="decision")
        await page.context.set_offline(False)
        await expect(page.locator(".hitl_requested")).to_have_count(2, timeout=30_000)
        await expect(page.locator(".hitl_requested").last).to_contain_text("Shall I? shell deploy high")
        await page.click("button:text('true')", timeout=30_000)
        await expect(page.locator(".error")).to_contain_text("a person other than", timeout=30_000)
        await asyncio.to_thread(answer_next, anna, agent, True)
        await expect(page.locator(".complete")).to_be_visible(timeout=30_000)
        said = ["<b>Let me see.</b>", "deployed 42 to production"]
        await expect(page.locator(".message")).to_have_text(said)


async def test_page_in_a_browser_that_is_loaded_again_goes_on_with_its_conversation(
    doors: Doors, anna: Caller
) -> None:
    agent = fresh("deployer")
    async with chatting(doors, agent, deployer) as chat:
        page = chat.page
        await chat.say("Deploy it")
        await expect(page.locator(".hitl_requested")).to_contain_text("Where?", timeout=30_000)
        assert chat.token not in page.url
        await page.reload()
        await expect(page.locator(".user")).to_have_count(0)
        await chat.sign_in()
        await page.click("text=Production", timeout=30_000)
        await asyncio.to_thread(answer_next, anna, agent, False, kind="permission")
        await expect(page.locator(".complete")).to_be_visible(timeout=30_000)
        said = ["<b>Let me see.</b>", "nothing was deployed"]
        for _ in range(2):
            await expect(page.locator(".user")).to_have_text(["Deploy it"], timeout=30_000)
            await expect(page.locator(".message")).to_have_text(said, timeout=30_000)
            await page.reload()
            await chat.sign_in()


LOOK_ALIKE = [{"id": "delete_all", "label": "Keep"}, {"id": "keep", "label": "Keep"}, "ask"]


async def test_page_in_a_browser_shows_what_is_chosen_and_takes_several_and_texts(doors: Doors) -> None:
    agent = fresh("chooser")

    async def chooser(turn: AsyncTurn) -> str:
        one = await turn.hitl.request_decision("Which?", LOOK_ALIKE)
        several = await turn.hitl.request_decision("Some?", LOOK_ALIKE, multiple=True, allow_custom=True)
        return f"{one} {several} {await turn.hitl.request_clarification('Why?')}"

    async with chatting(doors, agent, chooser) as chat:
        page = chat.page
        await chat.say("Clean up")
        questions = page.locator(".hitl_requested")
        buttons = questions.nth(0).locator("button")
        await expect(buttons).to_have_text(["Keep (delete_all)", "Keep (keep)", "ask"], timeout=30_000)
        await buttons.nth(1).click()
        some = questions.nth(1)
        for name in ("Keep (delete_all)", "ask", "Keep (delete_all)", "Keep (keep)"):
            await some.get_by_text(name, exact=True).click(timeout=30_000)
        await some.locator("input").fill("archive")
        await some.get_by_text("Answer", exact=True).click()
        await questions.nth(2).locator("input").fill("no room")
        await questions.nth(2).get_by_text("Answer", exact=True).click()
        said = "keep ['ask', 'keep', 'archive'] no room"
        await expect(page.locator(".message")).to_have_text([said], timeout=30_000)


# The next connections of the page come with another id, until one is accepted.
COMING_WITH = """(id) => {
    const fetched = window.fetch;
    window.fetch = async (where, how) => {
        if (id && how.headers["Last-Event-ID"]) how.headers["Last-Event-ID"] = id;
        const answer = await fetched(where, how);
        if (answer.ok) id = "";
        return answer;
    };
}"""


async def test_page_in_a_browser_goes_on_after_its_gateway_was_away(doors: Doors, anna: Caller) -> None:
    agent, port = fresh("deployer"), str(free_port())
    token = doors.token("olga", "operator")
    with served({"/": (EXAMPLES / "chat.html").read_bytes()}) as origin:
        more = {"gateway_origins": origin, "gateway_port": port}
        async with serving(doors, agent, deployer, wait_s=0), open_page(f"{origin}/") as page:
            await enter(page, f"http://127.0.0.1:{port}", token, agent)
            async with another_gateway(doors, more=more):
                await page.fill("[name=text]", "Deploy it")
                await page.click("text=Send")
                await expect(page.locator(".hitl_requested")).to_be_visible(timeout=30_000)
                # As after a backup was restored: the page's id leads to other records than it has seen.
                cursor = (await asyncio.to_thread(anna.get, "/v1/holds")).json()["cursor"]
                await page.evaluate(COMING_WITH, of_another_log(doors, cursor))
            # Somebody answers while this gateway is away.
            await asyncio.to_thread(answer_next, anna, agent, "staging", kind="decision")
            async with another_gateway(doors, more=more):
                await asyncio.to_thread(answer_next, anna, agent, False, kind="permission")
                await expect(page.locator(".complete")).to_be_visible(timeout=30_000)
            said = ["<b>Let me see.</b>", "nothing was deployed"]
            assert await page.locator(".message").all_text_contents() == said


def is_served(address: str) -> bool:
    """True if the service answers that it serves: a test before this one may have stopped what it needs."""
    with grpc.insecure_channel(address) as channel:
        asked = health_pb2.HealthCheckRequest(service="placet.human_input.v1.HumanInput")
        health: Any = health_pb2_grpc.HealthStub(channel)
        answer = health.Check(asked, timeout=10, wait_for_ready=True)
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


def test_session_of_grpcurl_asks_answers_and_watches(doors: Doors, own: Caller, anna: Caller) -> None:
    address = doors.stack.status()["grpc_address"]
    wait_for(lambda: is_served(address), bool)
    done = run_tool(
        "bash",
        EXAMPLES / "grpc.sh",
        cwd=EXAMPLES,
        PLACET_GRPC=address,
        AGENT_TOKEN=own.token,
        REVIEWER_TOKEN=anna.token,
    )
    said = done.stdout
    assert "placet.human_input.v1.HumanInput.WatchHumanInput" in said
    assert '"status": "SERVING"' in said
    states = re.findall(r'"(?:status|response)": "(.*?)"', said.partition("watches the task")[2])
    # The watching agent has the present state and the answer; then the answer stays.
    assert states == ["waiting_for_human", "Yes.", "answered", "Yes.", "answered"]
    assert "PermissionDenied" in done.stderr
