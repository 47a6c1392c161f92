"""Derived ids are plain uuid5 that any language makes; keys say what they are keys of."""

from __future__ import annotations

import re
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.ids import (
    CHOSEN_ID,
    NAMESPACE,
    definition_key,
    derived_id,
    event_id,
    execution_key,
    is_chosen_id,
    is_client_id,
    split_execution_key,
)
from tests.schemas.strategies import TEXT

CLIENT_IDS = st.from_regex(r"[A-Za-z0-9._:-]{1,128}", fullmatch=True)


@given(st.lists(TEXT | st.integers(), max_size=5))
def test_derived_id_of_any_parts_is_the_standards_uuid5(parts: list[str | int]) -> None:
    name = "\x1f".join(f"{len(str(part))}:{part}" for part in parts)
    assert derived_id(*parts) == str(uuid.uuid5(NAMESPACE, name))


@given(st.lists(TEXT, max_size=4), st.lists(TEXT, max_size=4))
def test_derived_id_of_other_parts_is_another(left: list[str], right: list[str]) -> None:
    assert (derived_id(*left) == derived_id(*right)) == (left == right)


@pytest.mark.parametrize(
    ("left", "right"),
    [(("a", "b"), ("ab",)), (("a\x1f1:b",), ("a", "b")), (("",), ()), (("1:a",), ("a",))],
)
def test_derived_id_of_parts_that_look_alike_differs(left: tuple[str, ...], right: tuple[str, ...]) -> None:
    assert derived_id(*left) != derived_id(*right)


def test_event_id_differs_by_command_term_and_index() -> None:
    ids = {event_id(c, t, i) for c in ("a", "b") for t in (1, 2) for i in (0, 1)}
    assert len(ids) == 8


@pytest.mark.parametrize("text", ["a", "A-Z.0:9_z", "x" * 128])
def test_client_id_of_the_alphabet_is_taken(text: str) -> None:
    assert is_client_id(text)


@pytest.mark.parametrize("text", ["", "x" * 129, "a/b", "a b", "a\n", "é", "٣", "a\x00"])
def test_client_id_outside_the_alphabet_is_refused(text: str) -> None:
    assert not is_client_id(text)


@given(CLIENT_IDS, CLIENT_IDS, CLIENT_IDS)
def test_execution_key_splits_into_what_it_was_made_of(tenant: str, project: str, execution: str) -> None:
    assert split_execution_key(execution_key(tenant, project, execution)) == (tenant, project, execution)


@pytest.mark.parametrize(
    "key", [b"", b"a/b", b"a/b/c/d", b"a//c", b"_log/3", b"a/b/\xff", b"a/b/c d", b"\xff\xfe/b/c"]
)
def test_split_of_another_key_is_an_error(key: bytes) -> None:
    with pytest.raises(ValueError, match=r"not an execution key|codec can't decode"):
        split_execution_key(key)


def test_definition_key_names_tenant_kind_and_name() -> None:
    assert definition_key("acme", "tool", "send_money") == b"acme/tool/send_money"


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        (".", False),
        ("..", False),
        ("...", True),
        (".a", True),
        ("..a", True),
        ("a..b", True),
        ("x" * 128, True),
        ("x" * 129, False),
        ("." * 128, True),
        ("." * 129, False),
        (".." + "a" * 127, False),
        ("", False),
        ("..\n", False),
    ],
)
def test_id_that_addresses_have_for_another_place_is_not_chosen(text: str, taken: bool) -> None:
    assert is_chosen_id(text) is taken
    assert (re.search(f"^{CHOSEN_ID}$", text) is not None and not text.endswith("\n")) is taken
