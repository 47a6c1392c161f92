"""A stack without a terminal: its supervisor as a process of its own, waited for, and told to stop."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from ops import process
from ops.config import DataDir
from ops.errors import OpsError, UsageError
from ops.file_modes import keep_private
from ops.files import is_full, unusable
from ops.options import Limits, Probes, UpOptions
from ops.status import Stack, read_stack, unnamed_supervisor

POLL_S = 0.1
STOP_TIMEOUT_S = 60.0
PATHS = ("data_dir", "kafka_settings", "gateway_policy", "audit_heads_dir", "notifications", "grpc_tls")


def start_detached(options: UpOptions) -> Stack:
    """Start a stack that outlives this process; returns when it is ready.

    Raises:
        OpsError: It could not be started; the message says what to do.
    """
    log = options.directory.log("supervisor")
    keep_private(options.directory.root)
    hears, tells = os.pipe()
    with os.fdopen(hears, "rb") as answer, _opened(log, options.directory.root) as output:
        child = subprocess.Popen(  # noqa: S603 - the command is built here
            # The directory says in a list of processes which stack this is; nothing reads it.
            [sys.executable, "-m", "ops.daemon", str(tells), str(options.directory.root)],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=process.PACKAGE_ROOT,
            start_new_session=True,
            pass_fds=(tells,),
        )
        os.close(tells)
        # The options are not in its arguments, which every user of the machine can list.
        with cast("IO[bytes]", child.stdin) as asked:
            asked.write(to_json(options).encode())
        said = answer.read()
    if said == b"ready":
        child.returncode = 0  # it outlives this process: nobody here waits for its end
        return read_stack(options.directory)
    child.wait()
    if said:
        raise _failure(json.loads(said))
    if is_full(options.directory.root):
        # Then its log has nothing of it either.
        raise unusable(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), options.directory.root)
    raise OpsError(f"The stack did not start: read {log}.")


def stop_stack(directory: DataDir) -> bool:
    """Stop the stack that runs in a data directory, and wait for its end.

    Returns:
        Whether one was running.

    Raises:
        OpsError: It did not end in time, or the status file does not name it.
    """
    stack = read_stack(directory)
    if stack.pid is None or not process.is_same(stack.pid, stack.started):
        if unnamed := unnamed_supervisor(directory):
            raise OpsError(unnamed)
        return False
    # It can end at any moment, also between the two.
    with suppress(ProcessLookupError):
        os.kill(stack.pid, signal.SIGTERM)
        # A frozen one takes the signal only when it goes on.
        os.kill(stack.pid, signal.SIGCONT)
    deadline = time.monotonic() + STOP_TIMEOUT_S
    while process.is_same(stack.pid, stack.started):
        if time.monotonic() > deadline:
            raise OpsError(
                f"The stack (process {stack.pid}) has not ended in {STOP_TIMEOUT_S:.0f} s: kill it."
            )
        time.sleep(POLL_S)
    return True


def to_json(options: UpOptions) -> str:
    """The options as text for another process; every path absolute."""
    paths = {name: getattr(options, name) for name in PATHS}
    return json.dumps(asdict(options) | {name: path and str(path.absolute()) for name, path in paths.items()})


def from_json(text: str) -> UpOptions:
    """The options that `to_json` wrote."""
    values: dict[str, Any] = json.loads(text)
    paths = {name: Path(values[name]) for name in PATHS if values[name]}
    values |= {"gateway_origins": tuple(values["gateway_origins"]), "limits": Limits(*values["limits"])}
    values["probes"] = Probes(*values["probes"])
    return UpOptions(**(values | paths))


def main(tells: int, options: UpOptions) -> int:
    """Supervise one stack until SIGTERM.

    Args:
        tells: The descriptor that takes `ready`, or why it could not start, and is closed then.
        options: What to start.
    """
    from ops.supervisor import Supervisor

    with os.fdopen(tells, "wb") as answer:

        def on_ready(stack: Stack) -> None:
            _say(f"Ready at {stack.url}")
            _answer(answer, b"ready")

        try:
            Supervisor(options, _say).run(on_ready)
        except OpsError as error:
            _say(str(error))
            _answer(answer, json.dumps({"message": str(error), "exit_code": error.exit_code}).encode())
            return error.exit_code
        except Exception as error:
            why, log = f"{type(error).__name__}: {error}", options.directory.log("supervisor")
            _answer(answer, json.dumps({"message": f"The stack did not start ({why}): read {log}."}).encode())
            raise
    return 0


def _answer(answer: BinaryIO, said: bytes) -> None:
    """Tell who started this stack, once; who does not wait any more is not told, and the stack goes on."""
    if answer.closed:
        return
    try:
        answer.write(said)
        answer.close()
    except BrokenPipeError:
        _say("The process that started this stack has ended and was not notified")


def _opened(log: Path, root: Path) -> BinaryIO:
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        return log.open("ab")
    except OSError as error:
        raise unusable(error, root) from error


def _failure(said: Mapping[str, Any]) -> OpsError:
    kind = UsageError if said.get("exit_code") == UsageError.exit_code else OpsError
    return kind(said["message"])


def _say(text: str) -> None:
    # A file on a disk that may be full: what cannot be written down there ends nothing.
    with suppress(OSError):
        sys.stderr.write(f"{time.strftime('%Y-%m-%dT%H:%M:%S')} {text}\n")


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), from_json(sys.stdin.read())))
