"""Why a folder cannot take an export; each sentence says what to do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from log.places import TopicPartition
from ops.errors import OpsError, UsageError

if TYPE_CHECKING:
    from ops.export.rows import Unread

ANEW = "export into another folder, or empty this one first"


class ExportRefusedError(UsageError):
    """The folder and the command, or the folder and the log, do not belong together."""


class FolderInUseError(ExportRefusedError):
    """Another export writes into the folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__(f"Another export writes into {folder}: wait for its end, or give another folder.")


class ForeignFolderError(ExportRefusedError):
    """The folder has files, but none that says how far it was exported."""

    def __init__(self, folder: Path, state: str) -> None:
        super().__init__(
            f"{folder} is not empty and has no {state}, so it is not known what is in it already: give an empty "
            "folder, or one that an export made."
        )


class ForeignStagingError(ExportRefusedError):
    """Where the last run had its staging folder, something else is now."""

    def __init__(self, staging: Path) -> None:
        super().__init__(
            f"{staging} is a link or a file, and the last export had a folder there: put that folder back, or remove "
            "what is there now."
        )


class LinkedFolderError(ExportRefusedError):
    """A link is where the folder of the star belongs: files would be written to another place."""

    def __init__(self, folder: Path) -> None:
        super().__init__(f"{folder} is a link: remove it, so that the export can make its own folder there.")


class StateDamagedError(ExportRefusedError):
    """The state of the folder cannot be read, or names files that are gone."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"{path} cannot be used ({why}): {ANEW}.")


class OtherFormatError(ExportRefusedError):
    """The folder has files of another format or version of it, or of records that were checked otherwise."""

    def __init__(self, folder: Path, what: str, has: str, wanted: str) -> None:
        super().__init__(f"{folder} has {what} {has}, and {wanted} was asked for: {ANEW}.")


class OtherLogError(ExportRefusedError):
    """The topic was recreated since, or the folder was made from another log."""

    def __init__(self, folder: Path, where: object, why: str) -> None:
        super().__init__(
            f"{folder} was exported from another log than this one ({where} {why}): name the stack that it was made "
            f"from with --data-dir (or its --bootstrap-servers), or {ANEW}."
        )


class ShorterLogError(ExportRefusedError):
    """The log ends before what was exported of it."""

    def __init__(self, folder: Path, tp: TopicPartition, end: int, exported: int) -> None:
        super().__init__(
            f"{tp} ends at offset {end}, but {folder} has it up to {exported}: the log was truncated or restored "
            f"from an older backup. Restore all of the log; only if it is intended as it is now, {ANEW}."
        )


class OutputUnusableError(OpsError):
    """A file of the export cannot be written."""

    def __init__(self, folder: Path, error: OSError) -> None:
        super().__init__(
            f"{error.filename or folder} cannot be written ({error.strerror or error}): correct that and run the "
            "same command again, which continues where this one ended."
        )


class NewerVersionError(OpsError):
    """The log has facts that this version cannot read, because a newer one wrote them.

    Attributes:
        places: the first of them in each partition; what is before it is exported.
    """

    def __init__(self, places: Sequence[Unread]) -> None:
        first, others = places[0], len(places) - 1
        more = f", and so was what follows in {others} more partitions" if others else ""
        super().__init__(
            f"{first.topic}/{first.partition}@{first.offset} ({first.type}: {first.detail}) was written by a newer "
            f"version{more}: export with it. All that is before is exported."
        )
        self.places = tuple(places)


class ArrowMissingError(UsageError):
    """Parquet needs Arrow, which this environment does not have."""

    def __init__(self) -> None:
        super().__init__(
            "Parquet needs pyarrow, which is not installed: install placet-server[export] (in a checkout, make "
            "setup), or give --format jsonl."
        )
