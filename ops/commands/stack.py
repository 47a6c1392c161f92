"""`placet up`, `placet down` and `placet status`."""

from __future__ import annotations

import os
import shlex
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from gateway.settings import (
    DEFAULT_AGENT_PROPOSALS_PER_MINUTE,
    DEFAULT_GRPC_CALLS_AT_ONCE,
    DEFAULT_REQUESTS_PER_S,
    DEFAULT_TENANT_PROPOSALS_PER_MINUTE,
)
from host.errors import EXIT_UNREACHABLE
from ops.commands.common import DataDirOption, JsonOption, errors_as_exit_codes, print_json, print_line, table
from ops.component import READY, STOPPED
from ops.config import DEFAULT_DATA_DIR, DEFAULT_PORT, DataDir, check_log_format, check_log_level
from ops.daemon import start_detached, stop_stack
from ops.errors import UsageError
from ops.file_modes import hide_secrets
from ops.locks import wait_for_reader
from ops.options import Limits, Probes, UpOptions, check_data_dir, check_log_signatures, oidc_environment
from ops.ports import HIGHEST, LOOPBACK
from ops.roles import check_telemetry, check_tls
from ops.status import Stack, as_protocol, read_stack, unnamed_supervisor
from placet.cli.session import Settings, console
from projections.audit.head_settings import DEFAULT_EVENTS, DEFAULT_SECONDS
from schemas.event_signatures import REQUIRED
from schemas.topics import DEFAULT_PARTITIONS
from vitals.logs import TEXT

BootstrapServers = Annotated[
    str | None, typer.Option(envvar="PLACET_BOOTSTRAP_SERVERS", help="A Kafka cluster; embedded by default.")
]
DatabaseUrl = Annotated[
    str | None, typer.Option(envvar="DATABASE_URL", help="The database of the views; SQLite by default.")
]
Partitions = Annotated[
    int | None,
    typer.Option(
        min=1,
        help=f"Partitions of a new log; cannot be changed later ({DEFAULT_PARTITIONS}).",
        show_default=False,
    ),
]
KafkaSettings = Annotated[
    Path | None,
    typer.Option(
        help="JSON file with the cluster's SASL and TLS settings, or a directory of ROLE.json files."
    ),
]
GatewayPolicy = Annotated[
    Path | None, typer.Option(help="A policy file that makes this gateway stricter.", dir_okay=False)
]
Origins = Annotated[
    list[str] | None, typer.Option(help="A web origin whose pages may use the API; may be repeated.")
]
Requests = Annotated[
    int,
    typer.Option(
        "--requests-per-second",
        min=1,
        help="REST requests a second for each subject; the burst has the same size, and as many may wait.",
    ),
]
AgentProposals = Annotated[
    int,
    typer.Option("--agent-proposals-per-minute", min=1, help="Calls that one agent may propose a minute."),
]
TenantProposals = Annotated[
    int,
    typer.Option(
        "--tenant-proposals-per-minute",
        min=1,
        help="Calls that all agents of a tenant may propose a minute.",
    ),
]
GrpcCalls = Annotated[
    int, typer.Option(min=1, help="Calls of one subject that may be open over gRPC at once.")
]
HeadsDir = Annotated[
    Path | None, typer.Option(help="The directory of the audit heads; best on another disk.")
]
Webhook = Annotated[
    str, typer.Option(envvar="PLACET_AUDIT_WEBHOOK", help="A URL to which each audit head is posted.")
]
HeadEvents = Annotated[
    int, typer.Option(min=1, help="Sign an audit head after this many events of a tenant.")
]
HeadSeconds = Annotated[
    float, typer.Option(min=0.1, help="Sign an audit head after this many seconds, if there were events.")
]
Notifications = Annotated[Path | None, typer.Option(help="A notifications file (YAML).", dir_okay=False)]
GrpcPort = Annotated[
    int | None,
    typer.Option(min=0, max=HIGHEST, help="Serve gRPC on this port; 0 picks a free one. [default: no gRPC]"),
]
GrpcTls = Annotated[
    Path | None,
    typer.Option(help="A directory with tls.crt and tls.key: serve gRPC over TLS.", file_okay=False),
]
BridgePort = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=HIGHEST,
        help="The gateway also listens on this port; 0 picks a free one. [default: one port]",
    ),
]
# Options that may hold a password, and the variable that replaces each.
SECRET_OPTIONS = {"--database-url": "DATABASE_URL", "--audit-webhook": "PLACET_AUDIT_WEBHOOK"}
LogSignatures = Annotated[str, typer.Option(help="required, or off to count unsigned records too.")]
LogFormat = Annotated[
    str, typer.Option(envvar="PLACET_LOG_FORMAT", help="The form of the roles' logs: text, or json.")
]
LogLevel = Annotated[str, typer.Option(help="The roles' log level: DEBUG, INFO, WARNING, ERROR.")]
GatewayPort = Annotated[int, typer.Option(min=0, max=HIGHEST, help="The gateway's port; 0 picks a free one.")]
ProbeHost = Annotated[str, typer.Option(help="The address on which the roles' probes listen.")]
ProbePort = Annotated[
    int, typer.Option(min=0, max=65_000, help="The first port of the roles' probes; 0 picks free ones.")
]


