"""The names of an export's files."""

from __future__ import annotations

from urllib.parse import unquote

import pytest

from ops.export.layout import (
    KEY_BYTES_MAX,
    Format,
    day_name,
    day_of,
    is_staged_name,
    part_name,
    place,
    staged_name,
    tenant_key,
)


@pytest.mark.parametrize(
    ("at_ms", "day"),
    [
        (0, "1970-01-01"),
        (86_399_999, "1970-01-01"),
        (86_400_000, "1970-01-02"),
        (-1, "1969-12-31"),
        (1_760_000_000_000, "2025-10-09"),
        (-62_135_596_800_000, "0001-01-01"),
        (253_402_300_799_999, "9999-12-31"),
    ],
)
def test_day_is_that_of_the_time_in_utc(at_ms: int, day: str) -> None:
    assert day_name(day_of(at_ms)) == day


def test_place_has_tenant_and_day_in_hives_form() -> None:
    assert str(place("executions", "acme", 20_000)) == "events/tenant_key=acme/day=2024-10-04"
    assert str(place("definitions", "acme", 20_000)) == "definitions/tenant_key=acme/day=2024-10-04"


@pytest.mark.parametrize(
    ("tenant", "name"),
    [("a:b", "a%3Ab"), ("a/b", "a%2Fb"), ("..", ".."), ("é=", "%C3%A9%3D"), ("aB~%", "a%42%7E%25")],
)
def test_tenant_in_a_path_is_percent_encoded(tenant: str, name: str) -> None:
    assert place("executions", tenant, 0).parts == ("events", f"tenant_key={name}", "day=1970-01-01")


def test_part_is_named_by_its_first_record() -> None:
    assert part_name(3, 1200, Format.PARQUET) == "part-3-1200.parquet"
    assert part_name(0, 0, Format.JSONL) == "part-0-0.jsonl"


@pytest.mark.parametrize("tenant", [":" * 128, ":" * 127 + "a", "A" * 67, "a" * 201])
def test_key_of_a_long_name_is_cut_between_letters_and_ends_in_a_hash(tenant: str) -> None:
    beginning, _, end = tenant_key(tenant).partition("~")
    assert len(end) == 64
    assert len(beginning) + 65 in range(KEY_BYTES_MAX - 2, KEY_BYTES_MAX + 1)
    assert tenant.startswith(unquote(beginning))
    assert tenant_key(tenant) != tenant_key(tenant + "x")


def test_longest_key_without_a_hash_is_the_whole_name() -> None:
    assert tenant_key("a" * KEY_BYTES_MAX) == "a" * KEY_BYTES_MAX


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (staged_name("executions", part_name(3, 1200, Format.PARQUET)), True),
        (staged_name("definitions", part_name(0, 0, Format.JSONL)), True),
        ("part-3-1200.parquet", False),
        ("executions-part-3-1200.parquet.bak", False),
        ("my-work.csv", False),
    ],
)
def test_names_in_the_staging_folder_are_known_again(name: str, expected: bool) -> None:
    assert is_staged_name(name) is expected
