"""CONTRIBUTING names every file that a new command, route, table or processor touches, and no other.

So the recipes stay true and short: each has an example that exists, and the files of the example are compared.
"""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.house.sources import ROOT

CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
ROW = re.compile(r"^\| `([^`]+)` \|", re.M)
EXAMPLE = re.compile(r"such as .*?\n\n", re.S)
GENERATED = {"docs/columns.md"}


def recipe(heading: str) -> str:
    return CONTRIBUTING.split(f"\n## {heading}\n")[1].split("\n## ")[0]


def listed(heading: str) -> list[str]:
    return ROW.findall(recipe(heading))


def examples(heading: str) -> list[str]:
    example = EXAMPLE.search(recipe(heading))
    assert example is not None
    return re.findall(r"`(\w+)`", example[0])


def files_with(words: list[str], *paths: str) -> set[str]:
    """The files that name one of the words, as a whole word."""
    wanted = [argument for word in words for argument in ("-e", word)]
    command = ["git", "grep", "-lwI", "--untracked", *wanted, "--", *(paths or (".", ":!CONTRIBUTING.md"))]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return set(told.stdout.split())


# With schemas, golden bytes, generated pages and tests.
@pytest.mark.parametrize(
    ("heading", "most"),
    [
        ("A new command", 12),
        ("A new route that reads", 5),
        ("A new table of the views", 4),
        ("A new processor", 6),
    ],
)
def test_recipe_takes_no_more_files(heading: str, most: int) -> None:
    assert 0 < len(listed(heading)) <= most


@pytest.mark.parametrize("heading", ["A new command", "A new route that reads", "A new table of the views"])
def test_recipe_lists_the_files_of_its_example(heading: str) -> None:
    assert set(listed(heading)) - GENERATED == files_with(examples(heading))


def test_recipe_of_a_table_lists_its_page() -> None:
    assert "\n## evidence\n" in (ROOT / "docs" / "columns.md").read_text("utf-8")


def test_recipe_of_a_processor_lists_what_declares_its_role() -> None:
    rows = listed("A new processor")
    (role,) = examples("A new processor")
    (own,) = (row for row in rows if row.startswith("services/"))
    # As a string of Python, as a key or a name of YAML, and as a row of a table.
    declared = rf'"{role}"|^ *{role}:|name: {role}$|^\| `{role}` \|'
    command = [
        "git",
        "grep",
        "-lEI",
        "--untracked",
        declared,
        "--",
        ".",
        f":!{own}",
        ":!tests",
        ":!CONTRIBUTING.md",
    ]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert set(rows) - {own, "tests/processors/notifications"} == set(told.stdout.split())


def test_every_path_that_is_named_exists() -> None:
    named = re.findall(
        r"`((?:schemas|services|log|projections|gateway|ops|sdk|tests|docs)/[\w./-]+)`", CONTRIBUTING
    )
    assert len(named) > 20
    missing = [name for name in named if not (ROOT / name).exists()]
    assert missing == []
