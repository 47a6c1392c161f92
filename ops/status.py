"""What runs in a data directory, by the status files of the supervisor and its components and by what is alive."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ops import process
from ops.component import BACKING_OFF, DEGRADED, FAILED, KAFKA, READY, STARTING, STOPPED, Component
from ops.config import DataDir
from ops.errors import UsageError
from ops.files import damaged, is_full, read_json, write_json
from ops.locks import supervisor_of
from ops.role import GRPC
from vitals.disks import SQLITE, short_of_room
from vitals.heartbeat import SILENT, SILENT_AFTER_S, Heartbeat, observed_state
from vitals.heartbeat_file import read_heartbeat


@dataclass(frozen=True)
class Stack:
    """A stack as its supervisor sees it.

    Attributes:
        state: starting, ready, degraded (a part is not), stopping, stopped or failed.
        pid: The supervisor's process id.
        started: When that process started, in clock ticks since boot; a later one with its id differs.
        url: The gateway's address.
        bootstrap_servers: The Kafka cluster.
        bridge_address: The gateway's second port, as host and port; None if there is none.
        components: Its processes.
        message: Why it failed, in one sentence.
        exit_code: The exit code that goes with the message.
    """

    state: str
    pid: int | None = None
    started: int = 0
    url: str | None = None
    bootstrap_servers: str | None = None
    components: tuple[Component, ...] = ()
    message: str = ""
    exit_code: int = 0
    bridge_address: str | None = None


def write_stack(directory: DataDir, stack: Stack) -> None:
    """Tell other processes how the stack is."""
    write_json(directory.state, asdict(stack) | {"at": time.time(), "place": _place(directory)})


def read_stack(directory: DataDir) -> Stack:
    """How the stack in a directory is now; the last status of a dead supervisor does not count.

    Raises:
        UsageError: The supervisor's status file is damaged.
    """
    try:
        written = _read_written(directory)
    except UsageError as error:
        pid = supervisor_of(directory.root)
        if pid is None:
            raise
        raise UsageError(f"{error} First end the stack's supervisor: `kill {pid}`.") from error
    if written is None:
        return Stack(STOPPED, message=unnamed_supervisor(directory) or _no_room(directory))
    stack, is_here = written
    components = observed(stack.components, directory)
    stack = replace(stack, components=components)
    if stack.state in (STOPPED, FAILED):
        return replace(stack, message=stack.message or _no_room(directory))
    if is_here and process.is_same(stack.pid, stack.started):
        return _as_it_is(stack, directory)
    gone = tuple(Component(part.name, None, STOPPED) for part in components)
    return Stack(
        STOPPED,
        url=stack.url,
        bootstrap_servers=stack.bootstrap_servers,
        bridge_address=stack.bridge_address,
        components=gone,
        message=unnamed_supervisor(directory) or _no_room(directory),
    )


def _read_written(directory: DataDir) -> tuple[Stack, bool] | None:
    """The supervisor's status file, and whether its supervisor is this directory's; None without the file.

    Raises:
        UsageError: The file is damaged.
    """
    written = read_json(directory.state)
    if written is None:
        return None
    written.pop("at", None)
    # In a copy that was made while the stack ran, the supervisor is another directory's.
    is_here = written.pop("place", None) in (None, _place(directory))
    try:
        components = tuple(Component(**row) for row in written.pop("components"))
        return Stack(**written, components=components), is_here
    except (KeyError, TypeError) as error:
        raise damaged(directory.state, error) from error


def unnamed_supervisor(directory: DataDir) -> str:
    """One sentence where a supervisor runs that the status file does not name; empty otherwise."""
    pid = supervisor_of(directory.root)
    if pid is None:
        return ""
    return f"A stack runs here, and {directory.state} does not name it: end its supervisor with `kill {pid}`."


def role_state(directory: DataDir, name: str, pid: int | None) -> tuple[str, str | None, str]:
    """A role's state, address and trouble by its own status file, if that comes from this process and is not old."""
    found = read_heartbeat(directory.status(name))
    if found is None or found[0].pid != pid:
        return STARTING, None, ""
    heartbeat, age_s = found
    state = observed_state(heartbeat, age_s)
    reason = f"silent for {age_s:.1f} s" if state == SILENT else "; ".join(heartbeat.problems())
    if state == STARTING:
        return state, heartbeat.address, heartbeat.reason or left_to_read(heartbeat)
    return state, heartbeat.address, reason if state != READY else ""


def left_to_read(heartbeat: Heartbeat) -> str:
    """What a role has left to read, in words that follow its name; empty if it has nothing or does not know."""
    left = heartbeat.lag_records
    return f"has {left:,} record{'s' if left > 1 else ''} left to read" if left else ""


def observed(parts: Sequence[Component], directory: DataDir) -> tuple[Component, ...]:
    """Components as they are now: by what is alive, by their status files, and Kafka by its answers to the roles."""
    found = tuple(_observed(part, directory) for part in parts)
    answered = [age for part in found if (age := _kafka_age_s(part, directory)) is not None]
    if not answered or min(answered) <= SILENT_AFTER_S:
        return found
    reason = f"has not answered for {min(answered):.1f} s"
    return tuple(
        replace(part, state=SILENT, reason=reason) if part.name == KAFKA and part.state == READY else part
        for part in found
    )


