"""The log to which a data directory belongs: topics that are recreated under the same names are another log."""

import asyncio
import json
import logging
from pathlib import Path

from host.json_files import read_json_file
from host.key_files import write_private
from log.errors import LogError, LogUnreachable
from log.port import Log

WATCH_EVERY_S = 3.0

logger = logging.getLogger(__name__)


class OtherLog(LogError):
    """A topic was recreated, or this data directory belongs to another cluster. The operator must decide.

    Attributes:
        topic: the topic whose id changed.
    """

    def __init__(self, topic: str, path: Path) -> None:
        super().__init__(
            f"The topic {topic} is not the one recorded in this data directory (it was recreated, or this is another "
            f"cluster; {path} holds the ids): restore it (docs/operations.md, Backup and restore), or begin a "
            "new log with a new data directory and, on a cluster of your own, another --topic-prefix."
        )
        self.topic = topic


class IdsUnreadable(LogError):
    """The file with the topics' ids is damaged. The operator must say whether this is the same log as before."""

    def __init__(self, path: Path, why: object) -> None:
        super().__init__(
            f"{path}, which holds the ids of the topics, cannot be read ({why}): restore it from a backup; or, if "
            "this is the same log as before and not a new one, remove the file, and the ids are recorded again."
        )


async def check_identity(log: Log, path: Path) -> None:
    """Compare the topics' ids with those of the first start, which are kept in a file.

    Commands of a recreated topic would be decided again, and offsets of a recreated events topic would mean other
    records, so no process may start on either.

    Raises:
        OtherLog: an id changed.
        IdsUnreadable: the file is damaged.
    """
    topics = log.topics
    names = (topics.commands, topics.executions, topics.definition_commands, topics.definitions)
    found = {name: await log.topic_id(name) for name in names}
    _compare_and_keep(found, path)


async def watch_identity(log: Log, path: Path) -> None:
    """Check again and again that the topics are those of the start, until one is not.

    Commands in a topic that was recreated while this process runs would never be read.

    Raises:
        OtherLog: a topic was recreated.
        TopicMissing: a topic was deleted.
    """
    while True:
        await asyncio.sleep(WATCH_EVERY_S)
        try:
            await check_identity(log, path)
        except LogUnreachable as error:
            # Unknown for now; the tasks that need the log report the failure.
            logger.info("the topics' ids were not checked: %s", error)


def _compare_and_keep(found: dict[str, str], path: Path) -> None:
    known = _known(path)
    for name, topic_id in found.items():
        if known.get(name, topic_id) != topic_id:
            raise OtherLog(name, path)
    if known != {**known, **found}:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_private(path, json.dumps({**known, **found}, indent=1).encode())


def _known(path: Path) -> dict[str, str]:
    try:
        known = read_json_file(path)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise IdsUnreadable(path, error) from error
    if not isinstance(known, dict) or not all(isinstance(one, str) for one in known.values()):
        raise IdsUnreadable(path, "it is not a JSON object of texts")
    return known
