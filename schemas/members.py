"""Names of members of consumer groups: the same whenever a process is started, and no other's.

A process that was killed so has its partitions again as soon as it is back (static membership, KIP-345); two that
happened to have the same name would take them from each other for ever.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence

NAME_KEPT = 100


def member_name(settings: Mapping[str, str], hostname: str) -> str:
    """The name of the process that a role's settings start.

    Its worker id alone would not do: every replica of a container, and every installation on a shared Kafka, has the
    same one by default.

    Args:
        settings: of the role; `worker_id` and `data_dir` are read.
        hostname: of the machine.
    """
    return f"{settings['worker_id']}@{hostname}:{settings['data_dir']}"


def instance_id(member: str, topics: Sequence[str]) -> str:
    """The `group.instance.id` of a member: its name as Kafka takes it, and what tells it from any other.

    Args:
        member: its name; only letters, digits, dots, hyphens and underscores of it are kept as they are.
        topics: what it subscribes to: the broker hands over what a predecessor of this name had, whatever the new one
            asks for.
    """
    digest = hashlib.sha256("\0".join((member, *sorted(topics))).encode()).hexdigest()
    return f"{re.sub(r'[^A-Za-z0-9._-]', '_', member)[:NAME_KEPT]}-{digest[:8]}"
