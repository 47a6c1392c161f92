"""How much room the disks have that a process writes to. Paths are left out: who may not know them reads it, too."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

# With less a file of a few kilobytes may not fit any more.
FULL_BYTES = 1024 * 1024
# Below this an operator is warned, while there is time.
LOW_BYTES = 64 * 1024 * 1024
FULL = "full: free space"
LOW = f"nearly full: less than {LOW_BYTES // 1024 // 1024} MB are free"
SQLITE = "sqlite:///"

DATA, VIEWS, HEADS = "the data directory", "the views", "the audit heads"


@dataclass(frozen=True, slots=True)
class Disk:
    """What is kept on a disk, where, and whether a process can do nothing without it."""

    what: str
    path: Path
    is_needed: bool = False


@dataclass(frozen=True, slots=True)
class Room:
    """What is wrong with some disks: `warning` is all of it, `hindrance` what keeps the process from its work."""

    hindrance: str = ""
    warning: str = ""


class Short(NamedTuple):
    """What is wrong with one disk, as the end of a sentence about it."""

    told: str
    is_full: bool = False


def disks_of(settings: Mapping[str, str], *, writes_views: bool) -> tuple[Disk, ...]:
    """The disks that a role writes to, by its settings; those of the views and the heads are the projector's."""
    found = [Disk(DATA, Path(settings["data_dir"]))] if settings.get("data_dir") else []
    url = settings.get("database_url", "")
    if writes_views and url.startswith(SQLITE):
        found.insert(0, Disk(VIEWS, Path(url.removeprefix(SQLITE)), is_needed=True))
    if writes_views and settings.get("audit_heads_dir"):
        found.insert(0, Disk(HEADS, Path(settings["audit_heads_dir"]), is_needed=True))
    return tuple(found)


def room_on(disks: tuple[Disk, ...]) -> Room:
    """What is wrong with them now; a disk that holds several things is told of once."""
    hindrances, warnings = [], []
    for number, short in short_of_room([disk.path for disk in disks]):
        disk = disks[number]
        warnings.append(f"the disk of {disk.what} {short.told}")
        if disk.is_needed and short.is_full:
            hindrances.append(warnings[-1])
    return Room("; ".join(hindrances), "; ".join(warnings))


def short_of_room(paths: Sequence[Path]) -> Iterator[tuple[int, Short]]:
    """What is wrong with the disks of some paths, by the number of the path; of one disk once."""
    seen = set()
    for number, path in enumerate(paths):
        try:
            there = existing(path)
            device, short = os.stat(there).st_dev, shortage(there)
        except OSError as error:
            yield number, Short(f"cannot be looked at ({error.strerror or error})")
            continue
        if short and device not in seen:
            seen.add(device)
            yield number, Short(f"is {short}", is_full=short == FULL)


def shortage(path: Path) -> str:
    """`FULL` or `LOW` where the disk that holds a path, or will hold it, is; empty otherwise."""
    status = os.statvfs(existing(path))
    free = status.f_bavail * status.f_frsize
    if free < FULL_BYTES or (status.f_files and not status.f_favail):
        return FULL
    return LOW if free < LOW_BYTES else ""


def existing(path: Path) -> Path:
    """The path, or the nearest directory above it that is there."""
    return next((one for one in (path, *path.parents) if one.exists()), Path("/"))
