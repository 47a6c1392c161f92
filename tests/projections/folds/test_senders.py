"""Who had written to the agent when it asked stands in the rows, as the decider has it."""

from __future__ import annotations

from projections.folds.rows import json_value
from projections.queries.history import fold_all
from tests.domain.steps import TESSA, decided, held, started
from tests.domain.test_senders import asked, conversing
from tests.domain.test_turns import sent
from tests.domain.world import OLGA, RITA, the


def test_rows_name_those_who_had_written_before_it_was_asked() -> None:
    world = conversing(OLGA, RITA)
    question, call = asked(world), held(world)
    sent(world, "later", by=TESSA)
    edited = the(decided(world, call, "edit", RITA, edited_arguments='{"amount":7}'), "ToolCallProposed")
    rows, state = fold_all(world.events), world.state()

    assert rows.execution is not None
    assert json_value(rows.execution["senders"]) == ["olga", "rita", "tessa"] == list(state.senders)
    before = [rows.holds[question.hold_id]["senders"], rows.calls[edited.call_id]["senders"]]
    assert [json_value(text) for text in before] == [["olga", "rita"]] * 2
    assert rows.holds[call.hold_id]["senders"] == rows.calls[edited.call_id]["senders"]


def test_rows_of_a_run_to_which_nobody_has_written_name_nobody() -> None:
    world = started()
    hold = held(world)
    rows = fold_all(world.events)
    assert rows.holds[hold.hold_id]["senders"] is rows.calls["c"]["senders"] is None
