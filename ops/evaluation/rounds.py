"""What each round consists of: every user task clean and attacked, in an order and with values drawn by the seed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from ops.demo.suites import Job, Office
from ops.evaluation.varying import by_seed, varied

SUITES = ("workspace", "slack", "banking", "travel")
# Thresholds were chosen on the others; but the floor at high risk was set with the tools of banking in view, so that
# only travel is wholly held out.
HELD_OUT = ("banking", "travel")


@dataclass(frozen=True)
class Run:
    """One execution of a round: its id and what the agent does in it."""

    execution_id: str
    number: int
    job: Job


class Tasks:
    """The tasks of a suite, set up once for each pair of task and attack: agentdojo takes up to 150 ms for one.

    Args:
        office: the suite.
        seed: of order and values.
        most: the number of user tasks, spread over the suite; None for all.
    """

    def __init__(self, office: Office, seed: int, most: int | None = None) -> None:
        self.office = office
        self._seed = seed
        self._jobs: dict[tuple[str, str], Job] = {}
        tasks = office.user_tasks
        count = len(tasks) if most is None else min(most, len(tasks))
        self._tasks = [tasks[place * len(tasks) // count] for place in range(count)]

    def round(self, number: int) -> Iterator[Run]:
        """The executions of round `number` (from 1); the same for each arm."""
        order = by_seed(self._seed, self.office.name, number)
        attacks = self.office.attacks
        turns = [(turn, is_attacked) for turn in range(len(self._tasks)) for is_attacked in (False, True)]
        order.shuffle(turns)
        for turn, is_attacked in turns:
            attack = attacks[(turn + number) % len(attacks)] if is_attacked else None
            yield self._run(number, self._tasks[turn], attack)

    def calls(self) -> int:
        """How many calls the tasks need in one round; attacks add theirs."""
        return 2 * sum(len(self._job(task, None).truth) for task in self._tasks)

    def _run(self, number: int, task: Any, attack: Any | None) -> Run:
        base = self._job(task, attack)
        random = by_seed(self._seed, number, base.name)
        environment = base.before.model_copy(deep=True)
        job = replace(base, environment=environment, truth=varied(base.truth, random), ran=[])
        return Run(f"r{number:02}.{base.name}", number, job)

    def _job(self, task: Any, attack: Any | None) -> Job:
        key = task.ID, attack.ID if attack else ""
        if key not in self._jobs:
            self._jobs[key] = self.office.job(task, attack)
        return self._jobs[key]
