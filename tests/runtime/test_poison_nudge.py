"""A nudge that only asks for the time is given up as any other command, and all who read the log cope with that."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ops.checker import check, read_log
from placet.audit.verify import verify_bundle
from projections.store.urls import open_view
from projections.tables.answers import ANSWERS
from projections.tables.audit import AUDIT_ENTRIES, AUDIT_TREES
from projections.tables.executions import EXECUTIONS
from projections.tables.log import SKIPPED_RECORDS
from schemas import commands as k
from schemas.audit import TreeHead, sign_head
from schemas.events.executions import CommandAbandoned
from schemas.record import Event, RawRecord
from services.domain.execution import execution
from services.processors.fold import PartitionFold
from services.runtime.rounds import ABANDON_AFTER_DEATHS
from services.runtime.trial import ForkedTrial
from tests.gateway.facts import new_live
from tests.projections.filling import Filler
from tests.projections.histories import LogBuilder
from tests.runtime.lab import Lab, types
from tests.sdk.audit_bundles import KEY, KEYS, Trail, record_at, root_of, write

CLOCK = b"placet/clock/0"


@pytest.fixture
async def given_up(memory_lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """A log on which a decider gave up its question for the time, and went on."""
    lab, decide = memory_lab, execution.decide

    def dies(state: Any, command: Any, ctx: Any) -> Any:
        if isinstance(command, k.ExpireDue) and ctx.key.encode() == CLOCK:
            raise RuntimeError("this command kills its writer")
        return decide(state, command, ctx)

    monkeypatch.setattr(execution, "decide", dies)
    await lab.start_worker("one", trial=ForkedTrial())
    await lab.ask("x", k.StartExecution(agent="bot"))
    # What was given up once is answered when another writer asks again.
    await lab.workers[0].stop()
    await lab.start_worker("two", trial=ForkedTrial())
    await lab.ask("x", k.CompleteExecution())
    await lab.workers[1].stop()
    return lab


async def test_case_25_question_for_the_time_that_is_given_up_leaves_one_event(given_up: Lab) -> None:
    (event,) = await of_clock(given_up)

    assert isinstance(event.body, CommandAbandoned)
    assert (event.body.command, event.body.attempts) == ("ExpireDue", ABANDON_AFTER_DEATHS)
    assert (event.meta.tenant, event.meta.version) == ("placet", 1)
    assert check(await read_log(given_up.log), topics=given_up.log.topics) == []


async def test_case_25_views_show_a_nudge_that_was_given_up_as_an_act_and_no_execution(
    given_up: Lab, tmp_path: Path
) -> None:
    log = LogBuilder(1)
    log.records = [await given_up.raws(given_up.events_tp("x"))]
    at_once, one_by_one = (Filler(open_view(f"sqlite:///{tmp_path}/{name}.db")) for name in "ab")
    at_once.fill(log)
    one_by_one.fill(log, step=1)

    assert at_once.everything() == one_by_one.everything()
    assert at_once.rows(SKIPPED_RECORDS) == []
    assert [row["execution_id"] for row in at_once.rows(EXECUTIONS)] == ["x"]
    (act,) = [row for row in at_once.rows(AUDIT_ENTRIES) if row["tenant"] == "placet"]
    assert (act["action"], act["subject"], act["project"]) == (
        "expire_due_abandoned",
        "placet:timer",
        "clock",
    )
    assert {row["code"] for row in at_once.rows(ANSWERS) if row["tenant"] == "placet"} == {"unavailable"}
    assert {row["tenant"] for row in at_once.rows(AUDIT_TREES)} == {"acme", "placet"}
    at_once.store.close()
    one_by_one.store.close()


async def test_case_25_gateway_and_trust_read_on_after_a_nudge_that_was_given_up(given_up: Lab) -> None:
    tp = given_up.events_tp("x")
    facts, raws = await given_up.facts(tp), await given_up.raws(tp)
    live, _ = new_live()
    live.take(1, facts, raws[-1].offset + 1)
    trust = PartitionFold(0, "topic")
    for raw in raws:
        trust.apply(raw)

    assert live.read_through[1] == raws[-1].offset + 1
    assert live.cache.executions.get(CLOCK) is None
    assert live.cache.executions.get(given_up.key_of("x")) is not None
    assert trust.parts == []


async def test_case_25_trail_with_a_nudge_that_was_given_up_is_verified_offline(
    given_up: Lab, tmp_path: Path
) -> None:
    offset = (await of_clock(given_up))[0].offset
    records: list[RawRecord] = [
        raw._replace(partition=3)
        for raw in await given_up.raws(given_up.events_tp("x"))
        if raw.offset == offset
    ]
    definitions = [record_at(0, "definitions")]
    trees = [
        TreeHead("executions", 3, offset, 1, root_of("executions", records)),
        TreeHead("definitions", 0, definitions[0].offset, 1, root_of("definitions", definitions)),
    ]
    head = sign_head(KEY, "placet", "2026-01-01T00:00:00.000Z", None, trees)
    bundle = write(tmp_path / "bundle", Trail(records, [head]))
    about = json.loads(bundle.about_file.read_text())
    bundle.about_file.write_text(json.dumps(about | {"tenant": "placet"}))
    report = verify_bundle(bundle, KEYS)

    assert report.is_verified, report.findings


async def of_clock(lab: Lab) -> list[Event]:
    facts = await lab.facts(lab.events_tp("x"))
    assert types([event for event in facts if event.key == CLOCK]) == ["CommandAbandoned"]
    return [event for event in facts if event.key == CLOCK]
