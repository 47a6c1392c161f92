"""docs/architecture.md says of every command which events it leads to."""

import re

import pytest

from schemas.commands import COMMANDS
from schemas.message import Message
from tests.house.sources import ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
SECTION = PAGE.split("## The events of each command", 1)[1].split("\n## ", 1)[0]
ROWS = re.findall(r"^\| (.*?) \| ", SECTION, re.MULTILINE)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.__name__)
def test_command_is_in_the_table_of_the_events_of_each_command(command: type[Message]) -> None:
    name = command.__name__
    is_of_a_hold = name.endswith("Hold") and name != "DecideHold"
    assert any(re.search(rf"\b{name}\b", row) for row in ROWS) or is_of_a_hold
    assert "every other command on a hold" in ROWS
