"""The free space of the disks that a process writes to. Its texts have no paths, which not all readers may see."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

# With less, a file of a few kilobytes may not fit any more.
FULL_BYTES = 1024 * 1024
# Below this an operator is warned, while there is still time to act.
LOW_BYTES = 64 * 1024 * 1024
FULL = "full: free space"
LOW = f"nearly full: less than {LOW_BYTES // 1024 // 1024} MB are free"
SQLITE = "sqlite:///"

DATA, VIEWS, HEADS = "the data directory", "the views", "the audit heads"


@dataclass(frozen=True, slots=True)
class Disk:
    """Data of a process, its path, and whether the process can do nothing without it."""

    what: str
    path: Path
    is_needed: bool = False


@dataclass(frozen=True, slots=True)
class Room:
    """The problems of disks: `warning` has all of them, `hindrance` those that prevent the process from working."""

    hindrance: str = ""
    warning: str = ""


class Short(NamedTuple):
    """The problem of one disk, as the end of a sentence about it."""

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
    """The present problems of disks; each physical disk is reported once."""
    hindrances, warnings = [], []
    for number, short in short_of_room([disk.path for disk in disks]):
        disk = disks[number]
        warnings.append(f"the disk of {disk.what} {short.told}")
        if disk.is_needed and short.is_full:
            hindrances.append(warnings[-1])
    return Room("; ".join(hindrances), "; ".join(warnings))


def short_of_room(paths: Sequence[Path]) -> Iterator[tuple[int, Short]]:
    """The problems of the disks of paths, each with the path's number; each physical disk is reported once."""
    seen = set()
    for number, path in enumerate(paths):
        try:
            there = existing(path)
            device, short = os.stat(there).st_dev, shortage(there)
        except OSError as error:
            yield number, Short(f"cannot be examined ({error.strerror or error})")
            continue
        if short and device not in seen:
            seen.add(device)
            yield number, Short(f"is {short}", is_full=short == FULL)


def shortage(path: Path) -> str:
    """`FULL` or `LOW` if the disk of an existing or future path is; empty otherwise."""
    status = os.statvfs(existing(path))
    free = status.f_bavail * status.f_frsize
    if free < FULL_BYTES or (status.f_files and not status.f_favail):
        return FULL
    return LOW if free < LOW_BYTES else ""


def existing(path: Path) -> Path:
    """The path, or its nearest parent directory that exists."""
    return next((one for one in (path, *path.parents) if one.exists()), Path("/"))
