"""Only a pinned jar reaches the class path."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from host.errors import EXIT_UNREACHABLE
from ops.errors import DiskFullError, JarError
from ops.kafka.jars import ensure_jars
from ops.kafka.manifest import KAFKA_VERSION, Jar, pinned_jars, render

GENUINE = b"the genuine jar"
JAR = Jar("org.example:thing:1.0", hashlib.sha256(GENUINE).hexdigest(), len(GENUINE))


class Repository:
    """Serves the given contents one after the other, and counts."""

    def __init__(self, *contents: bytes) -> None:
        self._contents = list(contents)
        self.fetched = 0

    def __call__(self, jar: Jar, staging: Path) -> Path:
        path = staging / jar.file_name
        path.write_bytes(self._contents[self.fetched])
        self.fetched += 1
        return path


def test_ensure_jars_missing_jar_is_fetched_once_then_cached(tmp_path: Path) -> None:
    repository = Repository(GENUINE)
    first = ensure_jars(tmp_path, [JAR], repository)
    again = ensure_jars(tmp_path, [JAR], repository)
    assert first == again == (tmp_path / f"kafka-{KAFKA_VERSION}" / "thing-1.0.jar",)
    assert first[0].read_bytes() == GENUINE
    assert repository.fetched == 1


def test_ensure_jars_corrupted_in_the_cache_is_fetched_again(tmp_path: Path) -> None:
    (path,) = ensure_jars(tmp_path, [JAR], Repository(GENUINE))
    path.write_bytes(b"the gemuine jar")
    repository = Repository(GENUINE)
    ensure_jars(tmp_path, [JAR], repository)
    assert path.read_bytes() == GENUINE
    assert repository.fetched == 1


def test_ensure_jars_corrupted_once_on_the_way_is_fetched_again(tmp_path: Path) -> None:
    repository = Repository(b"the g", GENUINE)
    (path,) = ensure_jars(tmp_path, [JAR], repository)
    assert path.read_bytes() == GENUINE
    assert repository.fetched == 2


def test_ensure_jars_corrupted_twice_is_refused_and_not_cached(tmp_path: Path) -> None:
    with pytest.raises(
        JarError, match=r"thing-1\.0\.jar was fetched twice, each time with a SHA-256 other"
    ) as refused:
        ensure_jars(tmp_path, [JAR], Repository(b"evil", b"evil"))
    assert refused.value.exit_code == EXIT_UNREACHABLE
    assert not list((tmp_path / f"kafka-{KAFKA_VERSION}").iterdir())


def test_ensure_jars_full_disk_says_so(tmp_path: Path) -> None:
    def fetch(jar: Jar, staging: Path) -> Path:
        with Path("/dev/full").open("wb", buffering=0) as file:
            file.write(GENUINE)
        return staging / jar.file_name

    with pytest.raises(DiskFullError, match="free space, or set PLACET_CACHE"):
        ensure_jars(tmp_path, [JAR], fetch)


def test_ensure_jars_without_a_network_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLACET_MAVEN_REPOSITORY", "http://127.0.0.1:9/maven2")
    with pytest.raises(JarError, match="could not be fetched"):
        ensure_jars(tmp_path, [JAR])


def test_manifest_is_what_the_generator_writes() -> None:
    jars = pinned_jars()
    text = (Path(__file__).parents[3] / "ops" / "kafka" / "jars.json").read_text(encoding="utf-8")
    assert render(jars) == text
    assert "org.apache.kafka:kafka_2.13:4.3.1" in {jar.coordinate for jar in jars}
    assert all(len(jar.sha256) == 64 for jar in jars)
