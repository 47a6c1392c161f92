"""The limit on the open files of this process."""

from __future__ import annotations

import resource


def allow_many_sockets() -> None:
    """Raise the limit on open files to the system's maximum: each client needs one, and 1,024 is a common default."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
