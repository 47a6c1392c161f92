"""What a checkpoint is for: a position says nothing about events that its consumer did not want."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from placet.consuming.events import Wanted
from placet.consuming.place import MARK
from placet.errors import CheckpointRefused

HASH_CHARS = 16


@dataclass(frozen=True)
class Scope:
    """The project and the filters of one consumer, each as a hash, and whether it reads Kafka itself."""

    project: str
    filters: str
    reads_kafka: bool = False

    @classmethod
    def of(cls, project: str | None, wanted: Wanted, *, reads_kafka: bool = False) -> Scope:
        """The scope of a consumer; `project` is the one that it names, None for the token's or for Kafka."""
        names = (wanted.types, wanted.agents, wanted.executions)
        return cls(
            _hash(project), _hash([None if one is None else sorted(one) for one in names]), reads_kafka
        )

    def fields(self) -> dict[str, str]:
        """The fields of the file."""
        return {"project": self.project, "filters": self.filters}

    def check(self, found: Mapping[str, Any], where: str) -> None:
        """Refuse a file that was saved by a consumer of another scope; one that names none fits every consumer.

        Raises:
            CheckpointRefused: it is of the other form, of another project, or has other filters.
        """
        check_form(str(found.get("cursor", "")), where, reads_kafka=self.reads_kafka)
        if found.get("project", self.project) != self.project:
            raise CheckpointRefused("other_project", f"{where} is of a consumer that names another project")
        if found.get("filters", self.filters) != self.filters:
            detail = f"{where} is of a consumer with other types=, agents= or execution=, which passed over the rest"
            raise CheckpointRefused("other_filter", detail)


def check_form(cursor: str, what: str, *, reads_kafka: bool) -> None:
    """Refuse a position of the stream for a consumer that reads Kafka, and one of Kafka for the stream.

    Raises:
        CheckpointRefused: it is of the other form.
    """
    if cursor and cursor.startswith(MARK) is not reads_kafka:
        mine, other = ("Kafka itself", "the stream") if reads_kafka else ("the stream", "Kafka itself")
        said = f"{what} is of the other form (stream or Kafka): of a consumer of {other}, not of {mine}"
        raise CheckpointRefused("other_log", said)


def _hash(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:HASH_CHARS]
