"""There is one place that prompts: it discards what was typed before (`placet.cli.prompting`)."""

from __future__ import annotations

import ast

from tests.house.sources import name, room_files, tree

THE_PLACE = "sdk/src/placet/cli/prompting.py"
PROMPTS = frozenset({"confirm", "prompt", "getpass", "Confirm", "Prompt"})
OTHERS = frozenset({"typer", "click", "getpass", "rich"})


def _prompts(node: ast.AST) -> bool:
    if isinstance(node, ast.ImportFrom):
        module = (node.module or "").split(".")[0]
        return module in OTHERS and any(alias.name in PROMPTS for alias in node.names)
    if not isinstance(node, ast.Call):
        return False
    called = node.func
    if isinstance(called, ast.Name):
        return called.id == "input"
    return isinstance(called, ast.Attribute) and (
        called.attr in PROMPTS and isinstance(called.value, ast.Name) and called.value.id in OTHERS
    )


def test_nothing_else_prompts() -> None:
    found = [
        f"{name(path)}:{getattr(node, 'lineno', 0)}"
        for path in room_files()
        if name(path) != THE_PLACE
        for node in ast.walk(tree(path))
        if _prompts(node)
    ]
    assert found == []


def test_the_rule_sees_what_prompts() -> None:
    for line in ("typer.confirm('x')", "typer.prompt('x')", "input()", "from getpass import getpass"):
        assert any(map(_prompts, ast.walk(ast.parse(line)))), line
