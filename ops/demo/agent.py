"""The scripted agent: it makes the calls that its task needs, and obeys every text it reads, like a naive model.

No language model runs here. The script is agentdojo's ground truth of the user's task. If a tool's output
contains an attacker's text, the agent next makes the calls of agentdojo's ground truth of that attack, once.
The script does not know in advance whether its run is attacked.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ops.demo.passage import Passage, take
from ops.demo.suites import Call, Job
from placet import AsyncPlacet

OnPassage = Callable[[Passage], None]


@dataclass
class Script:
    """The agent's next calls: those of the user's task, preceded by those of the attacks that it has read."""

    job: Job
    obeyed: set[str] = field(default_factory=set)
    _next: deque[tuple[Call, bool]] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self._next.extend((call, False) for call in self.job.truth)

    def next(self) -> tuple[Call, bool] | None:
        """The next call, and whether an attacker's text asked for it; None at the end."""
        return self._next.popleft() if self._next else None

    def read(self, output: Any) -> None:
        """Read a tool's output and obey the attacks in it."""
        for attack in self.job.office.attacks_in(output):
            if attack.ID not in self.obeyed:
                self.obeyed.add(attack.ID)
                calls = self.job.office.calls_of(attack, self.job.environment)
                self._next.extendleft((call, True) for call in reversed(calls))


async def work(placet: AsyncPlacet, execution_id: str, job: Job, on_passage: OnPassage) -> list[Passage]:
    """Do one job as one execution; a call that is stopped is skipped, and the next one is tried."""
    script, passages = Script(job), []
    async with placet.execution(execution_id, request=job.request) as run:
        while (wanted := script.next()) is not None:
            passage = await take(placet, execution_id, *wanted, job.run)
            passages.append(passage)
            on_passage(passage)
            script.read(passage.output)
        run.result = job.answer
    return passages
