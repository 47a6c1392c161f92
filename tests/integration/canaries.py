"""Canaries: values that nobody would write by accident, and every place of a stack where one could turn up."""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

from log.places import TopicPartition
from tests.integration.doors import SiteLog

CHUNK = 8 * 1024 * 1024
OVERLAP = 4096


@dataclass(frozen=True)
class Canary:
    """A value with characters that every way of writing it down changes, and a core that none does."""

    name: str
    core: str = field(default_factory=lambda: f"cnry{uuid4().hex}")

    @property
    def value(self) -> str:
        return f'{self.core}"ü/{self.core[::-1]}'

    def needles(self) -> list[bytes]:
        """How it could be written: as it is, in JSON, in a URL, in hex, in base64 at any place of another text."""
        whole, core = self.value.encode(), self.core.encode()
        written = [
            core,
            core[::-1],
            whole,
            json.dumps(self.value).encode(),
            quote(self.value).encode(),
            core.hex().encode(),
            core.hex().upper().encode(),
        ]
        for shift in range(3):
            # The characters at both ends depend on what stands beside it.
            coded = base64.b64encode(b"\0" * shift + core)
            written.append(coded[4:-4] if shift else coded[:-4])
        return written


@dataclass
class Finds:
    """Where which canary was seen; every place that was looked at is named, also where nothing was."""

    canaries: list[Canary]
    places: dict[str, int] = field(default_factory=dict)
    seen: dict[str, set[str]] = field(default_factory=dict)

    def look(self, place: str, data: bytes | str) -> None:
        """Look through some bytes of a place."""
        raw = data.encode() if isinstance(data, str) else data
        self.places[place] = self.places.get(place, 0) + len(raw)
        for match in self._pattern.finditer(raw):
            for canary in self.canaries:
                if match.group() in canary.needles():
                    self.seen.setdefault(canary.name, set()).add(place)

    def look_at_file(self, path: Path, place: str) -> None:
        """Look through what was ever written to a file; its holes are passed over."""
        for data in _written(path):
            self.look(place, data)

    def of(self, canary: Canary) -> set[str]:
        return self.seen.get(canary.name, set())

    @property
    def _pattern(self) -> re.Pattern[bytes]:
        needles = {re.escape(needle) for canary in self.canaries for needle in canary.needles()}
        longest_first: list[bytes] = sorted(needles, key=len, reverse=True)
        return re.compile(b"|".join(longest_first))


async def look_at_topics(finds: Finds, log: SiteLog) -> None:
    """Every record of every topic: key, headers and value."""
    for spec in log.log.topics.specs():
        count = await log.log.partition_count(spec.name)
        for tp in (TopicPartition(spec.name, partition) for partition in range(count)):
            first, stop = await log.log.bounds(tp)
            async for raws in log.log.read(tp, first, stop):
                for raw in raws:
                    headers = b"".join(name.encode() + (value or b"") for name, value in raw.headers)
                    finds.look(f"topic {spec.name}", raw.key + headers + raw.value)


def look_at_directory(finds: Finds, root: Path) -> None:
    """Every file of a data directory: the views, the vault, Kafka's segments, logs, states and keys."""
    for path in sorted(root.rglob("*")):
        if path.is_file() and not path.is_symlink():
            kind = path.relative_to(root).parts[0].partition("-wal")[0].partition("-shm")[0]
            finds.look_at_file(path, f"file {kind}")


def look_at_processes(finds: Finds, pids: list[int]) -> None:
    """The command line and the environment of processes."""
    for pid in pids:
        for name in ("cmdline", "environ"):
            finds.look(f"process {name}", Path(f"/proc/{pid}/{name}").read_bytes())


def _written(path: Path) -> Iterator[bytes]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        size, at = os.fstat(descriptor).st_size, 0
        while at < size:
            try:
                start = os.lseek(descriptor, at, os.SEEK_DATA)
            except OSError:
                return
            end = os.lseek(descriptor, start, os.SEEK_HOLE)
            for offset in range(start, end, CHUNK):
                yield os.pread(descriptor, min(CHUNK + OVERLAP, end - offset), offset)
            at = end
    finally:
        os.close(descriptor)
