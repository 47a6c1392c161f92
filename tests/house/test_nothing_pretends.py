"""No test that cannot fail, no code that is not there, no error that is swallowed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.house.sources import name, python_files, tree

# Written in pieces, so that this file does not find itself.
PRETENCES = re.compile(
    "|".join(
        (
            r"pytest\." + r"(skip|importorskip|xfail)\b",
            r"mark\." + r"(skip|skipif|xfail)\b",
            "unittest" + r"\.skip",
            "raise " + "NotImplemented" + "Error",
            "pragma:" + " no cover",
            r"#\s*(TO" + "DO|FIX" + r"ME|XX" + r"X)\b",
            r"\bsleep" + r"\(\s*[1-9][0-9]*(\.\d+)?\s*\)\s*#\s*hope",
        )
    )
)


def test_nothing_is_skipped_postponed_or_left_open() -> None:
    found = [
        f"{name(path)}:{number} {line.strip()}"
        for path in python_files()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if PRETENCES.search(line)
    ]
    assert found == [], "\n".join(found)


def test_no_exception_is_swallowed() -> None:
    found = [f"{name(path)}:{line}" for path in python_files() for line in _swallowed(path)]
    assert found == [], "\n".join(found)


def _swallowed(path: Path) -> Iterator[int]:
    """Handlers of everything, or of nothing in particular, that do nothing."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ExceptHandler) and _catches_all(node) and all(map(_is_nothing, node.body)):
            yield node.lineno


def test_no_message_takes_an_error_for_its_text() -> None:
    """An exception is always true, also one without a text: a message with `error or …` ends in nothing."""
    found = [f"{name(path)}:{line}" for path in python_files() for line in _errors_as_texts(path)]
    assert found == [], "\n".join(found)


def _errors_as_texts(path: Path) -> Iterator[int]:
    for handler in ast.walk(tree(path)):
        if isinstance(handler, ast.ExceptHandler) and handler.name:
            for node in ast.walk(handler):
                first = (
                    node.values[0] if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or) else None
                )
                if isinstance(first, ast.Name) and first.id == handler.name:
                    yield first.lineno


def _catches_all(handler: ast.ExceptHandler) -> bool:
    kind = handler.type
    return kind is None or (isinstance(kind, ast.Name) and kind.id in ("Exception", "BaseException"))


def _is_nothing(statement: ast.stmt) -> bool:
    is_constant = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return is_constant or isinstance(statement, ast.Pass | ast.Continue)
