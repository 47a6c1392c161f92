"""A whole stack in one data directory: Kafka first, then the roles; watched, and stopped in reverse.

A start is: 1 take the directory · 2 make the keys · 3 start Kafka · 4 settle the configuration · 5 ensure the
topics and look whether the log is whole · 6 start the roles · 7 wait until each says ready and the gateway answers
/readyz.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from http.client import HTTPConnection, HTTPException
from types import FrameType
from typing import Any

from ops import process
from ops.child import RoleChild, role_command
from ops.component import FAILED, READY, STARTING, STOPPED, STOPPING, Component
from ops.config import DataDir, StackConfig, save_config
from ops.errors import OpsError, RoleFailedError, StoppedEarlyError
from ops.file_modes import keep_private
from ops.files import unusable
from ops.install import install_keys, install_topics
from ops.kafka.access import Access
from ops.kafka.child import KafkaChild
from ops.locks import lock_directory, name_holder
from ops.log_completeness import check_log_complete
from ops.options import UpOptions, check_addresses, settle
from ops.ports import reachable
from ops.process import STOP_SIGNALS
from ops.role import PROJECTOR, ROLES
from ops.roles import roles_of
from ops.signing_start import install_signed_from
from ops.stack_log import check_log_is_there
from ops.start_progress import StartProgress
from ops.status import Stack, write_stack
from ops.view_upgrade import are_outdated, check_database, start_view_rebuild
from schemas.topics import Topics

# Without any progress of a role that is still needed: reading a long log takes longer, and is no failure.
START_TIMEOUT_S = 90.0
# In all, for a role that reports progress and never ends.
START_LONGEST_S = 6 * 3600.0
TICK_S = 0.1
FAILURES_BEFORE_READY = 3
READYZ_TIMEOUT_S = 5.0
WRITE_AGAIN_S = 1.0
RENEWAL_GRACE_S = 10.0

_Handler = Callable[[int, FrameType | None], Any] | int | None


class StopRequested(BaseException):
    """SIGTERM, SIGINT or SIGHUP arrived: end what runs, then this process."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Supervisor:
    """Starts, watches and stops the processes of one stack."""

    def __init__(self, options: UpOptions, say: Callable[[str], None]) -> None:
        self.options = options
        self.directory = options.directory
        self.config: StackConfig | None = None
        self._say = say
        self._kafka: KafkaChild | None = None
        self._roles: tuple[RoleChild, ...] = ()
        self._written: Stack | None = None
        self._happened = ""
        self._write_at = 0.0
        self._unwritten = ""

    def run(self, on_ready: Callable[[Stack], None]) -> None:
        """Run the stack until a signal asks for its end; returns after a clean stop.

        Args:
            on_ready: Called once, when everything answers.

        Once it is ready, nothing that goes wrong ends it: what fails is tried again until it is stopped. A signal
        that stopped it leaves further ones ignored.

        Raises:
            StoppedEarlyError: A signal asked for its end before it was ready.
            OpsError: It could not be started; nothing is left running.
        """
        keep_private(self.directory.root)
        lock = lock_directory(self.directory.root)
        name_holder(lock)
        before = _stop_on_signals()
        is_ready = False
        try:
            self._start()
            stack, is_ready = self._report(READY), True
            on_ready(stack)
            self._watch()
        except StopRequested as asked:
            # The process only ends now: a second signal must change neither how, nor its exit code.
            before = {}
            self._stop()
            self._report(STOPPED)
            if not is_ready:
                raise StoppedEarlyError(asked.number) from None
        except OSError as error:
            self._stop()
            refused = unusable(error, self.directory.root)
            self._report(FAILED, refused)
            raise refused from error
        except BaseException as error:
            self._stop()
            self._report(FAILED, error)
            raise
        finally:
            os.close(lock)
            for number, handler in before.items():
                signal.signal(number, handler)

    def _start(self) -> None:
        self._report(STARTING)
        check_addresses(self.options)
        check_database(self.options.database_url)
        install_keys(self.directory)
        bootstrap_servers = self.options.bootstrap_servers or self._start_kafka()
        self.config = settle(self.options, bootstrap_servers)
        partitions = install_topics(self.config, self.options.partitions)
        self.config = replace(self.config, partitions=partitions)
        # Before the log is looked at: what mends it, placet replay in a copy of a directory, goes by this file.
        save_config(self.config)
        check_log_complete(self.config)
        install_signed_from(self.config)
        self._roles = tuple(
            RoleChild(role, role_command(role, self.directory), self.directory)
            for role in roles_of(self.config)
        )
        outdated = are_outdated(self.config.database_url)
        for role in self._roles:
            if role.name != PROJECTOR.name or not outdated:
                role.start()
        if outdated:
            self._renew_views(self.config)
        self._wait_ready(self.config)

    def _start_kafka(self) -> str:
        check_log_is_there(self.directory)
        self._say("Starting Kafka")
        self._kafka = KafkaChild(
            self.directory.kafka, Access(self.directory.kafka_clients, Topics(self.options.topic_prefix))
        )
        servers = self._kafka.start()
        check_log_is_there(self.directory)
        return servers

    def _renew_views(self, config: StackConfig) -> None:
        """Rebuild the views while the roles that do not need them work; only then start the projector."""
        self._say("Another version of Placet built the views: rebuilding them from the log")
        renewal = start_view_rebuild(self.directory, config.bootstrap_servers)
        try:
            while renewal.poll() is None:
                self._tick()
                self._report(STARTING)
                time.sleep(TICK_S)
        finally:
            process.stop(renewal, RENEWAL_GRACE_S)
        if renewal.returncode != 0:
            raise RoleFailedError(
                "The views could not be rebuilt, and the old ones are unchanged: read the output above, or "
                f"with --detach {self.directory.log('supervisor')}."
            )
        for role in self._roles:
            if role.name == PROJECTOR.name:
                role.start()

    def _wait_ready(self, config: StackConfig) -> None:
        self._say("Starting " + ", ".join(role.name for role in self._roles))
        progress = StartProgress(self.directory, time.monotonic())
        while not (self._all_ready() and answers_ready(config)):
            self._tick()
            waited_for = [role for role in self._roles if not role.is_ready]
            needed = [role for role in waited_for if not ROLES[role.name].may_lag]
            if left := progress.look([role.component for role in needed], time.monotonic()):
                self._tell(left)
            is_late = _is_late(progress, time.monotonic())
            gave_up = [role for role in waited_for if is_late or self._fails(role)]
            for role in gave_up:
                if role in needed:
                    raise _not_ready(role, self.directory, progress.left_of(role.name))
            if gave_up and not needed and answers_ready(config):
                named = ", ".join(role.name for role in waited_for)
                self._say(f"Not ready yet: {named}; decisions are made meanwhile")
                return
            if is_late:
                raise RoleFailedError(f"The gateway at {config.url} does not answer /readyz: read its log.")
            self._report(STARTING)
            time.sleep(TICK_S)

    def _fails(self, role: RoleChild) -> bool:
        # What ends without Kafka may be in order, and what was ready can be: it is started again.
        is_new = not role.was_ready and not self._kafka_is_away()
        return is_new and role.failures >= FAILURES_BEFORE_READY

    def _all_ready(self) -> bool:
        return all(role.is_ready for role in self._roles)

    def _watch(self) -> None:
        while True:
            self._tick()
            self._report(READY)
            time.sleep(TICK_S)

    def _tick(self) -> None:
        """Let each part take one step; none waits for another, so that a gateway answers while Kafka starts."""
        was_away = self._kafka_is_away()
        for member in (*((self._kafka,) if self._kafka else ()), *self._roles):
            happened = member.tick(time.monotonic())
            if happened:
                self._tell(happened)
        if was_away and not self._kafka_is_away():
            for role in self._roles:
                role.hasten()

    def _kafka_is_away(self) -> bool:
        return self._kafka is not None and self._kafka.component.state != READY

    def _tell(self, happened: str) -> None:
        self._happened = happened
        # Where this is printed may be a file on the very disk that is full.
        with suppress(OSError):
            self._say(happened)

    def _stop(self) -> None:
        _ignore_signals()
        self._report(STOPPING)
        for role in self._roles:
            role.request_stop()
        for role in self._roles:
            role.stop()
        if self._kafka is not None:
            self._kafka.stop()

    def _report(self, state: str, error: BaseException | None = None) -> Stack:
        parts = self._components(ended=state in (STOPPED, FAILED))
        if all(part.state == READY for part in parts):
            # What happened before is over: it explains nothing that happens to another part later.
            self._happened = ""
        stack = Stack(
            state=state,
            pid=os.getpid(),
            started=process.started_ticks(os.getpid()),
            url=self.config.url if self.config else None,
            bootstrap_servers=self.config.bootstrap_servers if self.config else None,
            bridge_address=self.config.bridge_address if self.config else None,
            components=parts,
            message=str(error) if error else self._happened,
            exit_code=error.exit_code if isinstance(error, OpsError) else int(error is not None),
        )
        if stack != self._written and (state != READY or time.monotonic() >= self._write_at):
            self._write(stack)
        return stack

    def _write(self, stack: Stack) -> None:
        """Write the stack's state down; a disk that is full takes nobody away from watching."""
        try:
            write_stack(self.directory, stack)
        except OSError as error:
            self._write_at = time.monotonic() + WRITE_AGAIN_S
            if not self._unwritten:
                self._unwritten = str(error)
                self._tell(f"{self.directory.state} cannot be written ({error.strerror or error})")
        else:
            self._written, self._unwritten = stack, ""

    def _components(self, *, ended: bool) -> tuple[Component, ...]:
        kafka = (self._kafka.component,) if self._kafka else ()
        parts = (*kafka, *(role.component for role in self._roles))
        return tuple(Component(part.name, None, STOPPED) for part in parts) if ended else parts


