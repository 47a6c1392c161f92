"""Definitions are read beside the event loop: whoever writes one that takes long takes nobody else's time."""

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from subprocess import PIPE
from typing import Any

import pytest
import pytest_asyncio

from gateway.checking.definition_readers import WAITING_OF_A_SUBJECT_MAX, DefinitionReaders
from gateway.checking.reader_process import READER
from gateway.checking.worker import LENGTH_BYTES, READY
from gateway.problems import Problem
from tests.gateway.conftest import Caller, Doors

CLASS = "[" + "".join(f"{chr(0x4E00 + 3 * n)}-{chr(0x4E01 + 3 * n)}" for n in range(2000)) + "]"
TEXT = "policy: p\nrules:\n" + "".join(
    f"  - {{id: r{n}, when: 'args.a == {n}.0', then: allow}}\n" for n in range(450)
)
OLGA, ANNA, OTHER = ("acme", "olga"), ("acme", "anna"), ("other", "otto")
QUESTION = {"name": "p", "given": TEXT, "project": "*", "policies": [], "tools": []}


@pytest_asyncio.fixture
async def readers() -> AsyncIterator[DefinitionReaders]:
    found = DefinitionReaders()
    yield found
    await found.close()


async def test_text_of_a_definition_is_canonical(readers: DefinitionReaders) -> None:
    text = await readers.text_of(OLGA, "tool", "x", {"inputSchema": {"type": "object"}})

    assert text == '{"inputSchema":{"type":"object"},"name":"x"}'


async def test_policy_is_read_by_the_engine_with_all_its_problems_beside_what_is_in_force(
    readers: DefinitionReaders,
) -> None:
    broken = "policy: p\nrules: [{id: a, then: maybe, when: args.x >}]"
    other = {"document": '{"policy":"q","rules":[{"id":"b","then":"deny"}]}', "version": 3, "project": "*"}

    wrong = await readers.policy(OLGA, {**QUESTION, "given": broken}, publishes=False)
    right = await readers.policy(
        OLGA, {**QUESTION, "given": "policy: p\nscope: {agent: x}", "policies": [other]}, publishes=False
    )

    assert [problem["path"] for problem in wrong.problems] == ["rules[0].then", "rules[0].when"]
    assert (wrong.text, right.text) == (None, '{"policy":"p","scope":{"agent":"x"}}')
    assert [problem["message"] for problem in right.problems] == [
        "`p` names the agent and wins as a whole: rule b of `q` never applies to x"
    ]


def process_ids(readers: DefinitionReaders) -> tuple[int | None, int | None]:
    """The present processes for publishing and checking; None before the first definition."""
    publishing, checking = (queue.reader._process for queue in (readers._publishing, readers._checking))
    return None if publishing is None else publishing.pid, None if checking is None else checking.pid


async def test_text_of_what_is_wrong_says_where(readers: DefinitionReaders) -> None:
    with pytest.raises(Problem) as refused:
        await readers.text_of(OLGA, "tool", "x", {"inputSchema": {"properties": {"a": {"pattern": "(?=a)"}}}})

    assert refused.value.fields["errors"][0]["path"] == "inputSchema.properties.a.pattern"
    assert "look-around" in refused.value.detail


async def test_case_31_what_takes_too_long_is_refused_and_the_next_is_read() -> None:
    readers = DefinitionReaders(budget_s=0.001)
    try:
        with pytest.raises(Problem, match="takes longer"):
            await readers.policy(OLGA, QUESTION, publishes=True)
        assert process_ids(readers) == (None, None)
    finally:
        await readers.close()


async def test_case_31_process_that_was_killed_is_started_again(readers: DefinitionReaders) -> None:
    await readers.text_of(OLGA, "tool", "x", {})
    first, _ = process_ids(readers)
    await readers.close()

    await readers.text_of(OLGA, "tool", "x", {})

    assert process_ids(readers)[0] not in (None, first)


async def test_case_31_who_goes_away_leaves_no_answer_to_the_next(readers: DefinitionReaders) -> None:
    going = asyncio.create_task(readers.policy(OLGA, QUESTION, publishes=True))
    while process_ids(readers)[0] is None:
        await asyncio.sleep(0)
    going.cancel()
    with pytest.raises(asyncio.CancelledError):
        await going

    assert await readers.text_of(OLGA, "tool", "x", {}) == '{"name":"x"}'


async def test_case_31_a_subject_waits_in_front_of_few(readers: DefinitionReaders) -> None:
    asked = [asyncio.create_task(readers.policy(OLGA, QUESTION, publishes=True)) for _ in range(6)]
    other = asyncio.create_task(readers.text_of(ANNA, "tool", "x", {}))
    found = await asyncio.gather(*asked, return_exceptions=True)

    refused = [one for one in found if isinstance(one, Problem)]
    assert [str(one.code) for one in refused] == ["quota"] * (6 - WAITING_OF_A_SUBJECT_MAX)
    assert await other == '{"name":"x"}'


