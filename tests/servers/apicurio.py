"""A real schema registry for the long tests: Apicurio from Maven Central, pinned, on the JRE that runs Kafka.

Kept in the cache; about 160 MB, which is why only `make test-long` asks for it.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from ops import process
from ops.kafka.jars import cache_dir
from ops.kafka.java import find_java
from ops.ports import LOOPBACK, free_port
from tests.archives import unpack

VERSION = "3.3.3"
SHA256 = "8bc6751c76d963734224b01d5e7f84ccb3cb61c87d3bd77c36c35f10a5cbed63"
READY_TIMEOUT_S = 90.0
STOP_GRACE_S = 10.0


@contextmanager
def running_apicurio(directory: Path) -> Iterator[str]:
    """The base URL of an empty registry's Confluent-compatible API."""
    home = _installed(cache_dir() / f"apicurio-registry-{VERSION}")
    port, log = free_port(), directory / "apicurio.log"
    child = process.spawn(_command(port), log, cwd=home)
    url = f"http://{LOOPBACK}:{port}/apis/ccompat/v7"
    try:
        deadline = time.monotonic() + READY_TIMEOUT_S
        while not _answers(url):
            assert child.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        yield url
    finally:
        process.stop(child, STOP_GRACE_S)


def _command(port: int) -> list[str]:
    return [
        str(find_java()),
        "-Xmx300m",
        "-XX:+UseSerialGC",
        f"-Dquarkus.http.host={LOOPBACK}",
        f"-Dquarkus.http.port={port}",
        f"-Dquarkus.management.host={LOOPBACK}",
        f"-Dquarkus.management.port={free_port()}",
        "-jar",
        "quarkus-run.jar",
    ]


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/subjects", timeout=2.0).is_success
    except httpx.TransportError:
        return False


def _installed(home: Path) -> Path:
    if not (home / "quarkus-run.jar").is_file():
        home.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home.parent, prefix=".staging-") as staging:
            archive = _fetched(Path(staging) / "maven")
            unpacked = Path(staging) / "unpacked"
            unpack(archive, unpacked)
            unpacked.rename(home)
    return home


def _fetched(staging: Path) -> Path:
    from jgo.maven import MavenContext

    mirror = os.environ.get("PLACET_MAVEN_REPOSITORY")
    context = MavenContext(
        repo_cache=staging, remote_repos={"mirror": mirror} if mirror else None, timeout=60
    )
    component = context.project("io.apicurio", "apicurio-registry-app").at_version(VERSION)
    path = Path(component.artifact("all", "tar.gz").resolve())
    with path.open("rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == SHA256
    return path