def as_protocol(stack: Stack) -> dict[str, Any]:
    """The answer of `placet status --json`; the sign-in link comes with the console."""
    grpc = next((part.address for part in stack.components if part.name == GRPC.name), None)
    return {
        "state": stack.state,
        "message": stack.message,
        "url": stack.url,
        "sign_in_url": None,
        "bootstrap_servers": stack.bootstrap_servers,
        "grpc_address": grpc,
        "bridge_address": stack.bridge_address,
        "components": [asdict(part) for part in stack.components],
    }


def _place(directory: DataDir) -> list[int]:
    """What tells a directory from its copy, and not from itself under another path: its device and inode."""
    found = directory.root.stat()
    return [found.st_dev, found.st_ino]


def _observed(part: Component, directory: DataDir) -> Component:
    if part.pid is None or not process.is_alive(part.pid):
        state = BACKING_OFF if part.state == BACKING_OFF else STOPPED
        return replace(part, pid=None, state=state, address=None, probe_address=None)
    if part.name == KAFKA:
        return part
    state, address, reason = role_state(directory, part.name, part.pid)
    # While it starts again, what ended it before is all that is known.
    why = reason or (part.reason if state != READY else "")
    probe = _probe_address(directory, part)
    return replace(part, state=state, address=address, reason=why, probe_address=probe)


def _probe_address(directory: DataDir, part: Component) -> str | None:
    found = read_heartbeat(directory.status(part.name))
    return found[0].probe if found is not None and found[0].pid == part.pid else None


def _kafka_age_s(part: Component, directory: DataDir) -> float | None:
    """How long ago Kafka answered a role that can tell; None where it cannot."""
    found = None if part.pid is None or part.name == KAFKA else read_heartbeat(directory.status(part.name))
    if found is None or found[0].pid != part.pid or found[1] > SILENT_AFTER_S:
        return None
    return _age_s(found[0])


def _age_s(heartbeat: Heartbeat) -> float | None:
    return None if heartbeat.kafka_age_ms is None else heartbeat.kafka_age_ms / 1000


def _as_it_is(stack: Stack, directory: DataDir) -> Stack:
    """The supervisor's status with what it could not write down: parts in trouble, a disk that takes nothing."""
    troubled = [part for part in stack.components if part.state != READY]
    if stack.pid is not None and process.is_frozen(stack.pid):
        # Its own status is old then, and no part that ends is started again.
        frozen = (
            f"the supervisor (process {stack.pid}) is frozen and restarts nothing: kill -CONT {stack.pid}"
        )
        ill = [f"{part.name} {part.reason or 'is ' + part.state}" for part in troubled]
        return replace(stack, state=DEGRADED, message="; ".join([frozen, *ill]))
    if stack.state != READY:
        return stack
    full, low = short_disks(directory)
    if not troubled:
        return replace(stack, message=" ".join((*full, *low)) or stack.message)
    told = [f"{part.name} {part.reason or 'is ' + part.state}" for part in troubled]
    is_told = any(stack.message in said for said in told)
    happened = [] if is_told else [stack.message]
    message = " ".join(full) or unwritable(directory) or "; ".join([*told, *happened])
    return replace(stack, state=DEGRADED, message=". ".join((message.rstrip("."), *low)) if low else message)


def short_disks(directory: DataDir) -> tuple[list[str], list[str]]:
    """One sentence for each disk of the stack that takes nothing more, and for each that soon will not."""
    full, low = [], []
    paths = _written_paths(directory)
    for number, short in short_of_room(paths):
        told = f"The disk that holds {paths[number]} {short.told}"
        if short.is_full:
            full.append(f"{told}; processes that had to end are then started again.")
        else:
            low.append(f"{told}.")
    return full, low


def _written_paths(directory: DataDir) -> list[Path]:
    found = [directory.root, directory.kafka]
    try:
        config = read_json(directory.config) or {}
    except UsageError:
        # What runs was started before it was damaged, and can be looked at and stopped without it.
        return found
    url = str(config.get("database_url") or "")
    if url.startswith(SQLITE):
        found.append(Path(url.removeprefix(SQLITE)))
    if heads := config.get("audit_heads_dir"):
        found.append(Path(str(heads)))
    return found


def _no_room(directory: DataDir) -> str:
    """Where nothing runs: what keeps it from being started."""
    return (
        f"The disk that holds {directory.root} is full: free space first." if is_full(directory.root) else ""
    )


def unwritable(directory: DataDir) -> str:
    """One sentence where a stack's own files can no longer be written there; empty otherwise.

    It is tried, for only an attempt meets a read-only mount, an attribute of the file system and a missing permission
    alike. Who asks must be the directory's owner: what others may write says nothing of the stack.
    """
    for path in (directory.root, directory.state.parent, directory.kafka):
        try:
            if path.stat().st_uid == os.geteuid():
                tempfile.TemporaryFile(dir=path).close()
        except FileNotFoundError:
            continue
        except OSError as error:
            return (
                f"{path} cannot be written ({error.strerror or error}): make it writable again; processes that had "
                "to end are then started again."
            )
    return ""
