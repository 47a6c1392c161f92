"""docs/views.md lists every action that the view `audit` can tell."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from inspect import getsource
from pathlib import Path
from typing import get_args

from projections.folds import acts
from projections.folds.definitions import KINDS, RETIRED
from projections.folds.events import calls, decisions, definitions, executions, holds, rules
from schemas.commands import DecideHold

PAGE = (Path(__file__).parents[2] / "docs" / "views.md").read_text()
# What an entry's action is where it is no constant, as it stands in the source.
MADE = {
    "ERASE": {acts.ERASE},
    "DESTROY_KEY": {acts.DESTROY_KEY},
    "action": set[str](),  # of `_steered`, which is given it
    "body.decision": set(get_args(DecideHold.model_fields["decision"].annotation)),
    "_action(body)": definitions.RULE_ACTIONS,
    "f'publish_{kind}'": {f"publish_{kind}" for kind in KINDS.values() if kind != RETIRED},
    "f'{body.decision}_refused'": {"…_refused"},
    "f'{snake(body.command)}_refused'": {"…_refused"},
    "f'{snake(body.command)}_abandoned'": {"…_abandoned"},
}


def named_actions() -> Iterator[str]:
    """Every action that the sources of the events' effects name."""
    for module in (executions, calls, holds, decisions, rules, definitions):
        for node in ast.walk(ast.parse(getsource(module))):
            if not isinstance(node, ast.Call) or ast.unparse(node.func) not in ("Act", "_steered"):
                continue
            value = node.args[1]
            if isinstance(value, ast.Constant):
                yield str(value.value)
            else:
                yield from MADE[ast.unparse(value)]


def listed() -> list[str]:
    found = re.search(r"`action`: (.*?) \(`expire_due_abandoned`", PAGE, re.DOTALL)
    assert found is not None
    return re.split(r",\s+(?:and\s+)?", found[1].replace("`", ""))


def test_page_of_the_views_lists_every_action_once() -> None:
    assert sorted(listed()) == sorted(set(named_actions()))
