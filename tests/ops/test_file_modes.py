"""What an installation writes is for its owner alone, and no secret stands in an argument list."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from ops.file_modes import keep_private, without_secrets

OPTIONS = {"--database-url": "DATABASE_URL", "--audit-webhook": "PLACET_AUDIT_WEBHOOK"}


@pytest.fixture(autouse=True)
def _umask_of_before() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def modes(root: Path) -> dict[str, int]:
    """Permission bits of a directory and all that is in it, by relative path."""
    found = (root, *root.rglob("*"))
    return {str(path.relative_to(root)): stat.S_IMODE(path.lstat().st_mode) for path in found}


def test_case_40_directory_of_an_earlier_version_is_tightened(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("not ours")
    root = tmp_path / "data"
    (root / "kafka" / "data").mkdir(parents=True)
    (root / "kafka" / "data" / "0.log").write_text("the truth")
    (root / "placet.json").write_text("postgresql://placet:secret@db/placet")
    (root / "link").symlink_to(outside)
    keep_private(root)
    found = modes(root)
    assert found.pop("link")
    assert found == {
        ".": 0o700,
        "kafka": 0o700,
        "kafka/data": 0o700,
        "kafka/data/0.log": 0o600,
        "placet.json": 0o600,
    }
    assert stat.S_IMODE(outside.stat().st_mode) == 0o644


def test_case_40_files_made_later_are_private_too(tmp_path: Path) -> None:
    keep_private(tmp_path / "new" / "data")
    (tmp_path / "new" / "data" / "views.sqlite").write_text("rows")
    assert modes(tmp_path / "new" / "data") == {".": 0o700, "views.sqlite": 0o600}


@pytest.mark.parametrize(
    ("given", "left", "moved"),
    [
        (
            ["placet", "up", "--database-url", "postgresql://u:pw@db/placet", "--port", "0"],
            ("placet", "up", "--port", "0"),
            {"DATABASE_URL": "postgresql://u:pw@db/placet"},
        ),
        (
            ["placet", "up", "--audit-webhook=https://hooks/heads?key=k"],
            ("placet", "up"),
            {"PLACET_AUDIT_WEBHOOK": "https://hooks/heads?key=k"},
        ),
        (["placet", "up", "--database-url", "sqlite:///v"], None, {}),
        (["placet", "up", "--database-url=sqlite:///v"], None, {}),
        (["placet", "up", "--database-url"], ("placet", "up", "--database-url", ""), {}),
    ],
)
def test_case_40_secret_on_the_command_line_moves_to_the_environment(
    given: list[str], left: tuple[str, ...] | None, moved: dict[str, str]
) -> None:
    assert without_secrets(given, OPTIONS) == (tuple(given) if left is None else left, moved)
