"""The views that each version makes: a digest of one stands in the log, so another rendering is another version."""

from pathlib import Path

import pytest

from schemas.display.versions import VERSION
from schemas.display.view import view_of
from tests.schemas.display.helds import HELDS

VIEWS = Path(__file__).parent / "views"
VERSIONS = range(1, VERSION + 1)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", sorted(HELDS))
def test_view_of_each_version_is_byte_for_byte_what_it_was(name: str, version: int) -> None:
    assert view_of(HELDS[name], version).text.encode() == (VIEWS / f"{name}.{version}.txt").read_bytes()


def test_every_golden_view_is_of_a_hold_that_is_still_shown() -> None:
    expected = {f"{name}.{version}.txt" for name in HELDS for version in VERSIONS}
    assert {path.name for path in VIEWS.iterdir()} == expected


def write_new() -> None:
    """Write the views that are not there yet; one that is there is never written again."""
    for name, held in HELDS.items():
        for version in VERSIONS:
            path = VIEWS / f"{name}.{version}.txt"
            if not path.exists():
                path.write_bytes(view_of(held, version).text.encode())


if __name__ == "__main__":
    write_new()