def answers_ready(config: StackConfig) -> bool:
    """Whether the gateway's /readyz says 200."""
    host = reachable(config.gateway_host)
    connection = HTTPConnection(host, config.gateway_port, timeout=READYZ_TIMEOUT_S)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


def _is_late(progress: StartProgress, now_s: float) -> bool:
    return now_s > min(progress.moved_s + START_TIMEOUT_S, progress.begun_s + START_LONGEST_S)


def _not_ready(role: RoleChild, directory: DataDir, left: str) -> RoleFailedError:
    log = directory.log(role.name)
    why = "; ".join(filter(None, (left and f"it {left}", role.last_words())))
    return RoleFailedError(f"The {role.name} did not start ({why}): read {log} for the cause.")


def _ignore_signals() -> None:
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def _stop_on_signals() -> dict[int, _Handler]:
    """Raise `StopRequested` on the first stop signal, and return what handled them before.

    A hangup that is ignored stays ignored, so that a stack under nohup outlives its terminal.
    """
    is_nohup = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    taken = [number for number in STOP_SIGNALS if not (is_nohup and number == signal.SIGHUP)]
    return {number: signal.signal(number, _raise_stop) for number in taken}


def _raise_stop(number: int, frame: FrameType | None) -> None:
    # The next one may come before anything is stopped.
    _ignore_signals()
    raise StopRequested(number)
