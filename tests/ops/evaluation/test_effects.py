from __future__ import annotations

from ops.demo.suites import Office
from ops.demo.tools import EFFECTS as DEMO
from ops.evaluation.effects import EFFECTS, VISITS, definitions, has_effect


def test_effects_name_the_suites_tools_and_no_others(offices: dict[str, Office]) -> None:
    assert set(EFFECTS) == {name for office in offices.values() for name in office.functions}


def test_tools_said_to_read_change_nothing_when_they_run(offices: dict[str, Office]) -> None:
    changed = set()
    for office in offices.values():
        for task in office.user_tasks:
            job = office.job(task)
            for call in job.truth:
                before = job.environment.model_copy(deep=True)
                job.run(call)
                if not has_effect(call.tool) and job.environment != before:
                    changed.add(call.tool)
    assert changed == set()


def test_outputs_that_hold_an_attack_are_of_tools_published_as_open_world(offices: dict[str, Office]) -> None:
    closed = set()
    for office in offices.values():
        for task in office.user_tasks:
            job = office.job(task, office.attacks[0])
            closed |= {
                call.tool
                for call in job.truth
                if office.attacks_in(job.run(call)) and not EFFECTS[call.tool].outside
            }
    assert closed == set()


def test_what_reads_and_what_destroys_is_as_in_the_demo() -> None:
    differing = {
        name
        for name in DEMO
        if (DEMO[name].reads, DEMO[name].destroys) != (EFFECTS[name].reads, EFFECTS[name].destroys)
    }
    assert differing == set()


def test_visits_are_reads_that_count_as_effects() -> None:
    assert all(EFFECTS[name].reads and has_effect(name) for name in VISITS)


def test_definitions_carry_schema_and_hints(offices: dict[str, Office]) -> None:
    sent = definitions(offices["banking"].suite.tools)["send_money"]
    assert sent["inputSchema"]["required"] == ["recipient", "amount", "subject", "date"]
    assert sent["annotations"] == {
        "readOnlyHint": False,
        "destructiveHint": False,
        "idempotentHint": False,
        "openWorldHint": True,
    }
