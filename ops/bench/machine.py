"""What the figures were measured on."""

from __future__ import annotations

import os
import platform
import resource
from importlib.metadata import version
from pathlib import Path
from typing import Any

PACKAGES = ("placet-server", "aiokafka", "uvloop", "uvicorn", "websockets", "pydantic", "eventsourcing")
FILES_WANTED = 8_192


def facts() -> dict[str, Any]:
    """The machine and what runs on it."""
    return {
        "cores": len(os.sched_getaffinity(0)),
        "load_average": list(os.getloadavg()),
        "memory_mb": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2**20,
        "cpu": _cpu_model(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES},
    }


def allow_open_files() -> None:
    """Let this process, and what it starts, hold the sockets that a benchmark opens."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES_WANTED if hard == resource.RLIM_INFINITY else min(FILES_WANTED, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
