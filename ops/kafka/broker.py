"""One embedded KRaft node: prepared, started, waited for, stopped. Its data directory outlives it.

A start is: 1 take the directory's lock · 2 choose ports · 3 have the jars · 4 format once · 5 start the JVM ·
6 wait until it serves ·
7 tell it whom it lets in.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import subprocess
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from ops import process
from ops.errors import DiskFullError, KafkaFailedError, OpsError, PortTakenError, UsageError
from ops.files import damaged, read_json
from ops.kafka import class_cache
from ops.kafka.access import Access
from ops.kafka.diagnosis import explain
from ops.kafka.jars import cache_dir, ensure_jars
from ops.kafka.java import find_java
from ops.kafka.probe import brokers_alive
from ops.kafka.settings import BROKER_USER, Layout, Ports, write_settings
from ops.kafka.wire import PLAIN, SignIn
from ops.locks import lock_directory
from ops.ports import LOOPBACK, free_port, is_free

# It takes some seconds; a machine of which others took most has needed more than a minute.
START_TIMEOUT_S = 120.0
STOP_GRACE_S = 20.0
POLL_S = 0.05
# A free port that is chosen can be taken by another program before the JVM listens on it.
PORT_RACES = 3
LOWEST_FREE_BYTES = 16 * 1024 * 1024
# The quick compiler alone and the plain collector: on two busy cores a start took 2.9 CPU-seconds instead of 4.7, a
# hop 1.6 ms (p99 14) instead of 2.4 (28), and after 240,000 records still 6 µs of CPU a record instead of 16.
JVM_FLAGS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
# Java reads the names of files as the locale says, which may be that of a service: plain ASCII.
LOCALE = {"LC_ALL": "C.UTF-8"}


@dataclass(frozen=True)
class BrokerConfig:
    """What an embedded broker is started with.

    Attributes:
        data_dir: Its own directory, made when missing; durable.
        port: Where it listens on loopback; 0 keeps the last one, or chooses a free one.
        heap_mb: The JVM's heap ceiling in MiB.
        access: Who is let in; None for everybody, as on the clusters that tests bring along.
        class_cache: The flags by which the JVM uses or makes its cache of classes; by default it uses one that fits.
        cache: Where the jars are kept; `PLACET_CACHE` or the user's cache by default.
    """

    data_dir: Path
    port: int = 0
    heap_mb: int = 512
    access: Access | None = field(kw_only=True)
    cache: Path | None = None
    class_cache: tuple[str, ...] | None = None


class Broker:
    """A handle on one embedded broker: start, stop, kill."""

    def __init__(self, config: BrokerConfig) -> None:
        self.config = config
        self.layout = Layout(config.data_dir)
        self.ports: Ports | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._lock: int | None = None
        self._password: str | None = None
        self._allowed_s = self._serves_until = 0.0
        self._races_left = 0
        self._has_served = False

    @property
    def bootstrap_servers(self) -> str:
        """What clients connect to; kept over restarts."""
        if self.ports is None:
            raise RuntimeError("the broker was never started")
        return self.ports.bootstrap_servers

    @property
    def pid(self) -> int:
        """The JVM's process id."""
        return self._running().pid

    @property
    def is_running(self) -> bool:
        """Whether the JVM has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """How the JVM ended; negative for a signal, None where it has not."""
        return self._process.poll() if self._process else None

    def start(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Start the broker and wait until it serves.

        Raises:
            OpsError: It cannot start; the message says what to do.
        """
        self.launch(timeout_s)
        with self._killed_on_error():
            while not self.serves():
                time.sleep(POLL_S)

    def launch(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Do the steps 1 to 5 of a start, for whoever asks `serves` then, between other work.

        Args:
            timeout_s: Within how many seconds it has to serve.

        Raises:
            OpsError: It cannot start; the message says what to do. Nothing is left running.
        """
        self._lock = lock_directory(self.config.data_dir)
        self._races_left = PORT_RACES
        with self._killed_on_error():
            self._launch()
            self._allowed_s = timeout_s
            self._serves_until = time.monotonic() + timeout_s

    def serves(self) -> bool:
        """Look once whether it serves by now; when it does, tell it whom it lets in (steps 6 and 7 of a start).

        Raises:
            OpsError: It has ended, or its time is over; the message says what to do. Nothing is left running.
        """
        with self._killed_on_error():
            if not self._answers():
                return False
            self._let_in()
            self._has_served = True
            return True

    def stop(self, grace_s: float = STOP_GRACE_S) -> None:
        """Stop it cleanly; killed when it has not ended after `grace_s`."""
        if self._process is not None:
            process.stop(self._process, grace_s)
        self._release()

    def kill(self) -> None:
        """End it at once (SIGKILL), as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._release()

    def _launch(self) -> None:
        _check_space(self.config.data_dir)
        if self.ports is not None and not is_free(self.ports.listener):
            raise PortTakenError(
                f"Port {self.ports.listener} on {LOOPBACK}, where Kafka served, was taken by another program: end "
                "that one, or stop this stack and start it again, and Kafka takes a free port."
            )
        self.ports = _choose_ports(self.layout, self.ports.listener if self.ports else self.config.port)
        class_path = _class_path(self.config.cache or cache_dir())
        for stale in (self.layout.log, self.layout.output):
            stale.unlink(missing_ok=True)
        if self.config.access is not None:
            self.config.access.make_files()
            self._password = secrets.token_urlsafe(32)
        write_settings(self.layout, self.ports, self._password)
        if not self.layout.is_formatted:
            self._format(class_path)
        self._process = self._spawn(
            class_path,
            f"-Xmx{self.config.heap_mb}m",
            "kafka.Kafka",
            self.layout.properties.name,
            pass_fds=() if self._lock is None else (self._lock,),
        )

    def _format(self, class_path: str) -> None:
        cluster_id = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        arguments = ("format", f"--cluster-id={cluster_id}", "-c", self.layout.properties.name)
        done = self._spawn(class_path, "kafka.tools.StorageTool", *arguments).wait(START_TIMEOUT_S)
        if done != 0:
            raise explain(self.layout)
        if not self.layout.is_formatted:
            raise KafkaFailedError(
                f"Kafka has prepared a directory other than {self.layout.data}, where the log must not be written:"
                " choose another --data-dir, of ASCII letters."
            )

    def _spawn(
        self, class_path: str, *arguments: str, pass_fds: Sequence[int] = ()
    ) -> subprocess.Popen[bytes]:
        java = find_java()
        cached = self.config.class_cache
        flags = (*JVM_FLAGS, *(class_cache.flags(java) if cached is None else cached))
        logging = f"-Dlog4j2.configurationFile={self.layout.logging_uri}"
        return process.spawn(
            [str(java), *flags, logging, "-cp", class_path, *arguments],
            self.layout.output,
            process.without_master_key(os.environ) | LOCALE,
            pass_fds,
            cwd=self.layout.root,
        )

    def _answers(self) -> bool:
        who = SignIn(PLAIN, BROKER_USER, self._password) if self._password else None
        if self.ports is not None and brokers_alive(LOOPBACK, self.ports.listener, who=who):
            return True
        if not self.is_running:
            self._launch_again(explain(self.layout))
            return False
        if time.monotonic() > self._serves_until:
            raise explain(self.layout, self._allowed_s)
        return False

    def _launch_again(self, why: OpsError) -> None:
        """Launch on other ports where one that was chosen was taken meanwhile; raise `why` otherwise."""
        if not isinstance(why, PortTakenError) or not self._races_left:
            raise why
        self._races_left -= 1
        if not self._has_served:
            self.ports = None
        self._launch()

    @contextlib.contextmanager
    def _killed_on_error(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.kill()
            raise

    def _let_in(self) -> None:
        if self.config.access is not None and self.ports is not None and self._password is not None:
            self.config.access.install(LOOPBACK, self.ports.listener, self._password)

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError("the broker was never started")
        return self._process

    def _release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _class_path(cache: Path) -> str:
    if os.pathsep in str(cache):
        raise UsageError(
            f"Kafka's jars cannot be kept in {cache}, since {os.pathsep} ends a path for Java:"
            " set another directory in PLACET_CACHE."
        )
    return os.pathsep.join(map(str, ensure_jars(cache)))


def _check_space(directory: Path) -> None:
    status = os.statvfs(directory)
    if status.f_bavail * status.f_frsize < LOWEST_FREE_BYTES:
        raise DiskFullError(
            f"The disk that holds {directory} has less than {LOWEST_FREE_BYTES // 2**20} MiB left: "
            "free space, or choose another --data-dir."
        )


def _choose_ports(layout: Layout, wanted: int) -> Ports:
    remembered = _remembered(layout)
    listener = wanted or (remembered.listener if remembered else 0)
    if wanted and not is_free(wanted):
        raise PortTakenError(f"Port {wanted} on {LOOPBACK} is taken: choose another, or 0 for any free one.")
    if not listener or not is_free(listener):
        listener = free_port()
    controller = remembered.controller if remembered else listener
    if controller == listener or not is_free(controller):
        controller = free_port(other_than=[listener])
    ports = Ports(listener, controller)
    layout.ports.write_text(json.dumps(asdict(ports)), encoding="utf-8")
    return ports


def _remembered(layout: Layout) -> Ports | None:
    values = read_json(layout.ports)
    if values is None:
        return None
    try:
        return Ports(int(values["listener"]), int(values["controller"]))
    except (KeyError, TypeError, ValueError) as error:
        raise damaged(layout.ports, f"it does not contain two ports: {error}") from error
