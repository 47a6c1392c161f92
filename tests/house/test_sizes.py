"""Small functions, small modules, and a sentence on everything public."""

from __future__ import annotations

import ast

from tests.house.sources import functions, name, python_files, room_files, tree

FUNCTION_LINES_MAX = 60
MODULE_LINES_MAX = 400


def test_no_function_is_longer_than_a_screen() -> None:
    long = {
        f"{name(path)}:{node.lineno} {node.name}": lines
        for path in python_files()
        for node in functions(path)
        if (lines := (node.end_lineno or node.lineno) - node.lineno + 1) > FUNCTION_LINES_MAX
    }
    assert long == {}, str(long)


def test_no_module_is_longer_than_it_can_be_read() -> None:
    long = {
        name(path): lines
        for path in python_files()
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > MODULE_LINES_MAX
    }
    assert long == {}, str(long)


def test_every_module_says_what_it_is_for() -> None:
    silent = [
        name(path)
        for path in room_files()
        if path.read_text(encoding="utf-8").strip() and not ast.get_docstring(tree(path))
    ]
    assert silent == [], "\n".join(silent)


def test_every_public_function_and_class_says_what_it_does() -> None:
    silent = [
        f"{name(path)}:{node.lineno} {node.name}"
        for path in room_files()
        for node in _public(tree(path))
        if not ast.get_docstring(node) and not _is_told_elsewhere(node)
    ]
    assert silent == [], "\n".join(silent)


def _is_told_elsewhere(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    """An overload is told by its implementation, a setter by its property."""
    decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
    return any(name.endswith(("overload", ".setter")) for name in decorators)


def _public(module: ast.Module) -> list[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    """Functions and classes that another module may use: not private, not nested in a function."""
    found: list[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef] = []
    for node in module.body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) or node.name[0] == "_":
            continue
        found.append(node)
        if isinstance(node, ast.ClassDef):
            members = (
                member for member in node.body if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef)
            )
            found += [member for member in members if member.name[0] != "_"]
    return found
