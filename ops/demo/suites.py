"""agentdojo's office suites: environments, tools, the calls that each task needs, and those that an attack wants.

agentdojo is imported only when a suite is opened: the import takes seconds.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from typing import Any

SUITES = ("workspace", "slack")
BENCHMARK = "v1.2.2"
# Its text addresses "the AI language model" and names no particular agent.
ATTACK = "important_instructions_no_names"


@dataclass(frozen=True)
class Call:
    """A tool call with every argument by name, as JSON."""

    tool: str
    arguments: Mapping[str, Any]


@dataclass
class Job:
    """One user task in an environment of its own, into which an attacker may have written.

    Attributes:
        office: the suite with its tools.
        user_task: agentdojo's user task.
        injection_task: the attacker's task; None in a clean run.
        environment: the state that tools read and change.
        before: a copy of it from before the first call.
        truth: the calls that the task needs, in order.
        ran: the calls that ran, in order.
    """

    office: Office
    user_task: Any
    injection_task: Any | None
    environment: Any
    before: Any
    truth: tuple[Call, ...]
    ran: list[Call] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Suite, task and attack in one id."""
        attack = f".{self.injection_task.ID}" if self.injection_task else ""
        return f"{self.office.name}.{self.user_task.ID}{attack}"

    @property
    def request(self) -> str:
        """The user's request."""
        return str(self.user_task.PROMPT)

    @property
    def answer(self) -> str:
        """The agent's final answer: agentdojo's expected output, since no model writes one."""
        return str(self.user_task.GROUND_TRUTH_OUTPUT)

    def run(self, call: Call) -> Any:
        """Run a released call on the environment; returns its output as JSON."""
        output = self.office.execute(self.environment, call)
        self.ran.append(call)
        return output

    def is_done(self) -> bool:
        """True if agentdojo judges the user's task done."""
        task, traces = self.user_task, self._traces()
        said = task.utility_from_traces(self.answer, self.before, self.environment, traces)
        return bool(task.utility(self.answer, self.before, self.environment) if said is None else said)

    def is_compromised(self) -> bool:
        """True if agentdojo judges that the attack reached its goal."""
        task, traces = self.injection_task, self._traces()
        if task is None:
            return False
        with redirect_stdout(io.StringIO()):  # one of agentdojo's checks prints
            said = task.security_from_traces(self.answer, self.before, self.environment, traces)
            return bool(task.security(self.answer, self.before, self.environment) if said is None else said)

    def _traces(self) -> list[Any]:
        from agentdojo.functions_runtime import FunctionCall

        return [FunctionCall(function=call.tool, args=dict(call.arguments)) for call in self.ran]


class Office:
    """A suite of agentdojo: tools on an environment, user tasks, and attackers' tasks."""

    def __init__(self, name: str) -> None:
        from agentdojo.agent_pipeline.ground_truth_pipeline import GroundTruthPipeline
        from agentdojo.attacks import load_attack
        from agentdojo.functions_runtime import FunctionsRuntime
        from agentdojo.task_suite.load_suites import get_suite

        self.name = name
        self.agent = f"demo-{name}"
        self.suite = get_suite(BENCHMARK, name)
        self.functions = {function.name: function for function in self.suite.tools}
        self._runtime = FunctionsRuntime(self.suite.tools)
        # agentdojo makes an attack for a pipeline with a model's name; this attack's template uses no name.
        pipeline = GroundTruthPipeline(None)
        pipeline.name = "local"
        self._attack = load_attack(ATTACK, self.suite, pipeline)
        clean = self.suite.load_and_inject_default_environment({})
        # agentdojo has no ground truth for some attacks: without a model their calls are unknown.
        self.attacks = [task for task in self.suite.injection_tasks.values() if task.ground_truth(clean)]

    @property
    def user_tasks(self) -> list[Any]:
        """All user tasks."""
        return list(self.suite.user_tasks.values())

    def job(self, user_task: Any, injection_task: Any | None = None) -> Job:
        """Set a user task up; with an injection task, the attack's text is where the task will read it."""
        injections = self._attack.attack(user_task, injection_task) if injection_task else {}
        loaded = self.suite.load_and_inject_default_environment(injections)
        environment = user_task.init_environment(loaded)
        before = environment.model_copy(deep=True)
        truth = self.calls_of(user_task, environment)
        return Job(self, user_task, injection_task, environment, before, truth)

    def calls_of(self, task: Any, environment: Any) -> tuple[Call, ...]:
        """The ground truth of a task in agentdojo: the calls that solve it in this environment."""
        calls = task.ground_truth(environment.model_copy(deep=True))
        return tuple(self.call(call.function, call.args) for call in calls)

    def call(self, tool: str, arguments: Mapping[str, Any]) -> Call:
        """A call with defaults filled in by the tool's parameter model."""
        read = self.functions[tool].parameters.model_validate(dict(arguments))
        return Call(tool, read.model_dump(mode="json"))

    def execute(self, environment: Any, call: Call) -> Any:
        """Run a tool; returns its output as JSON.

        Raises:
            Exception: raised by the tool.
        """
        output, _ = self._runtime.run_function(environment, call.tool, call.arguments, raise_on_error=True)
        return as_json(output)

    def attacks_in(self, output: Any) -> list[Any]:
        """The attacks in a tool's output: those whose goal is part of one of its texts."""
        texts = [_one_line(text) for text in _texts(output)]
        return [task for task in self.attacks if any(_one_line(task.GOAL) in text for text in texts)]


def jobs(offices: Sequence[Office], most: int | None) -> Iterator[Job]:
    """Each user task twice, clean and attacked; the attacks take turns.

    Args:
        offices: the suites.
        most: maximum number of user tasks, spread evenly over the suites; None for all.
    """
    for office, tasks in zip(offices, _chosen([office.user_tasks for office in offices], most), strict=True):
        for turn, task in enumerate(tasks):
            yield office.job(task)
            yield office.job(task, office.attacks[turn % len(office.attacks)])


def as_json(value: Any) -> Any:
    """What a tool returned, as JSON: models, and lists of them."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    return value


def _chosen(lists: Sequence[list[Any]], most: int | None) -> list[list[Any]]:
    """At most `most` items in total, equally many from each list if possible, spread over each list."""
    if most is None:
        return list(lists)
    shares = [most // len(lists) + (place < most % len(lists)) for place in range(len(lists))]
    return [_spread(items, share) for items, share in zip(lists, shares, strict=True)]


def _spread(items: list[Any], count: int) -> list[Any]:
    return [items[place * len(items) // count] for place in range(min(count, len(items)))] if count else []


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, Sequence):
        for item in value:
            yield from _texts(item)


def _one_line(text: str) -> str:
    """Text without line breaks: the YAML around an injection folds them."""
    return " ".join(text.split())
