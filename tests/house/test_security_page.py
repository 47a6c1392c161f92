"""docs/security.md names a test for each promise: every one of them is there."""

from __future__ import annotations

import re

from tests.house.sources import ROOT

PAGE = ROOT / "docs" / "security.md"
_NAMED = re.compile(r"`(?:(tests/[\w/]+\.py))?::(test_\w+)`")


def test_every_test_that_the_page_names_is_there() -> None:
    missing, file = [], ""
    for found in _NAMED.finditer(PAGE.read_text(encoding="utf-8")):
        file = found.group(1) or file
        source = (ROOT / file).read_text(encoding="utf-8") if (ROOT / file).exists() else ""
        if f"def {found.group(2)}(" not in source:
            missing.append(f"{file}::{found.group(2)}")
    assert missing == []


def test_every_row_of_promises_names_a_test() -> None:
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    promises = [row for row in rows if not row.startswith("| promise")]

    assert len(promises) > 30
    assert [row for row in promises if "::test_" not in row] == []
