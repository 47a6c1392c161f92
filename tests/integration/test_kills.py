"""kill -9 and SIGSTOP, one process after the other: a held call survives, and runs once after approval."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest

from placet import Placet, Refused
from tests.integration.site import Site
from tests.servers.stack import wait_for

pytestmark = [pytest.mark.stack, pytest.mark.broker]

# Shorter than any session: whoever is frozen for longer is taken for dead, as the decider in a test below.
FROZEN_FOR_S = 3.0
KILLS_MAX = 4


def fresh(name: str) -> str:
    return f"{name}-{uuid.uuid4().hex[:8]}"


def held(agent: Placet, execution_id: str, amount: float = 5.0) -> Any:
    """A payment that waits for a person."""
    agent.executions.start(execution_id, agent="bot")
    call = agent.propose(execution_id, "send_money", {"to": "GB29", "amount": amount}, call_id="pay")
    assert call.status == "held"
    return call


def approve(site: Site, hold_id: str, digest: str) -> None:
    with site.reviewer() as reviewer:
        reviewer.holds.decide(hold_id, "approve", digest=digest)


def approve_again(site: Site, hold_id: str, digest: str) -> None:
    """A person who got no answer asks again; the first time may have counted."""
    try:
        approve(site, hold_id, digest)
    except Refused as refused:
        if refused.code != "already_decided":
            raise


def kill(site: Site, component: str) -> None:
    """kill -9, and wait until the supervisor has another one ready."""
    old = site.stack.pid(component)
    os.kill(old, signal.SIGKILL)
    wait_for(lambda: site.stack.components()[component]["pid"], lambda pid: pid not in (None, old))
    site.stack.wait_ready()


@pytest.mark.parametrize("component", ["kafka", "decider", "projector", "gateway", "trust"])
def test_held_call_survives_kill_of_each_process_and_runs_once(site: Site, component: str) -> None:
    execution_id = fresh(component)
    with site.agent() as agent:
        call = held(agent, execution_id)

        kill(site, component)
        approve(site, call.hold_id, call.digest)
        released = agent.wait(execution_id, "pay", timeout_s=60)
        agent.consume(execution_id, "pay", released.digest, attempt_id="first")
        with pytest.raises(Refused) as second:
            agent.consume(execution_id, "pay", released.digest, attempt_id="second")
        agent.result(execution_id, "pay", "first", "succeeded", output="paid")

        assert second.value.code == "already_consumed"
        assert agent.call(execution_id, "pay").status == "succeeded"


@pytest.mark.parametrize("component", ["kafka", "decider", "projector", "gateway", "trust"])
def test_held_call_survives_freeze_of_each_process_and_runs_once(site: Site, component: str) -> None:
    """SIGSTOP while a person decides, SIGCONT: nobody has died, so nobody is started anew, and nothing is lost."""
    execution_id = fresh(f"frozen-{component}")
    with site.agent() as agent, ThreadPoolExecutor(1) as pool:
        call = held(agent, execution_id)
        frozen = site.stack.pid(component)
        os.kill(frozen, signal.SIGSTOP)
        try:
            deciding = pool.submit(approve, site, call.hold_id, call.digest)
            wait([deciding], timeout=FROZEN_FOR_S)
        finally:
            os.kill(frozen, signal.SIGCONT)
        if deciding.exception(timeout=60) is not None:
            site.stack.wait_ready()
            approve_again(site, call.hold_id, call.digest)
        released = agent.wait(execution_id, "pay", timeout_s=60)
        agent.consume(execution_id, "pay", released.digest, attempt_id="only")
        agent.result(execution_id, "pay", "only", "succeeded", output="paid")

        assert agent.call(execution_id, "pay").status == "succeeded"
        assert site.stack.pid(component) == frozen


def test_killed_decider_has_its_partitions_back_without_waiting_for_its_session(site: Site) -> None:
    """It joins under its name, so the group hands its place on: the same generation, and nobody is waited for."""
    joined = [generations(site)]
    while len(joined) <= KILLS_MAX and (len(joined) == 1 or joined[-1] != [*joined[-2], joined[-2][-1]]):
        # More than one only on a busy machine, where a start can take longer than the session of the one before.
        kill(site, "decider")
        joined.append(generations(site))

    assert joined[0]
    assert joined[-1] == [*joined[-2], joined[-2][-1]], joined


def generations(site: Site) -> list[int]:
    """The group's generation at every time that the stack's own decider joined."""
    log = (site.stack.data_dir / "logs" / "decider.log").read_text(encoding="utf-8")
    return [int(found) for found in re.findall(r"Joined group 'placet-decider' \(generation (\d+)\)", log)]


def test_two_deciders_of_one_name_never_write_as_one_and_the_replaced_one_says_why_it_ends(
    site: Site, tmp_path: Path
) -> None:
    """Started twice by mistake: the second takes the place of the first, whose supervisor starts it once more."""
    execution_id, log = fresh("twins"), tmp_path / "twin.log"
    first = site.stack.pid("decider")
    with site.agent() as agent:
        call = held(agent, execution_id)
        twin = second_decider(site, log, name="decider")
        try:
            assert twin.wait(60) == 3
        finally:
            twin.kill()
        site.stack.wait_ready()
        approve(site, call.hold_id, call.digest)
        released = agent.wait(execution_id, "pay", timeout_s=60)
        agent.consume(execution_id, "pay", released.digest, attempt_id="only")
        agent.result(execution_id, "pay", "only", "succeeded", output="paid")

    said = "took this one's place: stop one of the two, or give each its own worker id."
    assert log.read_text(encoding="utf-8").strip().splitlines()[-1].endswith(said)
    assert said in (site.stack.data_dir / "logs" / "decider.log").read_text(encoding="utf-8")
    assert site.stack.pid("decider") != first


def test_acknowledged_decision_survives_kill_of_broker_and_decider_together(site: Site) -> None:
    execution_id = fresh("both")
    with site.agent() as agent:
        call = held(agent, execution_id)
        approve(site, call.hold_id, call.digest)

        for component in ("decider", "kafka"):
            os.kill(site.stack.pid(component), signal.SIGKILL)
        wait_for(
            site.stack.components, lambda parts: any(part["state"] != "ready" for part in parts.values())
        )
        site.stack.wait_ready()

        assert agent.wait(execution_id, "pay", timeout_s=60).status == "released"


def test_frozen_decider_is_replaced_and_changes_nothing_when_it_wakes(site: Site, tmp_path: Path) -> None:
    """SIGSTOP past its session, a second worker takes over, SIGCONT: the first is a zombie and the log says so."""
    execution_id = fresh("zombie")
    with site.agent() as agent:
        call = held(agent, execution_id)
        frozen = site.stack.pid("decider")
        os.kill(frozen, signal.SIGSTOP)
        second = second_decider(site, tmp_path / "decider-2.log")
        try:
            approve(site, call.hold_id, call.digest)
            released = agent.wait(execution_id, "pay", timeout_s=60)
            os.kill(frozen, signal.SIGCONT)
            agent.consume(execution_id, "pay", released.digest, attempt_id="only")
            agent.result(execution_id, "pay", "only", "succeeded", output="paid")
        finally:
            os.kill(frozen, signal.SIGCONT)
            second.terminate()
            second.wait(30)
        site.stack.wait_ready()

        events = [event["type"] for event in agent.executions.events(execution_id).items]
        assert agent.call(execution_id, "pay").status == "succeeded"
        assert events.count("DecisionRecorded") == events.count("GrantConsumed") == 1


def second_decider(site: Site, log: Path, name: str = "decider-2") -> subprocess.Popen[bytes]:
    config = site.stack.data_dir / "placet.json"
    command = [
        sys.executable,
        "-m",
        "ops.roles",
        "decider",
        "--config",
        str(config),
        "--worker-id",
        name,
    ]
    with log.open("wb") as file:
        return subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)


def run_agent(site: Site, execution_id: str, effects: Path, *words: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.integration.agent", site.url, execution_id, str(effects), *words]
    return subprocess.Popen(command, env={**os.environ, "AGENT_TOKEN": site.agent_token})


def the_hold(site: Site, execution_id: str) -> Any:
    """The open hold of an execution, once there is one."""
    with site.reviewer() as reviewer:

        def mine() -> list[Any]:
            return [
                hold for hold in reviewer.holds.list(status="open").items if hold.execution_id == execution_id
            ]

        return wait_for(mine, lambda found: len(found) == 1)[0]


def test_agent_killed_while_it_waits_is_handed_the_same_answer(site: Site, tmp_path: Path) -> None:
    execution_id, effects = fresh("waits"), tmp_path / "effects"
    first = run_agent(site, execution_id, effects)
    hold = the_hold(site, execution_id)
    first.kill()
    first.wait(30)

    approve(site, hold.hold_id, hold.digest)
    again = run_agent(site, execution_id, effects)

    assert again.wait(60) == 0
    assert effects.read_text() == "GB29 98.5\n"


def test_agent_killed_between_consume_and_result_never_runs_it_again(site: Site, tmp_path: Path) -> None:
    execution_id, effects = fresh("dies"), tmp_path / "effects"
    first = run_agent(site, execution_id, effects, "die-before-result")
    hold = the_hold(site, execution_id)
    approve(site, hold.hold_id, hold.digest)
    assert first.wait(60) == -signal.SIGKILL

    again = run_agent(site, execution_id, effects)

    assert again.wait(60) == 4, "the second process is told that nobody knows, and does not try"
    assert effects.read_text() == "GB29 98.5\n"


def test_agent_killed_between_consume_and_result_runs_an_idempotent_tool_again(
    site: Site, tmp_path: Path
) -> None:
    """Nobody is asked: the restarted process waits for the lease to end, and its run is the one that counts."""
    execution_id, effects, tool = fresh("again"), tmp_path / "effects", "pay_by_key"
    with site.admin() as operator:
        operator.tools.put(tool, {"idempotent": True, "lease_seconds": 5})
    first = run_agent(site, execution_id, effects, "die-before-result", f"tool={tool}")
    hold = the_hold(site, execution_id)
    approve(site, hold.hold_id, hold.digest)
    assert first.wait(60) == -signal.SIGKILL

    again = run_agent(site, execution_id, effects, f"tool={tool}")

    assert again.wait(60) == 0
    assert effects.read_text() == "GB29 98.5\n" * 2
    with site.agent() as agent:
        events = [event["type"] for event in agent.executions.events(execution_id).items]
    assert events.count("ToolCallReleased") == 1, "it runs by the one decision"
    assert events.count("GrantConsumed") == 2
    assert events[-2:] == ["ToolCallSucceeded", "ExecutionCompleted"]
