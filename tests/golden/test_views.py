"""The views that version 1 makes: a digest of one stands in the log, so another rendering is another version."""

from pathlib import Path

import pytest

from schemas.display.view import view_of
from tests.schemas.display.helds import HELDS

VIEWS = Path(__file__).parent / "views"


@pytest.mark.parametrize("name", sorted(HELDS))
def test_view_of_version_1_is_byte_for_byte_what_it_was(name: str) -> None:
    assert view_of(HELDS[name]).text.encode() == (VIEWS / f"{name}.1.txt").read_bytes()


def test_every_golden_view_is_of_a_hold_that_is_still_shown() -> None:
    assert {path.name for path in VIEWS.iterdir()} == {f"{name}.1.txt" for name in HELDS}


def write_new() -> None:
    """Write the views that are not there yet; one that is there is never written again."""
    for name, held in HELDS.items():
        path = VIEWS / f"{name}.1.txt"
        if not path.exists():
            path.write_bytes(view_of(held).text.encode())


if __name__ == "__main__":
    write_new()
