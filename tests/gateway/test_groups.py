from typing import Any

import pytest

from gateway.operations.groups import HOLDS_MAX, SHAPE_MAX_CHARS, groups_of, shape_of
from projections.folds.rows import Row


def row(number: int, **changes: Any) -> Row:
    return {
        "hold_id": f"h{number}",
        "digest": f"d{number}",
        "view_digest": "",
        "agent": "crawler",
        "tool": "read_file",
        "kind": "permission",
        "cause": "policy",
        "rules": '["p@1/r"]',
        "risk_level": "low",
        "must_read": 0,
        "history": None,
        "arguments": f'{{"path":"f{number}"}}',
        "opened_at_ms": 1000 + number,
    } | changes


def test_groups_are_of_what_differs_in_values_only() -> None:
    (group,) = groups_of([row(number) for number in range(37)])
    assert (group["count"], group["agent"], group["tool"]) == (37, "crawler", "read_file")
    assert [one["digest"] for one in group["holds"]] == [f"d{number}" for number in range(37)]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("agent", "other"),
        ("tool", "other"),
        ("kind", "decision"),
        ("cause", "outcome_unknown"),
        ("rules", "[]"),
        ("risk_level", "high"),
        ("must_read", 1),
        ("history", '{"parts":["novel"],"novel":["path"]}'),
        ("history", '{"tainted":["path"],"sources":["c1"]}'),
        ("history", '{"is_whole":false}'),
        ("arguments", '{"path":1}'),
        ("arguments", '{"path":"f","all":true}'),
        ("arguments", None),
    ],
)
def test_groups_keep_apart_what_is_not_alike(name: str, value: Any) -> None:
    groups = groups_of([row(0), row(1), row(2, **{name: value})])
    assert [group["count"] for group in groups] == [2, 1]


def test_groups_tell_which_values_are_new_wherever_they_come_from() -> None:
    """Tainted values of two runs have two sources: the calls are still alike."""
    said = '{"parts":["novel","tainted"],"novel":["path"],"tainted":["path"],"sources":["%s"]}'
    (group,) = groups_of([row(number, history=said % f"c{number}") for number in range(3)])
    told = group["history"]
    assert (told["parts"], told["novel"], told["tainted"]) == (("novel", "tainted"), ("path",), ("path",))
    assert (told["is_whole"], told["is_known"]) == (True, True)


def test_group_lists_no_more_than_a_bulk_could_name_and_counts_all() -> None:
    (group,) = groups_of([row(number) for number in range(HOLDS_MAX + 5)])
    assert (group["count"], len(group["holds"])) == (HOLDS_MAX + 5, HOLDS_MAX)


def test_shape_is_names_and_kinds() -> None:
    arguments = '{"a":[1,2,"x",{"b":null}],"c":true,"d":{"e":"f"}}'
    assert shape_of(arguments) == '{"a":["number","text",{"b":"null"}],"c":"boolean","d":{"e":"text"}}'
    assert len(shape_of('{"' + "k" * 20_000 + '":1}')) == SHAPE_MAX_CHARS
