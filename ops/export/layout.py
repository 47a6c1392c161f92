"""The files of an export and their names: Hive's layout, by tenant and day.

`OUT/events/tenant_key=acme/day=2026-01-31/part-3-1200.parquet` has records of partition 3, the first of them at
offset 1200. `OUT/definitions/…` has those of the definitions.

`tenant_key` is the tenant's name, percent-encoded as Hive, Spark and DuckDB read it. Upper-case letters are encoded,
too: disks that do not tell them from others would put two tenants into one folder. A long name ends in its hash,
because a file system takes 255 bytes. It is not called `tenant`: readers would then take it for the column.
"""

from __future__ import annotations

import hashlib
import re
from datetime import date, timedelta
from enum import StrEnum
from functools import lru_cache
from pathlib import PurePosixPath

from schemas.audit import TopicRole
from schemas.topics import DAY_MS

EPOCH = date(1970, 1, 1)
FOLDERS: dict[TopicRole, str] = {"executions": "events", "definitions": "definitions"}
# What begins so is no data for Hive, Spark and Arrow.
STATE = "_export.json"
# It becomes the state by being renamed.
NEXT_STATE = "_export.json.next"
LOCK = "_export.lock"
# The folder of the tables of the star (`ops.export.star`).
STAR = "star"
# With a random suffix for each run.
STAGING = "_staging"

_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789._-")
KEY_BYTES_MAX = 200
# Between the beginning of a name and its hash: no other name has it, because it is encoded there.
CUT = "~"
_STAGED = re.compile(r"(?:executions|definitions)-part-\d+-\d+\.(?:parquet|jsonl)", re.ASCII)


class Format(StrEnum):
    """What the files are."""

    PARQUET = "parquet"
    JSONL = "jsonl"


def part_name(partition: int, first_offset: int, form: Format) -> str:
    """The name of a file, from its first record."""
    return f"part-{partition}-{first_offset}.{form.value}"


def staged_name(role: TopicRole, name: str) -> str:
    """The name of a file in the staging folder, where the files of both topics are together."""
    return f"{role}-{name}"


def is_staged_name(name: str) -> bool:
    """Returns True if an export could have given this name to a file in its staging folder."""
    return _STAGED.fullmatch(name) is not None


def tenant_key(tenant: str) -> str:
    """The name of a tenant's folder: of at most `KEY_BYTES_MAX` ASCII characters, another one for each tenant."""
    letters = [chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in tenant.encode()]
    whole = "".join(letters)
    if len(whole) <= KEY_BYTES_MAX:
        return whole
    end = CUT + hashlib.sha256(tenant.encode()).hexdigest()
    while sum(map(len, letters)) + len(end) > KEY_BYTES_MAX:
        letters.pop()
    return "".join(letters) + end


@lru_cache(maxsize=4096)
def place(role: TopicRole, tenant: str, day: int) -> PurePosixPath:
    """The folder of a tenant's events of one day, from the export's own folder.

    Args:
        role: the topic.
        tenant: the tenant.
        day: days since 1970, in UTC.
    """
    return PurePosixPath(FOLDERS[role], f"tenant_key={tenant_key(tenant)}", f"day={day_name(day)}")


def day_of(at_ms: int) -> int:
    """Days since 1970 of a time in milliseconds since then, in UTC."""
    return at_ms // DAY_MS


def day_name(day: int) -> str:
    """`YYYY-MM-DD` of days since 1970."""
    return (EPOCH + timedelta(days=day)).isoformat()