def up(
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
    bootstrap_servers: BootstrapServers = None,
    kafka_settings: KafkaSettings = None,
    port: GatewayPort = DEFAULT_PORT,
    host: Annotated[str, typer.Option(help="The address on which the gateway listens.")] = LOOPBACK,
    database_url: DatabaseUrl = None,
    partitions: Partitions = None,
    replication_factor: Annotated[int, typer.Option(min=1, help="Replicas of each new topic.")] = 1,
    topic_prefix: Annotated[str, typer.Option(help="Prefix of the topics' names.")] = "placet",
    gateway_policy: GatewayPolicy = None,
    origin: Origins = None,
    requests: Requests = DEFAULT_REQUESTS_PER_S,
    agent_proposals: AgentProposals = DEFAULT_AGENT_PROPOSALS_PER_MINUTE,
    tenant_proposals: TenantProposals = DEFAULT_TENANT_PROPOSALS_PER_MINUTE,
    grpc_calls: GrpcCalls = DEFAULT_GRPC_CALLS_AT_ONCE,
    audit_heads_dir: HeadsDir = None,
    audit_webhook: Webhook = "",
    audit_head_events: HeadEvents = DEFAULT_EVENTS,
    audit_head_seconds: HeadSeconds = DEFAULT_SECONDS,
    notifications: Notifications = None,
    grpc_port: GrpcPort = None,
    grpc_tls: GrpcTls = None,
    bridge_port: BridgePort = None,
    log_signatures: LogSignatures = REQUIRED,
    log_level: LogLevel = "INFO",
    log_format: LogFormat = TEXT,
    probe_host: ProbeHost = LOOPBACK,
    probe_port: ProbePort = 0,
    detach: Annotated[bool, typer.Option("--detach", help="Return when it is ready.")] = False,
    json: JsonOption = False,
) -> None:
    """Start everything: Kafka (embedded unless a cluster is given), then one process a role."""
    options = UpOptions(
        data_dir=data_dir,
        port=port,
        host=host,
        bootstrap_servers=bootstrap_servers,
        kafka_settings=kafka_settings,
        database_url=database_url,
        partitions=partitions,
        replication_factor=replication_factor,
        topic_prefix=topic_prefix,
        gateway_policy=gateway_policy,
        gateway_origins=tuple(origin or ()),
        limits=Limits(requests, agent_proposals, tenant_proposals, grpc_calls),
        audit_heads_dir=audit_heads_dir,
        audit_webhook=audit_webhook,
        audit_head_events=audit_head_events,
        audit_head_seconds=audit_head_seconds,
        notifications=notifications,
        grpc_port=grpc_port,
        grpc_tls=grpc_tls,
        bridge_port=bridge_port,
        log_signatures=log_signatures,
        log_level=log_level.upper(),
        log_format=log_format,
        probes=Probes(probe_host, probe_port),
    )
    _start(options, detach=detach, json=json)


def _start(options: UpOptions, *, detach: bool, json: bool) -> None:
    hide_secrets(SECRET_OPTIONS)
    with errors_as_exit_codes():
        _run(_checked(options), detach=detach, json=json)


