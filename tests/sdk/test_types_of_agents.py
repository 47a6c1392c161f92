"""What a type checker says of functions under `@placet.agent`: which are no agent's, as a user's program has them."""

from __future__ import annotations

import re
from pathlib import Path

from mypy import api

FUNCTIONS = """
import placet

@placet.agent("blocking")
def blocking(turn: placet.Turn) -> str | None: return turn.say("hello")
@placet.agent("asynchronous")
async def asynchronous(turn: placet.AsyncTurn) -> str: await turn.say("hello"); return ""
@placet.agent("silent")
def silent(turn: placet.Turn) -> None: return None
@placet.agent("untyped")
def untyped(turn): return "hello"  # type: ignore[no-untyped-def]

@placet.agent("number")  # wrong
def number(turn: placet.Turn) -> int: return 1
@placet.agent("two")  # wrong
def two(turn: placet.Turn, more: str) -> str: return ""
@placet.agent("takes-blocking")  # wrong
async def takes_blocking(turn: placet.Turn) -> str: return ""
@placet.agent("takes-async")  # wrong
def takes_async(turn: placet.AsyncTurn) -> str: return ""
@placet.agent("takes-text")  # wrong
def takes_text(turn: str) -> str: return ""
@placet.agent  # wrong
def nameless(turn: placet.Turn) -> str: return ""
"""


def test_type_checker_refuses_exactly_the_functions_that_are_no_agents(tmp_path: Path) -> None:
    program = tmp_path / "agents.py"
    program.write_text(FUNCTIONS)
    told, faults, _ = api.run(["--strict", "--cache-dir", str(tmp_path / "cache"), str(program)])
    assert faults == ""
    found = {int(line) for line in re.findall(r"agents\.py:(\d+): error:", told)}
    wrong = {number for number, line in enumerate(FUNCTIONS.splitlines(), 1) if line.endswith("# wrong")}
    assert found == wrong, told