async def test_case_31_what_is_checked_keeps_nothing_from_being_published(readers: DefinitionReaders) -> None:
    checkers = [(tenant, f"s{number}") for tenant in ("acme", "other") for number in range(3)]
    asked = [
        asyncio.create_task(readers.policy(owner, QUESTION, publishes=False))
        for owner in checkers
        for _ in range(WAITING_OF_A_SUBJECT_MAX)
    ]

    assert await readers.text_of(OLGA, "tool", "x", {}) == '{"name":"x"}'
    assert not all(one.done() for one in asked)
    assert all(read.text for read in await asyncio.gather(*asked))


@pytest.mark.parametrize("publishes", [True, False])
async def test_case_31_tenants_and_their_subjects_take_turns(
    readers: DefinitionReaders, publishes: bool
) -> None:
    read: list[tuple[str, str]] = []

    async def ask(owner: tuple[str, str]) -> None:
        await readers.policy(owner, QUESTION, publishes=publishes)
        read.append(owner)

    async with asyncio.TaskGroup() as group:
        for owner in (OLGA, OLGA, OLGA, ANNA, OTHER):
            group.create_task(ask(owner))
            await asyncio.sleep(0)

    assert read == [OLGA, OTHER, ANNA, OLGA, OLGA]


ATTACKS: dict[str, Callable[[], dict[str, Any]]] = {
    "a class of 2,000 ranges": lambda: {"properties": {"a": {"pattern": CLASS}}},
    "3,000 brackets": lambda: {"pattern": "(" * 3000 + ")" * 3000},
    "15,000 empty schemas and a look-ahead": lambda: {"allOf": [{}] * 15_000, "pattern": "(?=a)"},
    "patterns that are large together": lambda: {
        "allOf": [{"pattern": f"{n}\\pL{{90}}"} for n in range(2000)]
    },
}


@pytest.fixture
def ping(doors: Doors) -> Callable[[], float]:
    """How long another tenant's plain read takes, in seconds."""
    anna = doors.caller("anna", "reviewer", tenant="other")

    def once() -> float:
        start = time.monotonic()
        assert anna.get("/v1/holds").status_code == 200
        return time.monotonic() - start

    once()
    return once


@pytest.mark.parametrize("asked", ["whole", "half"])
def test_reader_whose_gateway_was_killed_ends_without_a_word(asked: str) -> None:
    command = [sys.executable, "-m", READER]
    reader = subprocess.Popen(command, stdin=PIPE, stdout=PIPE, stderr=PIPE)
    assert reader.stdin is not None
    assert reader.stdout is not None
    assert reader.stderr is not None
    with reader, reader.stdin as questions:
        assert reader.stdout.read(len(READY)) == READY
        reader.stdout.close()
        content = b'{"kind":"tool","name":"x","given":{"inputSchema":{"type":"object"}}}'
        header = len(content).to_bytes(LENGTH_BYTES, "big")
        questions.write(header + (content if asked == "whole" else content[:9]))
        questions.close()
        assert reader.stderr.read() == b""
    assert reader.returncode == 0


@pytest.mark.stack
@pytest.mark.broker
@pytest.mark.parametrize("attack", ATTACKS)
def test_case_31_schema_that_is_much_work_is_4xx_and_others_are_served(
    doors: Doors, ping: Callable[[], float], attack: str
) -> None:
    olga: Caller = doors.caller("olga", "operator")
    usual = max(ping() for _ in range(5))
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(olga.call, "PUT", "/v1/tools/attack", {"inputSchema": ATTACKS[attack]()})
        slowest = usual
        while not asked.done():
            slowest = max(slowest, ping())

    assert asked.result().status_code == 422, asked.result().text
    # A second, or on a busy machine several times what it takes by itself; it was 40 to 70 s.
    assert slowest < max(1, 5 * usual)


@pytest.mark.stack
@pytest.mark.broker
def test_case_31_large_policy_takes_nobody_elses_time(doors: Doors, ping: Callable[[], float]) -> None:
    olga = doors.caller("olga", "operator", tenant="large-policies")
    usual = max(ping() for _ in range(5))
    rule = "  - {{id: r{0}, match: {{tools: [t{0}]}}, when: 'args.a == {0}.0', then: allow}} # {1}\n"
    text = "policy: large\nrules:\n" + "".join(rule.format(n, "x" * 400) for n in range(480))
    with ThreadPoolExecutor(1) as threads:
        headers = {"Content-Type": "application/yaml"}
        asked = threads.submit(olga.call, "PUT", "/v1/policies/large", content=text, headers=headers)
        slowest = usual
        while not asked.done():
            slowest = max(slowest, ping())

    assert asked.result().status_code in (200, 202), asked.result().text
    # A second, or on a busy machine several times what it takes by itself; it was 40 to 70 s.
    assert slowest < max(1, 5 * usual)
