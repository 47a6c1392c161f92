"""Whether an environment has every file that was installed into it: `installed_files.py LOCK`, exit code 1 if not.

Standard library only: it looks after everything else.
"""

from __future__ import annotations

import importlib.metadata
import re
import sys
from collections.abc import Iterator
from pathlib import Path

# Not what is pinned for some platforms only (a marker follows a semicolon): it may rightly be missing here.
_PINNED = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^]]*\])?==[^;\n]*$", re.MULTILINE)
_SEPARATORS = re.compile(r"[-_.]+")


def missing(lock: str) -> Iterator[str]:
    """What is not there: distributions that the lock names, and files of those that are installed."""
    found: set[str] = set()
    for distribution in importlib.metadata.distributions():
        name = distribution.metadata["Name"]
        if name is None or distribution.files is None:
            yield f"the record of {name or 'a distribution'}"
            continue
        found.add(_plain(name))
        yield from (str(file) for file in distribution.files if not _is_there(Path(str(file.locate()))))
    yield from (name for name in _PINNED.findall(lock) if _plain(name) not in found)


def _is_there(file: Path) -> bool:
    # What Python compiles is made again when it is needed.
    return file.suffix == ".pyc" or file.exists()


def _plain(name: str) -> str:
    return _SEPARATORS.sub("-", name).lower()


def main(lock: Path) -> int:
    """Say the first thing that is missing; returns the exit code."""
    for name in missing(lock.read_text(encoding="utf-8")):
        sys.stderr.write(f".venv is damaged ({name} is gone)\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
