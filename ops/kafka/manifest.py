"""The jars of Apache Kafka, pinned by SHA-256: the committed list, and how it is generated again."""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

KAFKA_VERSION = "4.3.1"
ROOTS = (f"org.apache.kafka:kafka_2.13:{KAFKA_VERSION}", "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4")
PATH = Path(__file__).with_name("jars.json")


@dataclass(frozen=True)
class Jar:
    """One pinned jar: its Maven coordinate `group:artifact:version`, SHA-256 in hex, and size in bytes."""

    coordinate: str
    sha256: str
    size: int

    @property
    def file_name(self) -> str:
        """The jar's file name, as Maven names it."""
        _, artifact, version = self.coordinate.split(":")
        return f"{artifact}-{version}.jar"


def pinned_jars(path: Path = PATH) -> tuple[Jar, ...]:
    """Read the committed list."""
    return tuple(Jar(**row) for row in json.loads(path.read_text(encoding="utf-8"))["jars"])


def resolve_jars(roots: tuple[str, ...] = ROOTS) -> tuple[Jar, ...]:
    """Resolve the roots' dependency tree from Maven's default repository, fetching and hashing every jar."""
    import jgo

    artifacts = {
        f"{found.groupId}:{found.artifactId}:{found.version}": found
        for root in roots
        for found in jgo.resolve(root)
    }
    return tuple(_hashed(name, Path(artifacts[name].resolve())) for name in sorted(artifacts))


def _hashed(coordinate: str, path: Path) -> Jar:
    content = path.read_bytes()
    return Jar(coordinate, hashlib.sha256(content).hexdigest(), len(content))


def render(jars: tuple[Jar, ...], version: str = KAFKA_VERSION) -> str:
    """The manifest's text: one jar a line, so that a change of version reads well in a diff."""
    rows = ",\n".join(f"    {json.dumps(asdict(jar))}" for jar in jars)
    return f'{{\n  "kafka": "{version}",\n  "jars": [\n{rows}\n  ]\n}}\n'


if __name__ == "__main__":
    PATH.write_text(render(resolve_jars()), encoding="utf-8")
    sys.stdout.write(f"{PATH.name}: {len(pinned_jars())} jars pinned\n")
