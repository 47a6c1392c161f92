"""docs/views.md lists every action that the view `audit` can tell."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from inspect import getsource
from pathlib import Path
from typing import get_args

from projections.folds import audit
from projections.folds.definitions import KINDS, RETIRED
from schemas.commands import DecideHold

PAGE = (Path(__file__).parents[2] / "docs" / "views.md").read_text()
# What an entry's action is where it is no constant, as it stands in the source.
MADE = {
    "ERASE": {audit.ERASE},
    "DESTROY_KEY": {audit.DESTROY_KEY},
    "action": set[str](),  # of `_steered`, which is given it
    "body.decision": set(get_args(DecideHold.model_fields["decision"].annotation)),
    "_snake(type(body).__name__)": audit.RULE_ACTIONS,
    "f'publish_{kind}'": {f"publish_{kind}" for kind in KINDS.values() if kind != RETIRED},
    "f'{body.decision}_refused'": {"…_refused"},
    "f'{_snake(body.command)}_refused'": {"…_refused"},
    "f'{_snake(body.command)}_abandoned'": {"…_abandoned"},
}


def told() -> Iterator[str]:
    """Every action that the source of the audit rows names."""
    for node in ast.walk(ast.parse(getsource(audit))):
        if isinstance(node, ast.Dict):
            named = zip(node.keys, node.values, strict=True)
            values = [
                value for key, value in named if isinstance(key, ast.Constant) and key.value == "action"
            ]
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "_steered":
            values = node.args[1:2]
        else:
            continue
        for value in values:
            if isinstance(value, ast.Constant):
                yield str(value.value)
            elif ast.unparse(value) != "row['action']":
                yield from MADE[ast.unparse(value)]


def listed() -> list[str]:
    found = re.search(r"`action`: (.*?) \(`expire_due_abandoned`", PAGE, re.DOTALL)
    assert found is not None
    return re.split(r",\s+(?:and\s+)?", found[1].replace("`", ""))


def test_page_of_the_views_lists_every_action_once() -> None:
    assert sorted(listed()) == sorted(set(told()))
