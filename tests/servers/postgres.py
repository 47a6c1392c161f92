"""Debian's PostgreSQL, started for one test run: a temporary cluster on loopback, without fsync."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg

from ops.ports import LOOPBACK, free_port

SERVER_OPTIONS = "-c fsync=off -c synchronous_commit=off -c full_page_writes=off -c max_connections=50"


def find_bin_directory(roots: Sequence[Path] = (Path("/usr/lib/postgresql"),)) -> Path:
    """The directory of the newest installed server's binaries.

    Raises:
        FileNotFoundError: No `initdb` in the given places nor in the path.
    """
    versions = [found for root in roots for found in root.glob("*/bin/initdb")]
    newest = max(versions, key=lambda path: float(path.parts[-3]), default=None)
    found = newest or shutil.which("initdb")
    if found is None:
        raise FileNotFoundError(
            "no initdb was found: install PostgreSQL's server (Debian: apt-get install postgresql)"
        )
    return Path(found).resolve().parent


@contextmanager
def running_postgres() -> Iterator[str]:
    """URL of an empty PostgreSQL that lasts as long as the context."""
    binaries = find_bin_directory()
    with tempfile.TemporaryDirectory(prefix="placet-pg-") as home:
        _give_to_server_user(Path(home))
        data = Path(home) / "data"
        port = free_port()
        _run(
            binaries / "initdb", "-D", data, "-U", "placet", "-A", "trust", "-N", "-E", "UTF8", "--no-locale"
        )
        options = f"{SERVER_OPTIONS} -c listen_addresses={LOOPBACK} -c port={port} -k {home}"
        _run(
            binaries / "pg_ctl",
            "-D",
            data,
            "-l",
            Path(home) / "log",
            "-w",
            "-t",
            "60",
            "-o",
            options,
            "start",
        )
        try:
            yield f"postgresql://placet@{LOOPBACK}:{port}/postgres"
        finally:
            _run(binaries / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")


def _run(*command: str | Path) -> None:
    done = subprocess.run(
        [*_as_server_user(), *map(str, command)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        cwd="/",
        text=True,
        timeout=90,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} failed: {done.stderr.strip()}")


def _as_server_user() -> tuple[str, ...]:
    """PostgreSQL refuses to run as root; Debian's package makes the user `postgres`."""
    if os.geteuid() != 0:
        return ()
    return ("setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", "--")


def _give_to_server_user(home: Path) -> None:
    if os.geteuid() == 0:
        user = pwd.getpwnam("postgres")
        os.chown(home, user.pw_uid, user.pw_gid)


@contextmanager
def frozen_postgres(url: str) -> Iterator[None]:
    """The server of a URL with all of its processes stopped, as on a machine that hangs; it goes on at the end."""
    with psycopg.connect(url) as connection:
        server = _parent(connection.info.backend_pid)
    try:
        # The server first: then it starts no other process.
        os.kill(server, signal.SIGSTOP)
        _signal(_children(server), signal.SIGSTOP)
        yield
    finally:
        _signal(_children(server), signal.SIGCONT)
        os.kill(server, signal.SIGCONT)


def _signal(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        # A connection that has just ended takes its process with it.
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


def _children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in found.split()]
