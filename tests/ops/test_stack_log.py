"""A stack that was stopped: commands read its own log, and what keeps it from starting is mended."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sqlite3
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from gateway.identity.issuer import issue
from host.key_files import COPIES, DECIDERS
from log.completeness import check_complete
from ops import process
from ops.component import STARTING
from ops.config import DataDir, StackConfig, load_config, save_config
from ops.errors import UsageError
from ops.kafka.log_files import METADATA
from ops.locks import lock_directory, name_holder
from ops.log_ends import opened_log
from ops.options import UpOptions, settle
from ops.stack_log import reached
from ops.status import Stack, write_stack
from tests.servers.stack import PLACET, RunningStack, run_placet, running_stack, wait_for

pytestmark = [pytest.mark.stack, pytest.mark.broker, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a stack with one execution that was stopped."""
    directory = tmp_path_factory.mktemp("own") / "data"
    with running_stack(directory, "--partitions", "2") as stack:
        assert start(stack, "first") == 201
        wait_counted(stack, lambda claims: len(claims) == 2)
    return directory


@pytest.fixture
def own(stopped: Path, tmp_path: Path) -> Iterator[RunningStack]:
    """The same, as this test may change it."""
    shutil.copytree(stopped, tmp_path / "kept", symlinks=True)
    yield RunningStack(stopped)
    RunningStack(stopped).down()
    shutil.rmtree(stopped)
    (tmp_path / "kept").rename(stopped)


def up(stack: RunningStack, *arguments: str) -> tuple[int, str]:
    done = stack.placet("up", "--port", "0", "--detach", *arguments)
    return done.returncode, done.stderr


def bring_up(stack: RunningStack, *arguments: str) -> None:
    code, told = up(stack, *arguments)
    assert code == 0, told


def replay(stack: RunningStack) -> tuple[int, str]:
    done = stack.placet("replay")
    return done.returncode, done.stderr


