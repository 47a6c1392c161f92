"""What must exist before the first role starts: keys, the owner's token, and the topics.

`placet up` does this itself. Where something else runs the processes (docker-compose.yml), this is the first step:

    python -m ops.install --config /etc/placet/placet.json
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from gateway.identity.doors import OWNER_TENANT
from gateway.identity.issuer import issue
from gateway.identity.keys import KeysUnreadable
from ops.config import DataDir, StackConfig, load_config
from ops.errors import OpsError, UsageError
from ops.files import write_text
from ops.kafka.acl import INSTALLATION
from ops.kafka.security import client_settings
from ops.private import keep_private
from ops.schema_registry import import_from_environment
from ops.topics import ensure_topics
from schemas.topics import Topics

OWNER = "admin"
PROJECT = "default"


def install_keys(directory: DataDir) -> None:
    """Have the installation's keys, and a fresh token for its owner in `admin.token` (mode 600).

    Raises:
        UsageError: A key file is damaged.
    """
    try:
        token = issue(directory.keys, OWNER, (OWNER,), OWNER_TENANT, PROJECT)
    except KeysUnreadable as error:
        raise UsageError(str(error)) from error
    write_text(directory.admin_token, token + "\n", mode=0o600)


def install_topics(config: StackConfig) -> None:
    """Have the schemas in the registry, if one is named, and then every topic, with its partition count.

    Raises:
        OpsError: The cluster or registry does not answer, or has something else under our names.
    """
    import_from_environment()
    asyncio.run(
        ensure_topics(
            config.bootstrap_servers,
            topics=Topics(prefix=config.topic_prefix),
            partitions=config.partitions,
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
        install_topics(config)
    except OpsError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
