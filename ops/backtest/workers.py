"""A backtest by several processes: each replays some partitions, and the calling one adds up what they find."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass

from log.places import TopicPartition
from log.shares import shares
from ops.backtest.found import Found
from ops.backtest.run import Plan, Progress, Question, Told, read_history, replayed
from ops.log_workers import Teller, opened_log, run_by


@dataclass(frozen=True, slots=True)
class Job:
    """What one worker replays, of which log."""

    settings: Mapping[str, str]
    question: Question
    ends: Mapping[TopicPartition, int]


def backtest_by(processes: int, settings: Mapping[str, str], plan: Plan, told: Told) -> Found:
    """As `replayed_all`, by so many processes (see `run_by`).

    Raises:
        OpsError: the log cannot be read.
    """
    progress, parts = Progress(told, plan.records), dict[int, Found]()

    def take(content: bytes) -> None:
        # From a process that this one has started, over a pipe of their own.
        number, part = pickle.loads(content)  # noqa: S301
        parts[number] = part

    divided = shares(list(plan.ends.items()), processes, lambda one: one[1])
    run_by(_replay, [Job(settings, plan.question, dict(share)) for share in divided], take, progress.go_on)
    found = plan.found()
    # In the order of the partitions, as one process finds it.
    for number in sorted(parts):
        found.add(parts[number])
    return found


async def _replay(job: Job, teller: Teller) -> None:
    async with opened_log(job.settings) as log:
        plan = Plan(job.question, await read_history(log, job.question.signatures), job.ends)
        for tp in job.ends:
            found = await replayed(log, plan, tp, teller.moved)
            teller.found(pickle.dumps((tp.partition, found)))
