from __future__ import annotations

from pathlib import Path

import pytest

from host.json_files import read_json_file
from host.key_files import KeysUnreadable, load_public
from schemas.signed_from import SignedFromUnreadable, read_signed_from

DEEP = "[" * 100_000


def test_read_json_file_says_what_it_holds(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"a": [1]}')
    assert read_json_file(tmp_path / "a.json") == {"a": [1]}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "Expecting"),
        ("{", "Expecting"),
        (DEEP, "nested too deep"),
        ('{"a":' * 100_000, "nested too deep"),
    ],
    ids=["empty", "cut", "lists", "objects"],
)
def test_read_json_file_of_what_is_no_json_is_a_value_error(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(ValueError, match=said):
        read_json_file(tmp_path / "a.json")


def test_keys_and_seals_nested_without_end_are_told_by_their_file(tmp_path: Path) -> None:
    for name in ("gateways.json", "signed-from.json"):
        (tmp_path / name).write_text(DEEP)
    with pytest.raises(KeysUnreadable, match=r"gateways\.json is damaged"):
        load_public(tmp_path / "gateways.json")
    with pytest.raises(SignedFromUnreadable, match=r"signed-from\.json does not say"):
        read_signed_from(tmp_path / "signed-from.json")
