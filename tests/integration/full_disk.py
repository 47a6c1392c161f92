"""A stack whose broker's disk fills up and is freed: run in a mount namespace of its own, prints what it saw.

unshare --mount python -m tests.integration.full_disk DIRECTORY
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx

from gateway.identity.issuer import issue
from ops import process
from tests.servers.stack import RunningStack, running_stack, wait_for

SIZE_MB = 64
# A whole data directory: Kafka's files, the views, the logs and what everybody writes about themselves.
WHOLE_MB = 320
# Disks of the views and of the audit heads alone: roomy enough that nobody is warned.
SIDE_MB = 80
LEFT_MB = 40
KILLED = ("kafka", "decider", "trust")
BEFORE_CALLS = 20
ATTEMPTS_MAX = 400
LARGE = "x" * 100_000


def private_mounts(directory: Path, *what: str) -> list[str]:
    """The command that runs this program where its mounts are seen by nobody else."""
    as_root = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    return [
        "unshare",
        *as_root,
        "--mount",
        sys.executable,
        "-m",
        "tests.integration.full_disk",
        str(directory),
        *what,
    ]


def main(directory: Path) -> None:
    kafka = directory / "kafka"
    kafka.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE_MB}m", "tmpfs", str(kafka)], check=True)
    with full(kafka):
        refused = RunningStack(directory).placet("up", "--port", "0", "--partitions", "1", "--detach")
    with running_stack(directory, "--partitions", "1") as stack:
        seen = hurt(stack, kafka)
    print(json.dumps(seen | {"up_exit": refused.returncode, "up_said": refused.stderr}))


def main_whole(directory: Path) -> None:
    """The disk of the whole data directory is full, and parts end meanwhile."""
    views, heads = directory.with_name("views-disk"), directory.with_name("heads-disk")
    for path, size_mb in ((directory, WHOLE_MB), (views, SIDE_MB), (heads, SIDE_MB)):
        path.mkdir(parents=True, exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size_mb}m", "tmpfs", str(path)], check=True)
    others = ("--database-url", f"sqlite:///{views}/views.sqlite", "--audit-heads-dir", str(heads))
    with running_stack(directory, "--partitions", "1", *others) as stack:
        alone = {path.name: full_alone(stack, path) for path in (views, heads)} | {"low": low(stack)}
        supervisor = json.loads((directory / "run" / "stack.json").read_text())["pid"]
        pids = [part["pid"] for name, part in stack.components().items() if name in KILLED]
        with full(directory):
            for pid in pids:
                # Kafka may end by itself.
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            since = time.monotonic()
            wait_for(lambda: told_ready(stack), lambda names: not names, 30)
            told_within_s = time.monotonic() - since
            told = wait_for(
                lambda: stack.status(),
                lambda said: said["state"] == "degraded" and "free space" in said["message"],
                90,
            )
            seen: dict[str, Any] = {
                "alone": alone,
                "told": told["message"],
                "told_within_s": told_within_s,
                "alive": process.is_alive(supervisor),
            }
        parts = stack.wait_ready()
        state = wait_for(lambda: stack.status()["state"], lambda state: state == "ready")
        seen |= {
            "state": state,
            "same": json.loads((directory / "run" / "stack.json").read_text())["pid"] == supervisor,
            "restarts": {name: part["restarts"] for name, part in parts.items()},
        }
    with full(directory):
        refused, shown = stack.placet("up", "--port", "0", "--detach"), stack.status()
    seen |= {"up": [refused.returncode, refused.stderr], "status": shown["message"]}
    print(json.dumps(seen))


def full_alone(stack: RunningStack, disk: Path) -> dict[str, Any]:
    """Fill a disk that only the projector writes to while there is work, and look at what is told."""
    token = issue(stack.data_dir / "keys", "bot", ["agent"], "default", "default", "bot")
    with httpx.Client(base_url=stack.status()["url"], timeout=30) as client:
        agent = {"Authorization": f"Bearer {token}"}
        with full(disk):
            wait_for(lambda: client.get("/readyz").status_code, lambda code: code == 503, 30)
            answers: list[tuple[int, list[str]]] = []
            ended = False
            ends_at = time.monotonic() + 120
            while time.monotonic() < ends_at and not (ended and len(answers) >= 30):
                body = {"execution_id": f"{disk.name}-{len(answers)}", "agent": "bot"}
                client.post("/v1/executions", json=body, headers=agent).raise_for_status()
                answer = client.get("/readyz")
                answers.append((answer.status_code, answer.json()["problems"]))
                ended = ended or any("ended by an error" in text for text in answers[-1][1])
                time.sleep(0.2)
            status = stack.status()
        freed_at = time.monotonic()
        stack.wait_ready()
        wait_for(lambda: client.get("/readyz").json(), lambda said: said["status"] == "ready", 30)
        seen = {"answers": answers, "status": status, "back_s": time.monotonic() - freed_at}
        return seen | {"warnings": client.get("/readyz").json()["warnings"]}


def low(stack: RunningStack) -> dict[str, Any]:
    """Leave little room in the data directory, so that nobody is in trouble yet."""
    filler = stack.data_dir / "filler"
    room = os.statvfs(stack.data_dir)
    url = stack.status()["url"]
    filler.write_bytes(b"\0" * (room.f_bavail * room.f_frsize - LEFT_MB * 1024 * 1024))
    try:
        answer = wait_for(lambda: httpx.get(f"{url}/readyz"), lambda said: "nearly full" in said.text, 30)
        return {"code": answer.status_code, "said": answer.json(), "status": stack.status()}
    finally:
        filler.unlink()


def told_ready(stack: RunningStack) -> list[str]:
    """The parts of which anybody who may be asked says that they are ready."""
    headers = {"Authorization": f"Bearer {stack.token}"}
    found = stack.status()
    items = httpx.get(f"{found['url']}/v1/components", headers=headers, timeout=10).json()["items"]
    return [part["name"] for part in (*found["components"], *items) if part["state"] == "ready"]


@contextmanager
def full(kafka: Path) -> Iterator[None]:
    """A file system without one free byte, freed at the end."""
    filler = kafka / "filler"
    fill(filler)
    try:
        yield
    finally:
        filler.unlink()


def fill(filler: Path) -> None:
    """Write until there is no space left on the device."""
    with filler.open("ab", buffering=0) as file:
        for chunk in (1024 * 1024, 4096, 1):
            try:
                while file.write(b"\0" * chunk) == chunk:
                    pass
            except OSError:
                continue


def hurt(stack: RunningStack, kafka: Path) -> dict[str, Any]:
    """Fill the disk under load, free it, and look at what was acknowledged."""
    keys, url = stack.data_dir / "keys", stack.status()["url"]
    token = issue(keys, "bot", ["agent"], "default", "default", "bot")
    acknowledged: dict[str, str] = {}
    with httpx.Client(base_url=url, timeout=30, headers={"Authorization": f"Bearer {token}"}) as client:
        client.post("/v1/executions", json={"execution_id": "run", "agent": "bot"}).raise_for_status()
        for number in range(BEFORE_CALLS):
            assert propose(client, f"before-{number}", acknowledged)
        with full(kafka):
            attempts = 0
            while propose(client, f"during-{attempts}", acknowledged):
                attempts += 1
                assert attempts < ATTEMPTS_MAX, "the disk never filled"
            wait_for(lambda: json.dumps(stack.status()), lambda said: "free space" in said, within_s=90)
            told = wait_for(lambda: stack.placet("status"), lambda said: "free space" in said.stdout)
        stack.wait_ready()
        found = {call_id: digest(client, call_id) for call_id in acknowledged}
        assert propose(client, "after", {})
    return {
        "acknowledged": acknowledged,
        "found": found,
        "status_exit": told.returncode,
        "status_said": told.stdout,
    }


def propose(client: httpx.Client, call_id: str, acknowledged: dict[str, str]) -> bool:
    """Propose a call; note its digest if it was acknowledged, and say whether it was."""
    body = {"call_id": call_id, "tool": "anything", "arguments": {"text": LARGE}}
    try:
        answer = client.post("/v1/executions/run/tool-calls?wait=0", json=body)
    except httpx.TransportError:
        return False
    decided = answer.status_code in (200, 202) and answer.json()["status"] == "held"
    if decided:
        acknowledged[call_id] = answer.json()["digest"]
    return decided


def digest(client: httpx.Client, call_id: str) -> str:
    """The digest of a call as it is now; empty when it is not there."""
    answer = client.get(f"/v1/executions/run/tool-calls/{call_id}")
    return str(answer.json().get("digest", ""))


if __name__ == "__main__":
    (main_whole if sys.argv[2:] == ["whole"] else main)(Path(sys.argv[1]))
