"""JSON in a file of an installation, read so that whatever keeps it from being JSON is one kind of error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def read_json_file(path: Path) -> Any:
    """What a file of JSON says.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no JSON, also where it is nested without end, which Python tells as an error of its own.
    """
    text = path.read_text(encoding="utf-8")
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
