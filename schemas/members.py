"""Names of members of consumer groups: unique, and the same each time that a process is started.

With static membership (KIP-345) a process that was killed has its partitions again as soon as it restarts. Two
processes with the same name would take them from each other for ever.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence

NAME_KEPT = 100


def member_name(settings: Mapping[str, str], hostname: str) -> str:
    """The name of the process that a role's settings start.

    Its worker id alone is not unique: every replica of a container, and every installation on a shared Kafka, has the
    same one by default.

    Args:
        settings: the role's; `worker_id` and `data_dir` are read.
        hostname: the machine's.
    """
    return f"{settings['worker_id']}@{hostname}:{settings['data_dir']}"


def instance_id(member: str, topics: Sequence[str]) -> str:
    """The `group.instance.id` of a member: its name in Kafka's characters, and a digest that makes it unique.

    Args:
        member: its name; only its letters, digits, dots, hyphens and underscores are kept.
        topics: its subscription, a part of the digest because the broker hands over the partitions of a predecessor
            of the same name, whatever topics the new member subscribes to.
    """
    digest = hashlib.sha256("\0".join((member, *sorted(topics))).encode()).hexdigest()
    return f"{re.sub(r'[^A-Za-z0-9._-]', '_', member)[:NAME_KEPT]}-{digest[:8]}"
