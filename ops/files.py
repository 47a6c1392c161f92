"""Small files that other processes read while they are written: replaced whole, never half seen."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def write_text(path: Path, text: str, mode: int = 0o600) -> None:
    """Replace a file's content in one step.

    Args:
        path: The file; its directory is made.
        text: The new content, UTF-8.
        mode: Permission bits of the new file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            os.fchmod(descriptor, mode)
            file.write(text)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink()
        raise


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Replace a JSON file in one step."""
    write_text(path, json.dumps(value, indent=2) + "\n")


def read_json(path: Path) -> dict[str, Any] | None:
    """A JSON object's content; None where there is no such file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return dict(content)
