"""Times as people type them."""

from datetime import UTC, datetime, timedelta

import pytest

from placet.cli.times import typed_time
from placet.parsing import parse_time


@pytest.mark.parametrize(
    ("text", "ago"),
    [
        ("30s", timedelta(seconds=30)),
        ("90m", timedelta(minutes=90)),
        ("24h", timedelta(hours=24)),
        ("7d", timedelta(days=7)),
        ("2w", timedelta(weeks=2)),
    ],
)
def test_time_ago_is_counted_from_now(text: str, ago: timedelta) -> None:
    before = datetime.now(UTC)
    found = parse_time(typed_time(text))

    assert before - ago <= found <= datetime.now(UTC) - ago


def test_day_begins_in_utc_and_a_time_stays_as_it_is() -> None:
    assert typed_time("2026-01-05") == "2026-01-05T00:00:00Z"
    assert typed_time("2026-01-05T12:00:00+02:00") == "2026-01-05T12:00:00+02:00"


@pytest.mark.parametrize(
    "text", ["yesterday", "11:45", "-1h", "1", "h", "1y", "2026-13-05", "2026-01-05T12:00:00"]
)
def test_anything_else_is_no_time(text: str) -> None:
    with pytest.raises(ValueError, match=r"isoformat|month|offset"):
        typed_time(text)


def test_time_before_the_first_year_is_an_error_of_its_own() -> None:
    with pytest.raises(OverflowError):
        typed_time("999999w")
