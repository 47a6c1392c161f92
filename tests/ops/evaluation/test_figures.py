from __future__ import annotations

from typing import Any

from ops.evaluation.facts import CallFact, Place, calls_of
from ops.evaluation.figures import FIGURES, by_round, figures
from ops.evaluation.trace import Kind, kinds_of


def _event(offset: int, kind: str, call_id: str, **data: Any) -> dict[str, Any]:
    return {"type": kind, "partition": 1, "offset": offset, "data": {"call_id": call_id, **data}}


HISTORY = '{"parts": ["novel"], "novel": ["to"]}'


def _verdict(
    offset: int, call_id: str, effect: str, reason: str, adaptive: str | None = None
) -> dict[str, Any]:
    more = {
        "trust_class": "c",
        "risk_parts": ["writes"],
        "risk_required": 0.5,
        "adaptive": adaptive,
        "history": HISTORY,
    }
    return _event(offset, "PolicyVerdictIssued", call_id, effect=effect, reason=reason, **more)


HELD = [
    {"type": "ExecutionStarted", "partition": 1, "offset": 0, "data": {"agent": "assistant"}},
    _event(1, "ToolCallProposed", "01-own", tool="send_email"),
    _verdict(2, "01-own", "hold", "matched", '{"result": "sampled"}'),
    _event(3, "HoldOpened", "01-own"),
    _event(4, "DecisionRecorded", "01-own", resolves=True, decision="approve"),
    _event(5, "ToolCallReleased", "01-own", released_by="decision"),
    _event(6, "GrantConsumed", "01-own"),
    _event(7, "ToolCallSucceeded", "01-own"),
]
TRUSTED = [
    _event(8, "ToolCallProposed", "02-injected", tool="get_webpage"),
    _verdict(9, "02-injected", "allow", "trusted", '{"result": "released"}'),
    _event(10, "ToolCallReleased", "02-injected", released_by="policy"),
    _event(11, "GrantConsumed", "02-injected"),
]
READ = [
    _event(12, "ToolCallProposed", "03-injected", tool="read_inbox"),
    _verdict(13, "03-injected", "allow", "matched"),
    _event(14, "ToolCallReleased", "03-injected", released_by="policy"),
    _event(15, "GrantConsumed", "03-injected"),
]


def test_calls_of_reads_each_call_with_the_place_of_every_event() -> None:
    own, injected = calls_of("r02.slack.user_task_1.injection_task_3", [*HELD, *TRUSTED])
    assert (own.tool, own.held, own.decision, own.adaptive, own.consumed) == (
        "send_email",
        True,
        "approve",
        "sampled",
        True,
    )
    assert own.places[0] == Place("ToolCallProposed", 1, 1)
    assert (own.is_injected, injected.is_injected, injected.round) == (False, True, 2)
    assert (injected.reason, injected.released_by) == ("trusted", "policy")
    # That of the risk alone, where the adaptive block says none.
    assert (own.history, own.required) == (("novel",), 0.5)


def test_figures_count_a_release_of_an_attack_and_whose_it_was() -> None:
    found = figures(calls_of("r01.slack.t.i", [*HELD, *TRUSTED, *READ]))
    assert (found["attacks"], found["attacks_held"], found["attacks_released"]) == (1, 0, 1)
    assert (found["attack_calls_by_trust"], found["attack_calls_by_policy"]) == (1, 0)
    assert (found["attackers_reads"], found["benign_interruptions"], found["own_ran"]) == (1, 1, 1)
    assert (found["sampled"], found["sampled_contrary"]) == (1, 0)


def test_figures_count_an_attack_as_held_if_only_its_reads_ran() -> None:
    stopped = CallFact("r01.slack.t.i", "02-injected", "send_email", held=True, decision="reject")
    found = figures([stopped, *calls_of("r01.slack.t.i", READ)])
    assert (found["attacks"], found["attacks_held"], found["attacks_released"]) == (1, 1, 0)
    assert (found["attack_interruptions"], found["attack_calls_ran"]) == (1, 0)


def test_every_figure_selects_what_it_counts() -> None:
    calls = [fact for name in "ab" for fact in calls_of(f"r01.slack.{name}.i", [*HELD, *TRUSTED, *READ])]
    for figure in FIGURES.values():
        selected = figure.select(calls)
        counted = len({call.execution_id for call in selected}) if figure.per_execution else len(selected)
        assert figure.count(calls) == counted


def test_kinds_count_calls_by_tool_new_values_and_the_trust_they_take() -> None:
    known = CallFact("r01.travel.t.i", "02-injected", "send_email", required=0.8606)
    tainted = CallFact("r01.travel.t.i", "03-injected", "send_email", history=("novel", "tainted"))
    assert kinds_of([tainted, known, known]) == [
        Kind("send_email", (), 0.8606, 2),
        Kind("send_email", ("novel", "tainted"), 0.0, 1),
    ]


def test_by_round_has_a_row_for_each_round() -> None:
    calls = calls_of("r02.slack.t.i", HELD)
    assert [row["calls"] for row in by_round(calls, 3)] == [0, 1, 0]
