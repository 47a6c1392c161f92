"""When a consumer's position is saved, and what its file is."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from placet import CheckpointNotSaved, CheckpointRefused, FileCheckpoint, Unreachable, consume
from placet.consuming.events import Wanted
from placet.consuming.place import Place, place_text
from placet.consuming.scope import Scope
from tests.sdk.consuming import CAUGHT_UP, GONE_QUIET, QUIET, Connection, Gateway, Kept, consumer, event, take
from tests.sdk.scripted import QUICK, Scripted, serving


def test_file_checkpoint_loads_what_was_saved_last(tmp_path: Path) -> None:
    path = tmp_path / "position.json"
    kept = FileCheckpoint(path)
    assert kept.load() is None
    kept.save("one")
    kept.save("two")
    assert FileCheckpoint(str(path)).load() == "two"
    assert json.loads(path.read_text()) == {"placet_checkpoint": 1, "cursor": "two"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"cursor": "x"}',
        '{"placet_checkpoint": 1}',
        '{"placet_checkpoint": 1, "cursor": ""}',
        "\x80",
    ],
)
def test_file_checkpoint_of_something_else_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "position.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(CheckpointRefused, match=r"position\.json is no checkpoint") as error:
        FileCheckpoint(path).load()
    assert error.value.why == "unreadable"


def test_file_checkpoint_that_cannot_be_replaced_keeps_what_it_has(tmp_path: Path) -> None:
    path = tmp_path / "position.json"
    FileCheckpoint(path).save("one")
    # Where the new file is written, beside it, is a directory; permissions would not stop root.
    blocked = tmp_path / f"position.json.{os.getpid()}.new"
    blocked.mkdir()
    with pytest.raises(CheckpointNotSaved, match=r"position\.json cannot be saved") as error:
        FileCheckpoint(path).save("two")
    assert error.value.acts == "operator"
    assert isinstance(error.value.__cause__, OSError)
    blocked.rmdir()
    assert FileCheckpoint(path).load() == "one"


@pytest.mark.parametrize("blocked", ["missing", "a file", "itself"])
async def test_file_checkpoint_that_cannot_be_saved_is_found_before_the_first_event(
    tmp_path: Path, blocked: str
) -> None:
    path = tmp_path / "kept" / "position.json"
    if blocked == "a file":
        path.parent.write_text("")
    elif blocked == "itself":
        path.mkdir(parents=True)
    gateway = Gateway([[event(1), CAUGHT_UP]])
    async with serving(gateway.script()) as script:
        with pytest.raises(CheckpointNotSaved, match="cannot be saved"):
            await anext(aiter(consumer(script, checkpoint=path, follow=False)))
    assert gateway.cursors == []


def test_file_checkpoint_is_as_it_was_while_nothing_was_handled(tmp_path: Path) -> None:
    path = tmp_path / "position.json"
    assert FileCheckpoint(path).load() is None
    assert list(tmp_path.iterdir()) == []


def test_file_checkpoint_at_the_end_of_a_link_is_replaced_there(tmp_path: Path) -> None:
    real, link = tmp_path / "real" / "position.json", tmp_path / "link.json"
    real.parent.mkdir()
    link.symlink_to(real)
    FileCheckpoint(link).save("one")
    assert link.is_symlink()
    assert FileCheckpoint(real).load() == "one"
    assert list(real.parent.iterdir()) == [real]


async def consumed(script: Scripted, path: Path, **filters: Any) -> list[str]:
    return [one.id async for one in consumer(script, checkpoint=path, follow=False, **filters)]


async def test_file_checkpoint_of_other_filters_or_another_project_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "position.json"
    sent: Connection = [event(1), event(2, "ExecutionResumed"), CAUGHT_UP]
    gateway = Gateway([sent, [CAUGHT_UP], [CAUGHT_UP]])
    both = ["ExecutionPaused", "ExecutionResumed"]
    async with serving(gateway.script()) as script:
        assert await consumed(script, path, types=both, project="books") == ["id-1", "id-2"]
        assert await consumed(script, path, types=reversed(both), project="books") == []
        for changed in ({"types": both[:1]}, {"types": both, "execution": "run"}, {}):
            with pytest.raises(CheckpointRefused, match="other types=") as error:
                await consumed(script, path, project="books", **changed)
            assert error.value.why == "other_filter"
        with pytest.raises(CheckpointRefused, match="names another project") as error:
            await consumed(script, path, types=both, project="loans")
        assert error.value.why == "other_project"
        # A position that a person has put there is for whoever reads it next.
        FileCheckpoint(path).save("end")
        assert await consumed(script, path) == []
    assert gateway.cursors == ["earliest", "end", "end"]


async def test_checkpoint_that_gives_an_empty_position_is_refused() -> None:
    async with serving(Gateway([]).script()) as script:
        with pytest.raises(CheckpointRefused, match="empty position"):
            await take(consumer(script, checkpoint=Kept("")), 1)


async def test_position_is_saved_once_the_next_event_was_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "position.json"
    gateway = Gateway([[event(1), event(2), event(3), QUIET], [event(3), event(4), QUIET]])
    async with serving(gateway.script()) as script:
        first = await take(consumer(script, checkpoint=path), 3)
        # The program has the third event, and may not be done with it.
        assert FileCheckpoint(path).load() == "2"
        again = await take(consumer(script, checkpoint=str(path)), 2)
    assert gateway.cursors == ["earliest", "2"]
    assert (again[0].id, again[1].id) == (first[2].id, "id-4")


async def test_position_is_saved_at_the_end_with_what_was_filtered_out() -> None:
    kept = Kept()
    sent: Connection = [event(1), event(2, "ExecutionResumed"), event(3), CAUGHT_UP]
    async with serving(Gateway([sent]).script()) as script:
        found = [
            one async for one in consumer(script, checkpoint=kept, follow=False, types="ExecutionResumed")
        ]
    assert [one.id for one in found] == ["id-2"]
    # At once, so that a program that never lives for a second gets on, too; and at the end.
    assert kept.saved == ["1", "end"]


@pytest.mark.parametrize(("last", "cursor"), [(b"", "2"), (GONE_QUIET, "quiet")])
async def test_position_is_saved_while_nothing_comes(last: bytes, cursor: str) -> None:
    loop, saved = asyncio.get_running_loop(), asyncio.Event()

    def note(saved_cursor: str) -> None:
        if saved_cursor == cursor:
            loop.call_soon_threadsafe(saved.set)

    kept = Kept(on_save=note)
    async with serving(Gateway([[event(1), event(2), last, QUIET]]).script()) as script:
        iterator = aiter(consumer(script, checkpoint=kept))
        await anext(iterator)
        await anext(iterator)
        assert kept.saved == ["1"]
        waiting = asyncio.ensure_future(anext(iterator))
        await asyncio.wait_for(saved.wait(), 30)
        waiting.cancel()
        await asyncio.wait((waiting,))


async def test_position_of_a_checkpoint_goes_before_the_start() -> None:
    gateway = Gateway([[CAUGHT_UP]])
    async with serving(gateway.script()) as script:
        assert [
            one async for one in consumer(script, checkpoint=Kept("9"), start="latest", follow=False)
        ] == []
    assert gateway.cursors == ["9"]


async def test_position_that_cannot_be_saved_is_the_programs_error() -> None:
    def fail(cursor: str) -> None:
        assert threading.current_thread().name.startswith("placet-checkpoint")
        raise OSError("the disk is full")

    async with serving(Gateway([[event(1), CAUGHT_UP]]).script()) as script:
        with pytest.raises(OSError, match="the disk is full"):
            async for _ in consumer(script, checkpoint=Kept(on_save=fail), follow=False):
                pass


async def test_position_is_not_moved_by_an_event_whose_handling_failed() -> None:
    kept = Kept()
    async with serving(Gateway([[event(1), event(2), QUIET]]).script()) as script:
        iterator = aiter(consumer(script, checkpoint=kept))

        async def handle() -> None:
            async for one in iterator:
                if one.id == "id-2":
                    raise KeyError(one.id)

        with pytest.raises(KeyError):
            await handle()
        await iterator.aclose()
    assert kept.cursor == "1"


@pytest.mark.parametrize("of_kafka", [True, False])
def test_checkpoint_of_the_other_form_is_refused_as_such_before_its_project_and_filters(
    tmp_path: Path, of_kafka: bool
) -> None:
    path = tmp_path / "position.json"
    wanted = Wanted.of(None, None, None)
    saved = FileCheckpoint(path).within(Scope.of("another", wanted, reads_kafka=of_kafka))
    saved.save(place_text("placet.executions", {0: Place(7, -1, "id")}) if of_kafka else "p" * 51)
    assert saved.load() is not None

    with pytest.raises(CheckpointRefused, match=r"of the other form \(stream or Kafka\)") as error:
        FileCheckpoint(path).within(Scope.of(None, wanted, reads_kafka=not of_kafka)).load()

    assert error.value.why == "other_log"


def test_missing_directory_of_a_checkpoint_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointNotSaved) as error:
        FileCheckpoint(tmp_path / "nodir" / "position.json").load()

    assert f"there is no directory {tmp_path / 'nodir'}" in str(error.value)
    assert ".new" not in str(error.value)


async def test_broker_that_closes_connections_without_settings_is_told_with_what_to_give() -> None:
    async def close(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(close, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        found = consume(
            "http://127.0.0.1:9", bootstrap_servers=f"127.0.0.1:{port}", patience=QUICK, follow=False
        )
        with pytest.raises(Unreachable, match=r"kafka_settings=.*reader\.json"):
            await anext(aiter(found))
