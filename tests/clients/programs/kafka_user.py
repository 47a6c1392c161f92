"""Makes a Kafka user with the rights that docs/log-contract.md grants a service, and a group of its own.

python kafka_user.py BROKERS OWNERS_SETTINGS USER GROUP_PREFIX OUT    both files in the format of --kafka-settings
"""

from __future__ import annotations

import json
import os
import secrets
import sys
from pathlib import Path

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

WITHIN_S = 90
LITERAL, PREFIXED = ResourcePatternType.LITERAL, ResourcePatternType.PREFIXED


def main(brokers: str, owner: str, user: str, group: str, out: str) -> None:
    """Make the user, and write its settings."""
    settings = json.loads(Path(owner).read_text(encoding="utf-8"))
    admin = AdminClient(
        {
            "bootstrap.servers": brokers,
            "security.protocol": settings["security_protocol"],
            "sasl.mechanism": settings["sasl_mechanism"],
            "sasl.username": settings["sasl_plain_username"],
            "sasl.password": settings["sasl_plain_password"],
        }
    )
    password = secrets.token_urlsafe(32)
    scram = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    made = admin.alter_user_scram_credentials(
        [UserScramCredentialUpsertion(user, scram, password.encode())], request_timeout=WITHIN_S
    )
    rows = (
        (ResourceType.TOPIC, "placet.commands", LITERAL, AclOperation.WRITE),
        (ResourceType.TOPIC, "placet.executions", LITERAL, AclOperation.READ),
        (ResourceType.GROUP, group, PREFIXED, AclOperation.READ),
    )
    allowed = admin.create_acls(
        [
            AclBinding(kind, name, pattern, f"User:{user}", "*", operation, AclPermissionType.ALLOW)
            for kind, name, pattern, operation in rows
        ],
        request_timeout=WITHIN_S,
    )
    for done in (*made.values(), *allowed.values()):
        done.result(WITHIN_S)
    named = {**settings, "sasl_plain_username": user, "sasl_plain_password": password}
    with os.fdopen(os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(named, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
