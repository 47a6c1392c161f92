"""CONTRIBUTING names every file that a word stands in, and no other; so the recipe stays true and short."""

from __future__ import annotations

import re
import subprocess

from tests.house.sources import ROOT

# With its schemas, its golden bytes and its tests.
MOST_FILES = 12
WORDS = re.compile(r"such as `(\w+)` and `(\w+)`")
ROW = re.compile(r"^\| `([^`]+)` \|", re.M)


def recipe() -> str:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    return text.split("\n## A new word")[1].split("\n## ")[0]


def listed() -> list[str]:
    return ROW.findall(recipe())


def found() -> set[str]:
    example = WORDS.search(recipe())
    assert example is not None
    words = [argument for word in example.groups() for argument in ("-e", word)]
    wanted = ["git", "grep", "-lwI", "--untracked", *words, "--", ".", ":!CONTRIBUTING.md"]
    told = subprocess.run(wanted, cwd=ROOT, capture_output=True, text=True, check=True)
    return set(told.stdout.split())


def test_recipe_lists_the_files_of_a_word() -> None:
    assert set(listed()) == found()


def test_word_takes_no_more_files() -> None:
    assert len(listed()) <= MOST_FILES


def test_every_path_that_is_named_exists() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    named = re.findall(r"`((?:schemas|services|log|projections|gateway|ops|sdk|tests|docs)/[\w./-]+)`", text)
    assert len(named) > 20
    missing = [name for name in named if not (ROOT / name).exists()]
    assert missing == []
