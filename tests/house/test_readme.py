"""The lines of the README's "Use it" name files that are there, and that the server takes."""

import json
import re
from pathlib import Path

from schemas.tool_definition import tool_to_publish
from services.domain.policy.check import check_text

ROOT = Path(__file__).parents[2]
LINES = (ROOT / "README.md").read_text("utf-8")


def _named(command: str) -> list[Path]:
    return [ROOT / name for name in re.findall(rf"^    placet {command} (\S+)", LINES, re.MULTILINE)]


def test_tools_that_the_readme_publishes_are_taken() -> None:
    files = _named("tool put")
    assert files
    for file in files:
        definition = json.loads(file.read_text("utf-8"))
        assert tool_to_publish(definition["name"], definition)


def test_policies_that_the_readme_publishes_are_taken() -> None:
    files = _named("policy publish")
    assert files
    for file in files:
        _, problems = check_text(file.read_text("utf-8"))
        assert not [problem for problem in problems if problem.severity == "error"]


def test_definition_in_the_page_on_tools_is_the_one_that_ships() -> None:
    page = (ROOT / "docs" / "tools.md").read_text("utf-8")
    shown = re.findall(r"^```json\n(.*?)^```", page, re.MULTILINE | re.DOTALL)[0]
    assert shown == (ROOT / "examples" / "send_money.json").read_text("utf-8")
