"""Locks hold versions and hashes only: where packages come from is each machine's own affair."""

from __future__ import annotations

import re

import pytest

from tests.house.sources import ROOT, name, tracked_files

# Written in pieces, so that this file does not find itself.
REGISTRIES = re.compile(
    "|".join(
        re.escape(host + end)
        for host, end in (
            ("pypi", ".org"),
            ("files.python", "hosted.org"),
            ("repo1.", "maven.org"),
            ("repo.maven", ".apache.org"),
            ("registry.", "npmjs.org"),
            ("registry.yarn", "pkg.com"),
        )
    )
)
MACHINE_PATHS = re.compile(
    "(?<![A-Za-z0-9_.])" + "/(wo" + "rk/main|wo" + "rk/shared|opt/whe" + "els|tmp/" + "w)(/|\\b)"
)
LOCKS = tuple(path for path in tracked_files() if path.suffix == ".lock")


def _lines(pattern: re.Pattern[str]) -> list[str]:
    found = []
    for path in tracked_files():
        text = path.read_bytes()
        if b"\0" in text:
            continue
        lines = text.decode("utf-8", "replace").splitlines()
        found += [f"{name(path)}:{number}" for number, line in enumerate(lines, 1) if pattern.search(line)]
    return found


def test_no_tracked_file_names_a_package_registry() -> None:
    found = _lines(REGISTRIES)
    assert found == [], "\n".join(found)


def test_no_tracked_file_names_a_path_of_one_machine() -> None:
    found = _lines(MACHINE_PATHS)
    assert found == [], "\n".join(found)


@pytest.mark.parametrize("lock", LOCKS, ids=name)
def test_lock_file_pins_every_package_by_version_and_hash(lock: object) -> None:
    text = (ROOT / str(lock)).read_text(encoding="utf-8")
    entries = re.split(r"\n(?=\S)", text.strip())
    assert entries
    for entry in entries:
        first, *rest = entry.replace(" \\", "").splitlines()
        assert re.fullmatch(r"[a-z0-9-]+==[^\s;]+( ; .+)?", first), first
        assert rest
        assert all(re.fullmatch(r"\s+--hash=sha256:[0-9a-f]{64}", line) for line in rest), entry
