"""The JVM's cache of Kafka's loaded classes (JEP 483, JEP 514): a broker starts in 0.9 s instead of 1.9.

`make setup` makes it by `python -m ops.kafka.training`. It is in the Python environment and not beside the jars: the
jars are checked by their digests at each start and the cache is not, so it must be as hard to change as this code.
If it was made for other jars or another JVM, or is damaged, the JVM ignores it and loads the classes itself.
"""

from __future__ import annotations

import sys
from pathlib import Path

from ops.kafka.java import bundled_java
from ops.kafka.manifest import KAFKA_VERSION


def cache_file() -> Path:
    """Where the cache of this environment is."""
    return Path(sys.prefix) / "share" / "placet" / f"kafka-{KAFKA_VERSION}.aot"


def flags(java: Path) -> tuple[str, ...]:
    """What a JVM needs to start by the cache; nothing if there is none for it.

    Args:
        java: the binary that runs Kafka. Only the bundled one has a cache: an older one does not know the flag.
    """
    file = cache_file()
    if java != bundled_java() or not file.is_file():
        return ()
    # A cache that does not fit is no trouble, so nothing is written about it where people look for trouble.
    return (f"-XX:AOTCache={file}", "-Xlog:aot=off", "-Xlog:cds=off")
