"""What must exist before the first role starts: keys, the owner's token, and the topics.

`placet up` does this itself. Where something else runs the processes (docker-compose.yml), this is the first step:

    python -m ops.install --config /etc/placet/placet.json
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from gateway.identity.authentication import OWNER_TENANT
from gateway.identity.issuer import issue
from gateway.identity.keys import KeysUnreadable
from host.key_files import DECIDER_KEY, DECIDERS, load_published
from ops.config import DataDir, StackConfig, load_config
from ops.errors import OpsError, UsageError
from ops.file_modes import keep_private
from ops.files import write_text
from ops.kafka.access import Access
from ops.kafka.acl import INSTALLATION
from ops.kafka.security import client_settings
from ops.ports import broker_addresses
from ops.schema_registry import import_from_environment
from ops.signing_start import install_signed_from
from ops.topics import ensure_topics
from schemas.ids import TENANT_WIDE
from schemas.topics import Topics

OWNER = "admin"
# Of the user `kafka`, which brokers are to each other (docker-compose.yml).
BROKER_PASSWORD = "PLACET_KAFKA_BROKER_PASSWORD"  # noqa: S105 - a variable's name


def install_keys(directory: DataDir) -> None:
    """Have the installation's keys, and a fresh token for its owner in `admin.token` (mode 600).

    It is of the whole tenant: it publishes for every project, and works in `default` where none is named.

    Raises:
        UsageError: A key file is damaged.
    """
    try:
        # Every reader of the log wants to know it, whichever role starts first.
        load_published(directory.keys, DECIDER_KEY, DECIDERS)
        token = issue(directory.keys, OWNER, (OWNER,), OWNER_TENANT, TENANT_WIDE)
    except KeysUnreadable as error:
        raise UsageError(str(error)) from error
    write_text(directory.admin_token, token + "\n", mode=0o600)


def install_principals(config: StackConfig, environment: Mapping[str, str] = os.environ) -> None:
    """Have a principal for each role on a cluster whose brokers' own password is given, as the embedded one has.

    Nothing is done without that password: the principals of a shared cluster are its operator's.

    Raises:
        OpsError: A broker does not let itself in by that password, or takes no users.
        UsageError: The configuration says no directory for the principals' files.
    """
    password = environment.get(BROKER_PASSWORD, "")
    if not password:
        return
    if not config.kafka_settings or Path(config.kafka_settings).is_file():
        raise UsageError(
            f"{BROKER_PASSWORD} is given, so kafka_settings must name a directory for a file of each role."
        )
    access = Access(Path(config.kafka_settings), Topics(prefix=config.topic_prefix))
    access.make_files()
    for host, port in broker_addresses(config.bootstrap_servers):
        access.install(host, port, password)


def install_topics(config: StackConfig, partitions: int | None) -> int:
    """Have the schemas in the registry, if one is named, and then every topic, with its partition count.

    Args:
        config: The installation's.
        partitions: Of the log; None takes what a log that is there has.

    Returns:
        The log's partitions.

    Raises:
        OpsError: The cluster or registry does not answer, or has something else under our names.
    """
    import_from_environment()
    return asyncio.run(
        ensure_topics(
            config.bootstrap_servers,
            topics=Topics(prefix=config.topic_prefix),
            partitions=partitions,
            replication_factor=config.replication_factor,
            min_insync_replicas=min(2, config.replication_factor),
            security=client_settings(config.kafka_settings_of(INSTALLATION)),
        )
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Install what a configuration asks for.

    Returns:
        The exit code.
    """
    parser = argparse.ArgumentParser(prog="python -m ops.install", description="Make keys and topics.")
    parser.add_argument("--config", type=Path, required=True, help="the installation's placet.json")
    try:
        config = load_config(parser.parse_args(arguments).config)
        keep_private(config.directory.root)
        install_keys(config.directory)
        install_principals(config)
        install_topics(config, config.partitions)
        install_signed_from(config)
    except OpsError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
