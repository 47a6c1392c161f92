"""The tracked files of the tree, as the house rules read them."""

from __future__ import annotations

import ast
import gc
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("host", "schemas", "vitals", "log", "services", "projections", "gateway", "ops", "sdk")
Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def tracked_files() -> tuple[Path, ...]:
    """Every file of the tree that git knows or would take, without what is ignored."""
    command = ("git", "ls-files", "--cached", "--others", "--exclude-standard")
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return tuple(path for line in listed.stdout.splitlines() if (path := ROOT / line).is_file())


@cache
def python_files() -> tuple[Path, ...]:
    """Every Python file, except for those that protoc made."""
    return tuple(path for path in tracked_files() if path.suffix == ".py" and "_pb2" not in path.name)


@cache
def room_files() -> tuple[Path, ...]:
    """Every Python file of the product itself."""
    return tuple(path for path in python_files() if name(path).split("/")[0] in ROOMS)


@cache
def tree(path: Path) -> ast.Module:
    """A file's syntax tree."""
    return _trees()[path]


@cache
def _trees() -> dict[Path, ast.Module]:
    """All at once, without the collector, which would walk what is read again and again: none of it is garbage."""
    gc.collect()
    gc.disable()
    try:
        found = {path: ast.parse(path.read_text(encoding="utf-8"), str(path)) for path in python_files()}
    finally:
        gc.freeze()
        gc.enable()
    return found


def name(path: Path) -> str:
    """The file's place in the tree, for messages."""
    return path.relative_to(ROOT).as_posix()


def functions(path: Path) -> Iterator[Function]:
    """Every function and method in a file."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


@cache
def imported_packages(path: Path) -> frozenset[str]:
    """The top-level packages that a file imports, at its head or within."""
    packages: set[str] = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            packages.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            packages.add(node.module.split(".")[0])
    return frozenset(packages)
