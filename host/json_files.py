"""Reads JSON files of an installation; all malformed JSON raises one kind of error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def read_json_file(path: Path) -> Any:
    """The contents of a JSON file.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not JSON, or is nested too deep, for which Python itself raises another error.
    """
    text = path.read_text(encoding="utf-8")
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
