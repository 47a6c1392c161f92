"""The examples of docs/consume.md, as they stand there, on a running stack."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from uuid import uuid4

import pytest

from tests.gateway.conftest import Doors
from tests.pages import Block

pytestmark = [pytest.mark.stack, pytest.mark.broker]


def decided(doors: Doors, tenant: str) -> None:
    """A call that a person rejects."""
    bot, mia = (
        doors.caller("bot", "agent", tenant=tenant, agent="bot"),
        doors.caller("mia", "reviewer", tenant=tenant),
    )
    call = bot.propose(bot.execution())
    word = {"decision": "reject", "digest": call["digest"], "feedback": "no"}
    assert mia.post(f"/v1/holds/{call['hold_id']}/decision", word).status_code == 200


async def test_pages_of_consume(
    doors: Doors, page_blocks: list[Block], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant = f"t{uuid4().hex[:8]}"
    doors.publish(tenant)
    (tmp_path / ".placet").symlink_to(doors.stack.data_dir)
    monkeypatch.chdir(tmp_path)
    names = {
        "TOKEN": doors.token("ana", "analyst", tenant=tenant),
        "KAFKA": doors.stack.status()["bootstrap_servers"],
    }
    learned: list[tuple[object, ...]] = []
    found: list[list[tuple[object, ...]]] = []
    for _ in range(2):
        await asyncio.to_thread(decided, doors, tenant)
        for block in page_blocks:
            learned.clear()
            await block.run(doors.url, learn=lambda *row: learned.append(row), **names)
            found.append(list(learned))
    stream, awaited, _, whole, again, _, _, rest = found
    assert awaited == stream
    assert [row[1] for row in (*stream, *again)] == ["DecisionRecorded"] * 2
    assert stream[0][0] != again[0][0]
    assert {row[0] for row in (*stream, *again)} <= {row[0] for row in (*whole, *rest)}
    assert not {row[0] for row in whole} & {row[0] for row in rest}
    rows = sqlite3.connect("learned.sqlite").execute("SELECT event_id, decision FROM learned").fetchall()
    assert rows == [(row[0], "reject") for row in (*stream, *again)]
