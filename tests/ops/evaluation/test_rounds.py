from __future__ import annotations

from collections import Counter

import pytest

from ops.demo.agent import Script
from ops.demo.suites import Call, Job, Office
from ops.evaluation.effects import EFFECTS, has_effect
from ops.evaluation.rounds import SUITES, Run, Tasks
from ops.evaluation.varying import FREE, by_seed, varied

MAIL = Call("send_email", {"recipients": ["a@b.c"], "subject": "Hi", "body": "", "cc": None})
MONEY = Call("send_money", {"recipient": "GB29", "amount": 100.0, "subject": "Rent", "date": "2022-01-31"})


def test_varied_changes_words_amounts_and_days_and_nobody_who_is_reached() -> None:
    mail, money = varied([MAIL, MONEY], by_seed("a seed"))
    assert mail.arguments["recipients"] == ["a@b.c"]
    assert mail.arguments["subject"].startswith("Hi (ref. ")
    assert (mail.arguments["body"], mail.arguments["cc"]) == ("", None)
    assert money.arguments["recipient"] == "GB29"
    assert 70 <= money.arguments["amount"] <= 130
    assert money.arguments["date"] in {"2022-01-31", *(f"2022-02-0{day}" for day in range(1, 7))}


def test_varied_is_the_same_for_the_same_seed_and_leaves_reads_alone() -> None:
    read = Call("search_emails", {"query": "rent", "subject": "Rent"})
    assert varied([read], by_seed(1)) == (read,)
    assert varied([MAIL, MONEY], by_seed(1)) == varied([MAIL, MONEY], by_seed(1))
    assert varied([MAIL, MONEY], by_seed(1)) != varied([MAIL, MONEY], by_seed(2))


@pytest.mark.parametrize("suite", SUITES)
def test_round_has_every_task_clean_and_attacked_and_rounds_take_turns_with_attacks(
    offices: dict[str, Office], suite: str
) -> None:
    tasks = Tasks(offices[suite], seed=1, most=3)
    first, second = list(tasks.round(1)), list(tasks.round(2))
    assert len(first) == len(second) == 6
    assert Counter(run.job.injection_task is None for run in first) == {True: 3, False: 3}
    assert len({run.execution_id for run in (*first, *second)}) == 12
    assert _attacks(first) != _attacks(second)
    again = list(Tasks(offices[suite], seed=1, most=3).round(1))
    assert [(run.execution_id, run.job.truth) for run in again] == [
        (run.execution_id, run.job.truth) for run in first
    ]


@pytest.mark.parametrize("suite", SUITES)
def test_varied_tasks_run_show_their_attack_and_need_no_call_with_an_effect_that_it_wants(
    offices: dict[str, Office], suite: str
) -> None:
    unseen, shared = [], []
    for run in Tasks(offices[suite], seed=7).round(1):
        injected = [call for call, is_injected in _driven(run.job) if is_injected]
        if bool(injected) != (run.job.injection_task is not None):
            unseen.append(run.execution_id)
        shared += [call for call in injected if has_effect(call.tool) and call in run.job.truth]
    assert (unseen, shared) == ([], [])


def test_free_arguments_are_of_tools_that_write(offices: dict[str, Office]) -> None:
    named = {
        name
        for office in offices.values()
        for tool, function in office.functions.items()
        if not EFFECTS[tool].reads
        for name in function.parameters.model_fields
    }
    assert named >= FREE - {"new_end_time"}


def _attacks(runs: list[Run]) -> list[str]:
    return sorted(run.job.name for run in runs if run.job.injection_task is not None)


def _driven(job: Job) -> list[tuple[Call, bool]]:
    """The calls of an agent whom nobody stops."""
    script, calls = Script(job), []
    while (wanted := script.next()) is not None:
        calls.append(wanted)
        script.read(job.run(wanted[0]))
    return calls