def start(stack: RunningStack, execution_id: str) -> int:
    """Open an execution; the answer's status."""
    token = issue(stack.data_dir / "keys", "a", ["agent"], "default", "default", "a")
    request = urllib.request.Request(
        f"{stack.status()['url']}/v1/executions",
        json.dumps({"execution_id": execution_id, "agent": "a", "request": "r"}).encode(),
        {"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def wait_counted(stack: RunningStack, claims: Callable[[Mapping[int, int]], bool]) -> None:
    """Wait until the claims that trust has counted are such: those are held against the keys at a start."""
    config: StackConfig = load_config(DataDir(stack.data_dir).config)

    async def counted() -> Mapping[int, int]:
        async with opened_log(config) as log:
            return await check_complete(log)

    wait_for(lambda: asyncio.run(counted()), claims)


def executions(directory: Path) -> set[str]:
    with sqlite3.connect(f"file:{directory / 'views.sqlite'}?mode=ro", uri=True) as views:
        return {row[0] for row in views.execute("select execution_id from executions")}


def test_stack_whose_signatures_were_off_for_a_while_goes_on_with_them(own: RunningStack) -> None:
    bring_up(own, "--log-signatures", "off")
    assert start(own, "unsigned") == 201
    own.down()
    bring_up(own)
    assert start(own, "signed-again") == 201
    replayed = own.placet("replay")
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr
    own.down()
    assert {"first", "unsigned", "signed-again"} <= executions(own.data_dir)
    checked = own.placet("audit-log")
    assert checked.returncode == 0, checked.stdout
    assert "its Kafka is started for this command" in checked.stderr


def test_stack_starts_once_an_export_of_its_log_has_ended(own: RunningStack) -> None:
    held = lock_directory(own.data_dir)
    name_holder(held, "placet export")
    command = [str(PLACET), "up", "--data-dir", str(own.data_dir), "--port", "0", "--detach"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as starting:
        assert starting.stderr is not None
        assert f"placet export (process {os.getpid()}) reads the log" in starting.stderr.readline()
        os.close(held)
        assert starting.wait(280) == 0, starting.stderr.read()
    assert start(own, "after-the-export") == 201


def test_decider_whose_old_key_was_lost_with_its_copy_decides_nothing_anew(own: RunningStack) -> None:
    assert run_placet("keys", "rotate", "decider", "--data-dir", str(own.data_dir)).returncode == 0
    keys = own.data_dir / "keys"
    kept = (keys / DECIDERS).read_bytes()
    for name in (DECIDERS, COPIES):
        (keys / name).unlink()
    code, told = up(own)
    assert code == 3
    assert f"which {DECIDERS} does not list" in told
    (keys / DECIDERS).write_bytes(kept)
    (keys / COPIES).unlink()
    bring_up(own)
    assert start(own, "second") == 201
    wait_counted(own, lambda claims: min(claims.values()) > 0)
    own.down()
    # Once the new key has claimed, its claim alone would look well.
    rows = json.loads(kept)
    newest = list(rows)[-1]
    (keys / DECIDERS).write_text(json.dumps({newest: rows[newest]}))
    (keys / COPIES).unlink()
    code, told = up(own)
    assert code == 3
    assert "follows one that no longer counts" in told
    (keys / DECIDERS).write_bytes(kept)
    bring_up(own)
    assert start(own, "third") == 201


def test_views_ahead_of_the_log_are_rebuilt_while_the_stack_cannot_start(
    own: RunningStack, tmp_path: Path
) -> None:
    bring_up(own)
    assert start(own, "lost") == 201
    wait_for(lambda: executions(own.data_dir), lambda found: "lost" in found)
    own.down()
    shutil.rmtree(own.data_dir / "kafka" / "data")
    shutil.copytree(tmp_path / "kept" / "kafka" / "data", own.data_dir / "kafka" / "data")
    shutil.rmtree(own.data_dir / "audit" / "heads", ignore_errors=True)
    code, told = up(own)
    assert code == 3
    assert "placet replay --force" in told
    replayed = own.placet("replay", "--force")
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr
    assert executions(own.data_dir) == {"first"}
    bring_up(own)
    assert start(own, "after") == 201


def test_log_whose_kafka_lost_its_metadata_gets_no_empty_topics_and_goes_on_once_it_is_back(
    own: RunningStack, tmp_path: Path
) -> None:
    data, kept = own.data_dir / "kafka" / "data", tmp_path / "kept" / "kafka" / "data" / METADATA
    before = {path.name for path in data.glob("placet.*")}
    segment = data / METADATA / "00000000000000000000.log"
    os.truncate(segment, segment.stat().st_size // 2)
    for command in (up, up, replay):
        code, told = command(own)
        assert (code, "Kafka has lost its metadata" in told, "nothing is lost" in told) == (2, True, True), (
            told
        )
        assert {path.name.partition("-stray")[1] for path in data.glob("placet.*")} == {"-stray"}
    shutil.rmtree(data / METADATA)
    shutil.copytree(kept, data / METADATA)
    for path in data.glob("*-stray"):
        path.rename(data / path.name.rpartition(".")[0])
    assert {path.name for path in data.glob("placet.*")} == before
    code, told = up(own)
    assert code == 0, told
    assert start(own, "after") == 201
    assert replay(own)[0] == 0
    own.down()
    assert executions(own.data_dir) >= {"first", "after"}


def test_replay_of_a_stopped_stack_reads_nothing_of_a_copy_on_its_port(
    own: RunningStack, tmp_path: Path
) -> None:
    copy = RunningStack(tmp_path / "copy")
    shutil.copytree(own.data_dir, copy.data_dir, symlinks=True)
    refused = copy.placet("replay")
    assert (refused.returncode, "belongs to the stack in" in refused.stderr) == (2, True)
    assert up(copy)[0] == 0
    try:
        assert start(copy, "of-the-copy") == 201
        replayed = own.placet("replay")
        assert replayed.returncode == 0, replayed.stdout + replayed.stderr
        assert executions(own.data_dir) == {"first"}
    finally:
        copy.down()


def test_directory_that_another_process_holds_is_read_at_no_port(stopped: Path) -> None:
    directory = DataDir(stopped)
    config: StackConfig = load_config(directory.config)
    with (
        reached(directory, config, None, lambda _: None, "placet export"),
        pytest.raises(UsageError, match=rf"in use by placet export \(process {os.getpid()}\)"),
        reached(directory, config, None, lambda _: None, "placet export"),
    ):
        pass
    with reached(directory, config, "elsewhere:1", lambda _: None, "placet export") as given:
        assert given.bootstrap_servers == "elsewhere:1"


def test_stack_whose_kafka_is_still_starting_is_waited_for_or_stopped(tmp_path: Path) -> None:
    config = settle(UpOptions(tmp_path, port=0), "127.0.0.1:1")
    save_config(config)
    lock = lock_directory(tmp_path)
    name_holder(lock)
    pid = os.getpid()
    write_stack(config.directory, Stack(STARTING, pid, process.started_ticks(pid)))
    with (
        pytest.raises(UsageError, match=rf"is starting \(process {pid}\).*wait until placet status"),
        reached(config.directory, config, None, lambda _: None, "placet export"),
    ):
        pass
    os.close(lock)