def _run(options: UpOptions, *, detach: bool, json: bool) -> None:
    wait_for_reader(options.directory.root, partial(print_line, err=True))
    if detach:
        _announce(start_detached(options), options.directory, json=json)
        return
    from ops.supervisor import Supervisor  # its imports take a second, which `placet status` does not need

    Supervisor(options, partial(print_line, err=True)).run(
        lambda stack: _announce(stack, options.directory, json=json)
    )


def _checked(options: UpOptions) -> UpOptions:
    check_data_dir(options.directory.root)
    check_log_level(options.log_level)
    check_log_format(options.log_format)
    check_log_signatures(options.log_signatures)
    _check_notifications(options.notifications)
    check_tls()
    check_telemetry()
    return replace(options, oidc=oidc_environment(os.environ))


def _check_notifications(file: Path | None) -> None:
    if file is not None:
        from ops.commands.notifications import load_file  # apprise is imported only if notifications are used

        load_file(file, os.environ)


def down(data_dir: DataDirOption = DEFAULT_DATA_DIR, json: JsonOption = False) -> None:
    """Stop the stack: the roles, then Kafka. Nothing is deleted."""
    directory = DataDir(data_dir.expanduser().absolute())
    with errors_as_exit_codes():
        stopped = stop_stack(directory)
    if json:
        print_json({"stopped": stopped})
    else:
        typer.echo("Stopped." if stopped else f"Nothing runs in {directory.root}.")


def status(
    context: typer.Context, data_dir: DataDirOption = DEFAULT_DATA_DIR, json: JsonOption = False
) -> None:
    """Show what runs. Exit code 3 if the stack or one of its components is not ready."""
    directory = DataDir(data_dir.expanduser().absolute())
    with errors_as_exit_codes():
        _check_no_url(context, directory)
        stack = read_stack(directory)
    if json:
        print_json(as_protocol(stack))
    else:
        _print_table(stack, directory)
    if any(state != READY for state in (stack.state, *(part.state for part in stack.components))):
        raise typer.Exit(EXIT_UNREACHABLE)


def _check_no_url(context: typer.Context, directory: DataDir) -> None:
    settings = context.find_object(Settings)
    if settings is not None and settings.url is not None:
        raise UsageError(
            f"`placet status` reads a data directory ({directory.root}; change it with --data-dir) and sends no"
            " request: leave out --url, or read the gateway's /readyz (docs/operations.md)."
        )


def _announce(stack: Stack, directory: DataDir, *, json: bool) -> None:
    if json:
        print_json(as_protocol(stack))
        return
    typer.echo(f"Placet is ready at {stack.url} (Kafka at {stack.bootstrap_servers}).")
    typer.echo(f"Admin token: {directory.admin_token}")


def _print_stopped(stack: Stack, directory: DataDir) -> None:
    """A stack that does not run: it has no address and no parts, so what remains is how to start it."""
    if unnamed_supervisor(directory):
        # Something runs, and another start would be refused.
        print_line(f"{stack.state}: no status of what runs in {directory.root}")
    else:
        print_line(f"Nothing runs in {directory.root}; --data-dir names another directory.")
        start = ["placet", "up"]
        if directory.root != DEFAULT_DATA_DIR.absolute():
            start += ["--data-dir", str(directory.root)]
        print_line(f"{stack.state}: `{shlex.join(start)}` starts it")
    if stack.message:
        print_line(stack.message)


def _print_table(stack: Stack, directory: DataDir) -> None:
    if stack.state == STOPPED:
        _print_stopped(stack, directory)
        return
    print_line(
        f"{stack.state}: {stack.url or 'no gateway'}, Kafka at {stack.bootstrap_servers or 'no address'}"
    )
    if stack.message:
        print_line(stack.message)
    shown = table("component", "pid", "state", "address", "restarts")
    for part in stack.components:
        shown.add_row(part.name, str(part.pid or ""), part.state, part.address or "", str(part.restarts))
    console().print(shown)
    for part in stack.components:
        if part.reason:
            print_line(f"{part.name}: {part.reason}")
