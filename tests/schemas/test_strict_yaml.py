import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.strict_yaml import MAX_CHARS, MalformedYaml, load_yaml


def test_load_yaml_plain_document_gives_json_types() -> None:
    text = 'a: 1\nb: [1.5, true, null, "x", word]\nc: {d: -2}\n'

    assert load_yaml(text) == {"a": 1, "b": [1.5, True, None, "x", "word"], "c": {"d": -2}}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("on", "on"),
        ("010", "010"),
        ("1:30", "1:30"),
        ("2026-01-01", "2026-01-01"),
        ("0x10", "0x10"),
    ],
)
def test_load_yaml_words_of_yaml_1_1_stay_text(text: str, value: Any) -> None:
    assert load_yaml(f"a: {text}") == {"a": value}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\na: 2", "appears twice"),
        ("a: {b: 1, b: 1}", "appears twice"),
        ("a: &x 1\nb: *x", "aliases"),
        ("<<: {a: 1}", "cannot be a key"),
        ("1: a", "cannot be a key"),
        ("? [a]\n: b", "cannot be a key"),
        ("a: !!python/object/apply:os.system [ls]", "tag"),
        ("a: !custom b", "tag"),
        ("a: [1", "not YAML"),
        ("a: b: c", "not YAML"),
        ("a: 1\n---\nb: 2", "a second document begins here"),
        ("a: \x00", "not YAML"),
        ("[" * 5000, "not YAML"),
        ("a: " + "x" * MAX_CHARS, "longer than"),
    ],
)
def test_load_yaml_ambiguous_text_is_refused(text: str, said: str) -> None:
    with pytest.raises(MalformedYaml, match=said):
        load_yaml(text)


def test_load_yaml_duplicate_key_names_its_place() -> None:
    with pytest.raises(MalformedYaml) as error:
        load_yaml("a: 1\nb:\n  c: 1\n  c: 2\n")

    assert (error.value.line, error.value.column) == (4, 3)


@given(st.text(max_size=200))
def test_load_yaml_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(MalformedYaml):
        value = load_yaml(text)
        assert value is None or isinstance(value, str | int | float | bool | list | dict)
