"""The program that runs one role of a stack.

python -m ops.roles decider --config .placet/placet.json
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from host.errors import SettingsRefused
from host.outgoing_tls import TlsRefused, outgoing_tls
from ops.config import StackConfig, load_config
from ops.errors import OpsError, UsageError
from ops.file_modes import UMASK
from ops.role import ROLES
from vitals import tracing
from vitals.logs import JSON, log_to_stderr

Run = Callable[[Mapping[str, str]], None]


def roles_of(config: StackConfig) -> tuple[str, ...]:
    """The roles that a stack runs."""
    return tuple(
        role.name for role in ROLES.values() if not role.asked_for_by or getattr(config, role.asked_for_by)
    )


def load_role(role: str) -> Run:
    """The function that a role runs, imported only now: each process loads its own room and no other."""
    module, _, name = ROLES[role].run.partition(":")
    run: Run = getattr(importlib.import_module(module), name)
    return run


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one role until it ends.

    Returns:
        The exit code: 0 after a clean stop.
    """
    parsed = _parser().parse_args(arguments)
    with ExitStack() as running:
        try:
            config = load_config(parsed.config)
            check_tls()
            log_to_stderr(config.log_level, config.log_format)
            os.umask(UMASK)
            os.nice(ROLES[parsed.role].niceness)
            _begin_telemetry(running, parsed.role, config)
        except OpsError as error:
            sys.stderr.write(f"{error}\n")
            return error.exit_code
        settings = config.settings_for(parsed.worker_id or parsed.role, parsed.role)
        if parsed.probe_port is not None:
            settings["probe_port"] = str(parsed.probe_port)
        load_role(parsed.role)(settings)
    return 0


def check_tls() -> None:
    """Refuse certificate authorities that no connection could be checked by.

    Raises:
        UsageError: A file that is named for them cannot be used.
    """
    try:
        outgoing_tls()
    except TlsRefused as error:
        raise UsageError(f"{error}.") from error


def check_telemetry() -> None:
    """Refuse variables of OpenTelemetry that no role would start with.

    Raises:
        UsageError: They ask for what is not supported, or the SDK refuses them.
    """
    try:
        tracing.check(os.environ)
    except SettingsRefused as error:
        raise UsageError(f"{error}.") from error


def _begin_telemetry(running: ExitStack, role: str, config: StackConfig) -> None:
    try:
        running.enter_context(tracing.telemetry(role, os.environ, json_logs=config.log_format == JSON))
    except SettingsRefused as error:
        raise UsageError(f"{error}.") from error


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m ops.roles", description="Run one role of a stack.")
    parser.add_argument("role", choices=sorted(ROLES))
    parser.add_argument("--config", type=Path, required=True, help="the stack's placet.json")
    parser.add_argument("--probe-port", type=int, help="where its probe listens; 0 for any free port")
    parser.add_argument("--worker-id", help="its name among several of the same role; the role by default")
    return parser


if __name__ == "__main__":
    sys.exit(main())
