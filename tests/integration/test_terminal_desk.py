"""The `placet` command of reviewers and operators on a running stack: their own holds, groups, steering, streams."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from fcntl import ioctl
from typing import Any

import pytest

from placet import Denied, Placet
from placet.cli import run
from tests.integration.doors import Tenant, fresh, new_tenant
from tests.integration.site import PAY, READ, Site
from tests.servers.stack import PLACET

pytestmark = [pytest.mark.stack, pytest.mark.broker]

POLICY = """
policy: own
rules:
  - id: payments
    match: {tools: [send_money]}
    then: hold
    hold:
      roles: [treasurer]
      timeout_seconds: 3600
      escalate: {after_seconds: 1800, roles: [cfo]}
      question: "Pay {{args.amount}} to {{args.to}}?"
  - {id: reads, match: {tools: [read_file]}, then: hold}
  - {id: notes, match: {tools: [note]}, then: allow}
"""
SCREEN = (24, 80)
ANSWER_WITHIN_S = 90.0


@pytest.fixture(scope="module")
def desk(site: Site) -> Iterator[Tenant]:
    with new_tenant(site, POLICY, PAY, READ) as found:
        yield found


class Typed:
    """The command in this process, as one person of the tenant."""

    def __init__(self, desk: Tenant, capsys: pytest.CaptureFixture[str], subject: str, *roles: str) -> None:
        self.site, self._capsys = desk.site, capsys
        self.token = desk.token(subject, *roles)

    def __call__(self, *arguments: str, code: int = 0) -> str:
        found = run(["--url", self.site.url, "--token", self.token, *arguments])
        out, self.err = self._capsys.readouterr()
        assert found == code, (arguments, out, self.err)
        return out

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "--json"))


@pytest.fixture
def rita(desk: Tenant, capsys: pytest.CaptureFixture[str]) -> Typed:
    return Typed(desk, capsys, "rita", "reviewer")


@pytest.fixture
def tess(desk: Tenant, capsys: pytest.CaptureFixture[str]) -> Typed:
    return Typed(desk, capsys, "tess", "treasurer")


def ids(holds: Sequence[dict[str, Any]]) -> list[str]:
    return [hold["hold_id"] for hold in holds]


def test_inbox_mine_is_what_may_be_decided_and_was_not_yet(desk: Tenant, rita: Typed, tess: Typed) -> None:
    _, payment = desk.held()
    _, reading = desk.held("read_file")

    mine, hers = ids(tess.json("inbox", "--mine")), ids(rita.json("inbox", "--mine"))
    assert payment["hold_id"] in mine
    assert payment["hold_id"] not in hers
    assert reading["hold_id"] in hers
    assert {payment["hold_id"], reading["hold_id"]} <= set(ids(rita.json("inbox")))

    tess("approve", payment["hold_id"][:13], "--yes")
    assert payment["hold_id"] not in ids(tess.json("inbox", "--mine"))


def test_hold_is_claimed_given_back_handed_on_extended_and_escalated(
    desk: Tenant, rita: Typed, tess: Typed, capsys: pytest.CaptureFixture[str]
) -> None:
    _, payment = desk.held()
    hold_id = payment["hold_id"]

    assert tess.json("claim", hold_id, "--for", "90s")["claimed_by"] == "tess"
    assert tess.json("release", hold_id)["claimed_by"] is None
    before = tess.json("show", hold_id)["deadline_at"]
    assert tess.json("extend", hold_id, "10m")["deadline_at"] > before
    assert tess.json("delegate", hold_id, "rita")["assignee"] == "rita"
    assert hold_id in ids(rita.json("inbox", "--mine"))
    escalated = tess.json("escalate", hold_id)
    assert (escalated["escalated"], "cfo" in escalated["roles"]) == (True, True)
    tess("claim", hold_id, "--for", "soon", code=2)
    rita("approve", hold_id, "--yes")
    tess("claim", hold_id, code=1)
    assert "rita" in tess.err or "already_decided" in tess.err or "not_open" in tess.err


def test_run_is_paused_resumed_and_cancelled(desk: Tenant, rita: Typed) -> None:
    execution_id, payment = desk.held()

    assert "paused" in rita("pause", execution_id, "--reason", "lunch")
    assert rita.json("state", execution_id)["state"] == "paused"
    assert rita.json("resume", execution_id, "--feedback", "go on")["state"] != "paused"
    rita("cancel", execution_id, code=2)
    assert "--yes" in rita.err
    assert "cancelled" in rita("cancel", execution_id, "--yes", "--reason", "enough")
    assert desk.call(execution_id)["status"] == "cancelled"
    assert rita.json("show", payment["hold_id"])["status"] == "cancelled"


def test_group_of_low_risk_is_approved_as_one_and_no_other(desk: Tenant, rita: Typed, tess: Typed) -> None:
    runs = [desk.execution() for _ in range(3)]
    # A subject names nothing: a new path would be asked about by itself.
    calls = [desk.propose(one, "read_file", {"subject": f"note {number}"}) for number, one in enumerate(runs)]
    _, payment = desk.held()

    said = rita("approve", calls[0]["hold_id"], "--group", "--yes")

    assert re.search(r"approved (\d+) of \1", said), said
    assert [desk.call(one)["status"] for one in runs] == ["released"] * 3
    tess("approve", payment["hold_id"], "--group", "--yes", code=1)
    assert "approve each by itself" in tess.err


def test_decided_hold_and_its_call_are_shown_by_their_beginnings(
    desk: Tenant, rita: Typed, tess: Typed
) -> None:
    execution_id, payment = desk.held()
    tess("reject", payment["hold_id"], "--feedback", "wrong account")
    shown = rita("show", f"{execution_id}/c")
    assert re.search(r"status\s+denied", shown)
    assert "wrong account" in shown
    assert rita.json("show", f"{execution_id}/c")["digest"] == payment["digest"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("audit", "--since", "yesterday"), "since"),
        (("events", "--from", "yesterday"), "neither offsets"),
        (("events", "--from", "2026-13-40T00:00:00Z"), "not an RFC 3339 time"),
        (("inbox", "--kind", "permissions"), "is not one of"),
        (("executions", "--state", "ended"), "is not one of"),
        (("events", "--type", "Decided"), "is not one of"),
        (("events", "--type", "PolicyPublished"), "does not show; choose one of"),
    ],
)
def test_wrong_filter_is_told_by_the_name_that_was_typed(
    desk: Tenant, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], told: str
) -> None:
    ana = Typed(desk, capsys, "ana", "analyst")
    found = run(["--url", ana.site.url, "--token", ana.token, *arguments])
    said = capsys.readouterr().err
    assert found in (1, 2)
    assert told in said
    assert "Traceback" not in said
    assert "at must be" not in said
    assert "cursor is not ours" not in said


@pytest.mark.parametrize(
    "query", ["holds?kind=x", "holds?status=x", "holds?decidable=you", "executions?state=x"]
)
def test_unknown_filter_is_refused_over_rest(desk: Tenant, query: str) -> None:
    answer = desk.rita.get(f"/{query}")
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")


@pytest.mark.parametrize("command", [("inbox", "--follow"), ("events", "--follow")])
def test_interrupt_ends_what_follows_without_a_traceback(desk: Tenant, command: tuple[str, ...]) -> None:
    environment = {**os.environ, "PLACET_URL": desk.site.url, "PLACET_TOKEN": desk.token("rita", "reviewer")}
    process = subprocess.Popen(
        [PLACET, *command, "--json"],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    told, proposed = "", list[str]()
    deadline = time.monotonic() + ANSWER_WITHIN_S
    try:
        # It does not say from when on it is told: so there are proposals until one of them comes.
        while not any(hold_id in line for line in _objects(told) for hold_id in proposed):
            assert time.monotonic() < deadline, told
            proposed.append(desk.held()[1]["hold_id"])
            while select.select([process.stdout], [], [], 0.5)[0]:
                part = os.read(process.stdout.fileno(), 1 << 20)
                assert part, told
                told += part.decode()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=ANSWER_WITHIN_S)
    finally:
        process.kill()
    assert (process.returncode, said) == (130, b"")


def _objects(told: str) -> list[str]:
    """The whole lines that are one object each: a list is what was there before."""
    return [line for line in told.split("\n")[:-1] if line.startswith("{")]


def test_run_of_a_client_that_nobody_keeps_goes_on_to_its_end(desk: Tenant) -> None:
    token = desk.token("bot", "agent", agent="bot")
    with Placet(desk.site.url, token=token, agent="bot").execution(fresh("short")) as short:

        @short.gated
        def send_money(to: str, amount: float) -> None: ...

        desk_holds = desk.caller("tess", "treasurer")
        with pytest.raises(Denied, match="no"):
            _rejecting(desk, desk_holds, short.id, send_money)
    assert desk.bot.get(f"/executions/{short.id}").json()["state"] == "completed"


def _rejecting(desk: Tenant, by: Any, execution_id: str, pay: Any) -> None:
    with ThreadPoolExecutor(1) as pool:
        paying = pool.submit(pay, "GB29", 5.0)
        deadline = time.monotonic() + ANSWER_WITHIN_S
        while not (found := _open_of(desk, execution_id)):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        desk.decide(found[0], "reject", by=by, feedback="no")
        paying.result(ANSWER_WITHIN_S)


def _open_of(desk: Tenant, execution_id: str) -> list[dict[str, Any]]:
    items = desk.admin.get("/holds?status=open&limit=500").json()["items"]
    return [hold for hold in items if hold["execution_id"] == execution_id]


def test_function_that_asks_for_it_is_published_by_an_operator_and_then_run_by_its_agent(
    desk: Tenant,
) -> None:
    name = fresh("note").replace("-", "_")

    def note(text: str, times: int = 1) -> str:
        """Write it down."""
        return text * times

    operator = Placet(desk.site.url, token=desk.token("olga", "operator"))
    agent = Placet(desk.site.url, token=desk.token("bot", "agent", agent="bot"), agent="bot")
    with operator, agent:
        with agent.execution(fresh("run")) as first:
            gated = first.gated(register=True, tool=name, annotations={"readOnlyHint": True})(note)
            with pytest.raises(Exception, match="an operator must publish it"):
                gated("a")
        assert [one.is_new for one in operator.tools.register(gated)] == [True]
        assert [one.is_new for one in operator.tools.register(gated)] == [False]
        published = {tool.name: tool.raw for tool in agent.tools.list().items}[name]
        assert published["description"] == "Write it down."
        assert published["inputSchema"]["required"] == ["text"]
        desk.publish(POLICY.replace("tools: [note]", f"tools: [{name}]"))
        with agent.execution(fresh("run")) as second:
            gated = second.gated(register=True, tool=name, annotations={"readOnlyHint": True})(note)
            assert gated("a", 3) == "aaa"


def test_approve_on_a_screen_of_24_lines_ends_with_what_is_asked_and_would_run(desk: Tenant) -> None:
    execution_id = fresh("run")
    body = {"execution_id": execution_id, "agent": "bot", "request": "Pay what we owe to Acme"}
    assert desk.bot.post("/executions", body).status_code == 201
    call = desk.propose(execution_id, "send_money", {"to": "GB29NWBK60161331926819", "amount": 98.7})
    environment = {
        **os.environ,
        "PLACET_URL": desk.site.url,
        "PLACET_TOKEN": desk.token("tess", "treasurer"),
        "TERM": "xterm",
    }

    rows, process, screen = _typed([str(PLACET), "approve", call["hold_id"]], environment)

    visible = "\n".join(rows[-SCREEN[0] :])
    for text in (
        "Pay what we owe to Acme",
        "Pay 98.7 to GB29NWBK60161331926819?",
        "tool: send_money",
        '"amount": 98.7',
        '"to": "GB29NWBK60161331926819"',
    ):
        assert text in visible, visible
    assert rows[-1].startswith("Approve send_money with digest ")
    assert rows[-1].rstrip().endswith("[y/N]:")
    assert "arguments:" in "\n".join(rows[-8:]), "what would run stands right above the question"
    os.write(screen, b"y\n")
    while True:
        try:
            if not os.read(screen, 65536):
                break
        except OSError:
            break  # Linux's word for the end of a terminal
    assert process.wait(ANSWER_WITHIN_S) == 0
    os.close(screen)
    assert desk.call(execution_id)["status"] == "released"


def _typed(command: list[str], environment: dict[str, str]) -> tuple[list[str], subprocess.Popen[bytes], int]:
    """A command on a terminal of 80 × 24, up to its question: what was written, in the terminal's rows."""
    screen, side = pty.openpty()
    ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", *SCREEN, 0, 0))
    process = subprocess.Popen(command, env=environment, stdin=side, stdout=side, stderr=side)
    os.close(side)
    told = b""
    while b"[y/N]: " not in told:
        assert select.select([screen], [], [], ANSWER_WITHIN_S)[0], told.decode()
        told += os.read(screen, 65536)
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", told.decode()).replace("\r", "")
    width = SCREEN[1]
    rows = [line[at : at + width] for line in plain.split("\n") for at in range(0, max(len(line), 1), width)]
    return rows, process, screen
