"""Whoever gets a part of the product gets its licence with it."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.house.sources import ROOT

TEXT = (ROOT / "LICENSE").read_bytes()


def test_client_has_a_copy_of_the_licence_as_it_is_built_by_itself() -> None:
    assert (ROOT / "sdk" / "LICENSE").read_bytes() == TEXT


@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_package_of_the_client_holds_the_licence(tmp_path: Path, kind: str) -> None:
    built = f"import hatchling.build as b; print(b.build_{kind}({str(tmp_path)!r}))"
    done = subprocess.run(
        [sys.executable, "-c", built],
        cwd=ROOT / "sdk",
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    package = tmp_path / done.stdout.split()[-1]
    if kind == "wheel":
        with zipfile.ZipFile(package) as wheel:
            (name,) = [name for name in wheel.namelist() if name.endswith("/LICENSE")]
            assert ".dist-info/" in name
            found = wheel.read(name)
    else:
        with tarfile.open(package) as archive:
            (name,) = [
                name for name in archive.getnames() if name.count("/") == 1 and name.endswith("/LICENSE")
            ]
            member = archive.extractfile(name)
            assert member is not None
            found = member.read()
    assert found == TEXT
