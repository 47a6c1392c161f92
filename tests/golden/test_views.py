"""The views that each version makes: a digest of one stands in the log, so another rendering is another version."""

from pathlib import Path

import pytest

from schemas.display.versions import SHOW_MESSAGE, version_for
from schemas.display.view import view_of
from tests.schemas.display.helds import HELDS

VIEWS = Path(__file__).parent / "views"
# A hold is shown in the versions up to the one in which it would open now.
EVERY = [
    (name, version)
    for name in sorted(HELDS)
    for version in range(1, version_for(HELDS[name].message) + 1)
    if HELDS[name].message or version not in SHOW_MESSAGE
]


@pytest.mark.parametrize(("name", "version"), EVERY)
def test_view_of_each_version_is_byte_for_byte_what_it_was(name: str, version: int) -> None:
    assert view_of(HELDS[name], version).text.encode() == (VIEWS / f"{name}.{version}.txt").read_bytes()


def test_every_golden_view_is_of_a_hold_that_is_still_shown() -> None:
    expected = {f"{name}.{version}.txt" for name, version in EVERY}
    assert {path.name for path in VIEWS.iterdir()} == expected


def write_new() -> None:
    """Write the views that are not there yet; one that is there is never written again."""
    for name, version in EVERY:
        path = VIEWS / f"{name}.{version}.txt"
        if not path.exists():
            path.write_bytes(view_of(HELDS[name], version).text.encode())


if __name__ == "__main__":
    write_new()
