"""Fetch, verify and cache the pinned jars. A jar reaches the cache only after its SHA-256 was checked."""

from __future__ import annotations

import errno
import hashlib
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from ops.errors import DiskFullError, JarError, OpsError
from ops.kafka.manifest import KAFKA_VERSION, Jar, pinned_jars
from placet.cli.session import console

PARALLEL_DOWNLOADS = 4
ATTEMPTS = 2
TIMEOUT_S = 60

Fetch = Callable[[Jar, Path], Path]


def cache_dir() -> Path:
    """Where downloads are kept, as an absolute path: `PLACET_CACHE`, or `~/.cache/placet`."""
    return Path(os.environ.get("PLACET_CACHE") or Path.home() / ".cache" / "placet").expanduser().absolute()


def ensure_jars(
    cache: Path, jars: Sequence[Jar] | None = None, fetch: Fetch | None = None
) -> tuple[Path, ...]:
    """Have every pinned jar in the cache, verified; what is missing or corrupted is fetched, twice at most.

    Args:
        cache: The cache directory; several processes may share it.
        jars: The jars wanted; the committed manifest's by default.
        fetch: Puts one jar below a staging directory and returns its path; by default from Maven.

    Returns:
        The jars' paths, in the manifest's order: the class path.

    Raises:
        JarError: A jar cannot be fetched, or is not the pinned one after two attempts.
        DiskFullError: The cache's file system is full.
    """
    wanted = pinned_jars() if jars is None else tuple(jars)
    home = cache / f"kafka-{KAFKA_VERSION}"
    missing = tuple(jar for jar in wanted if not is_intact(home / jar.file_name, jar))
    if missing:
        _fetch_all(missing, home, fetch or fetch_from_maven)
    return tuple(home / jar.file_name for jar in wanted)


def is_intact(path: Path, jar: Jar) -> bool:
    """Whether the file is there and is the pinned jar, byte for byte."""
    if not path.is_file() or path.stat().st_size != jar.size:
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == jar.sha256


def fetch_from_maven(jar: Jar, staging: Path) -> Path:
    """Fetch one jar by its coordinate; `PLACET_MAVEN_REPOSITORY` names a mirror of the default one."""
    from jgo.maven import MavenContext

    mirror = os.environ.get("PLACET_MAVEN_REPOSITORY")
    context = MavenContext(
        repo_cache=staging, remote_repos={"mirror": mirror} if mirror else None, timeout=TIMEOUT_S
    )
    group, artifact, version = jar.coordinate.split(":")
    return Path(context.project(group, artifact).at_version(version).artifact().resolve())


def _fetch_all(missing: Sequence[Jar], home: Path, fetch: Fetch) -> None:
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with (
        Progress(*columns, console=console(stderr=True)) as progress,
        ThreadPoolExecutor(PARALLEL_DOWNLOADS) as pool,
    ):
        task = progress.add_task(f"Apache Kafka {KAFKA_VERSION}", total=sum(jar.size for jar in missing))
        for done in pool.map(lambda jar: _fetch_verified(jar, home, fetch), missing):
            progress.advance(task, done.size)


def _fetch_verified(jar: Jar, home: Path, fetch: Fetch) -> Jar:
    cause: Exception | None = None
    for _ in range(ATTEMPTS):
        try:
            if _fetch_once(jar, home, fetch):
                return jar
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise _disk_full(home) from error
            cause = error
        except RuntimeError as error:
            cause = error
    raise _unfetched(jar, cause) from cause


def _fetch_once(jar: Jar, home: Path, fetch: Fetch) -> bool:
    home.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home, prefix=".staging-") as staging:
        path = fetch(jar, Path(staging))
        intact = is_intact(path, jar)
        if intact:
            path.replace(home / jar.file_name)
    return intact


def _disk_full(home: Path) -> DiskFullError:
    return DiskFullError(
        f"The disk that holds {home} is full: free space, or set PLACET_CACHE to another disk."
    )


def _unfetched(jar: Jar, cause: Exception | None) -> JarError:
    if cause is None:
        return JarError(
            f"{jar.file_name} was fetched twice, each time with a SHA-256 other than the pinned one: check the "
            "network's proxy or mirror (PLACET_MAVEN_REPOSITORY) and start again."
        )
    return JarError(
        f"{jar.file_name} could not be fetched ({type(cause).__name__}): connect to the internet or set "
        "PLACET_MAVEN_REPOSITORY to a mirror, and start again."
    )


if __name__ == "__main__":
    try:
        ensure_jars(cache_dir())
    except OpsError as error:
        sys.exit(str(error))
