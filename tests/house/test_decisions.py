"""The index of decisions names each of them once, by its own title."""

from __future__ import annotations

import re

from tests.house.sources import ROOT

DECISIONS = ROOT / "docs" / "decisions"
LINE = re.compile(r"^\* \[(\d{4})\]\((\1-[a-z0-9-]+\.md)\) (.+)$", re.M)
TITLE = re.compile(r"^# 0*(\d+)\s*[·:.]\s*(.+)$", re.M)


def test_index_has_every_decision_once_by_its_title() -> None:
    listed = {file: title for _, file, title in LINE.findall((DECISIONS / "README.md").read_text("utf-8"))}
    titles = {}
    for path in DECISIONS.glob("0*.md"):
        found = TITLE.search(path.read_text("utf-8"))
        assert found is not None, f"{path.name} begins with its number and its title"
        assert int(found[1]) == int(path.name[:4])
        titles[path.name] = found[2]
    assert listed == titles


def test_index_lists_nothing_twice() -> None:
    numbers = [number for number, _, _ in LINE.findall((DECISIONS / "README.md").read_text("utf-8"))]
    assert len(numbers) == len(set(numbers))
