"""What processes used, from /proc (proc(5)): processor time and the most memory."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

# Fields of /proc/PID/stat counted from the state, which follows the name in parentheses.
PARENT = 1
# Of the process in user and system mode, and of its children that have ended and were waited for.
TICKS = slice(11, 15)
MS_PER_TICK = 1000 / os.sysconf("SC_CLK_TCK")


def cpu_ms(pids: Mapping[str, int]) -> dict[str, float]:
    """Processor time in ms that each process and its descendants have used so far, those that ended included.

    Args:
        pids: name → process id.
    """
    stats = {int(entry.name): stat for entry in Path("/proc").iterdir() if (stat := _stat(entry))}
    return {name: sum(_cpu_of(stats[one]) for one in _family(pid, stats)) for name, pid in pids.items()}


def peak_memory_mb(pid: int) -> float:
    """The most memory that a process ever held (VmHWM), in MiB."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise ValueError(f"process {pid} has no memory of its own")


def _cpu_of(stat: list[str]) -> float:
    return sum(map(int, stat[TICKS])) * MS_PER_TICK


def _family(pid: int, stats: Mapping[int, list[str]]) -> set[int]:
    family, grows = {pid}, True
    while grows:
        children = {one for one, stat in stats.items() if int(stat[PARENT]) in family}
        grows = not children <= family
        family |= children
    return family


def _stat(entry: Path) -> list[str]:
    if not entry.name.isdigit():
        return []
    try:
        return (entry / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []
