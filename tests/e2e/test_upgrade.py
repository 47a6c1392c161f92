"""An installation of an earlier version, started by this one: its log goes on, its views are made anew.

`installations/COMMIT.tar.xz` is a cold copy of the data directory that `placet up --partitions 3` of a commit left,
without its logs and addresses; `COMMIT.json` is what its doors had answered. Four payments were proposed: `march` was
approved and ran, `april` was rejected, `may` was approved and nobody used the release, `june` was still waiting.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway.identity.issuer import issue
from placet import Placet
from tests.archives import unpack
from tests.servers.stack import RunningStack, run_placet, running_stack, wait_for

INSTALLATIONS = Path(__file__).parent / "installations"
COMMITS = sorted(path.name.removesuffix(".tar.xz") for path in INSTALLATIONS.glob("*.tar.xz"))

# Handed out only with the view, since one who must read it must have fetched it.
WITHHELD = {"view_digest"}

pytestmark = [pytest.mark.stack, pytest.mark.broker]


@pytest.fixture(scope="module", params=COMMITS)
def commit(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def before(commit: str) -> dict[str, Any]:
    """What the doors of the earlier version answered."""
    answers: dict[str, Any] = json.loads((INSTALLATIONS / f"{commit}.json").read_text(encoding="utf-8"))
    return answers


@pytest.fixture(scope="module")
def upgraded(commit: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    """The installation under this version. The partition count is not said again: the log has it."""
    data_dir = tmp_path_factory.mktemp("upgraded")
    unpack(INSTALLATIONS / f"{commit}.tar.xz", data_dir)
    with running_stack(data_dir, "--audit-head-seconds", "0.5") as stack:
        yield stack


def read(stack: RunningStack, path: str) -> Any:
    headers = {"Authorization": f"Bearer {stack.token}"}
    return httpx.get(f"{stack.status()['url']}/v1{path}", headers=headers).raise_for_status().json()


def includes(found: Any, wanted: Any) -> bool:
    """Whether an answer has all that an earlier one had; objects may have more members than then."""
    if isinstance(wanted, dict):
        return all(includes(found.get(name), wanted[name]) for name in wanted if name not in WITHHELD)
    if isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(includes, found, wanted))
    return bool(found == wanted)


def test_earlier_events_are_served_as_they_were(upgraded: RunningStack, before: dict[str, Any]) -> None:
    for path, events in before.items():
        if path.endswith("/events"):
            found = read(upgraded, path)["items"][: len(events)]
            assert includes(found, events), f"{path}: {found}"


def test_what_was_done_stays_done_and_what_ran_out_meanwhile_is_never_released(
    upgraded: RunningStack, before: dict[str, Any]
) -> None:
    assert before["calls"] == {
        "march": "succeeded",
        "april": "denied",
        "may": "released",
        "june": "held",
    }
    path = "/executions/{}/tool-calls/pay"
    done = {name: read(upgraded, path.format(name))["status"] for name in ("march", "april")}
    assert done == {"march": "succeeded", "april": "denied"}
    # Grant and hold were good for 15 minutes.
    late = wait_for(
        lambda: {name: read(upgraded, path.format(name))["status"] for name in ("may", "june")},
        lambda found: not {"released", "held"} & set(found.values()),
    )
    assert late == {"may": "expired", "june": "expired"}


def test_execution_of_before_goes_on_with_the_policy_of_before(upgraded: RunningStack) -> None:
    keys, url = upgraded.data_dir / "keys", upgraded.status()["url"]
    bot = issue(keys, "bot", ["agent"], "default", "default", "billing")
    rita = issue(keys, "rita", ["reviewer"], "default", "default")
    with Placet(url, token=bot, agent="billing") as agent, Placet(url, token=rita) as reviewer:
        again = agent.propose("april", "send_money", {"to": "GB29", "amount": 98.7}, call_id="pay")
        assert again.status == "denied"
        call = agent.propose("march", "send_money", {"to": "GB29", "amount": 1.5}, call_id="tip")
        assert call.status == "held"
        reviewer.holds.decide(call.hold_id, "approve", digest=call.digest)
        released = agent.wait("march", "tip", timeout_s=60)
        agent.consume("march", "tip", released.digest, attempt_id="only")
        agent.result("march", "tip", "only", "succeeded", output="paid")


def test_checker_replay_and_proofs_hold_over_both_versions(upgraded: RunningStack, tmp_path: Path) -> None:
    checked = upgraded.placet("audit-log", "--json")
    assert json.loads(checked.stdout)["violations"] == [], checked.stdout
    into = f"sqlite:///{tmp_path}/again.sqlite"
    again = upgraded.placet("replay", "--into", into, "--processes", "1", "--json")
    assert json.loads(again.stdout)["equal"] is True, again.stdout + again.stderr
    trail, key = str(tmp_path / "trail"), str(upgraded.data_dir / "keys" / "audit.json")
    address = ("--url", upgraded.status()["url"], "--token", upgraded.token)
    for arguments in (("fetch", "--out", trail), ("verify", trail, "--key", key)):
        done = run_placet(*address, "audit", *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
