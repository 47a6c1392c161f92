"""The star for analysts as files (docs/analysis.md): tables of the views, and trust by days, each one file.

Unlike the events, they are replaced as a whole by each run, and all of them are of one snapshot of the views:

1. Every file is complete, and on the disk, under its next name.
2. Each is renamed to its name. A reader that opens files between two renames can get two of different snapshots.

A run that is killed leaves files under their next names, which the next run replaces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from host.directories import make_private_directory, sync_directory
from ops.export.errors import ArrowMissingError, LinkedFolderError, OutputUnusableError
from ops.export.jsonl_table import JsonlTable
from ops.export.layout import STAR, Format
from projections.queries.moment import Moment
from projections.queries.trust_days import trust_days
from projections.store.tables import OFFERED
from projections.tables.columns import Offer
from projections.tables.trust_days import TRUST_DAYS

# The tables and SQL views of the views that are written.
NAMES = (
    *(
        "executions",
        "tool_calls",
        "holds",
        "requests",
        "votes",
        "lost_races",
        "decisions",
        "edits",
        "edit_patches",
    ),
    *("rule_verdicts", "rules", "standing_rules", "rule_uses", "reviewers"),
    *("evidence", "trust_verdicts", "trust", "agents", "tools", "policies", "audit"),
)
OF_VIEWS = tuple(offer for offer in OFFERED if offer.name in NAMES)
ROWS_AT_ONCE = 5_000


class TableFile(Protocol):
    """A file that takes rows, each with the values of all columns."""

    def add(self, rows: Sequence[Sequence[object]]) -> None:
        """Add rows."""
        ...

    def close(self) -> None:
        """Complete the file and bring it to the disk."""
        ...

    def abandon(self) -> None:
        """Close the file and write nothing more."""
        ...


NewTable = Callable[[Path, Offer[Any]], TableFile]


def write_star(moment: Moment, root: Path, form: Format, now_ms: int) -> dict[str, int]:
    """Write the star of one snapshot of the views in place of an earlier one.

    Args:
        moment: the snapshot.
        root: the folder of the export; this process has its lock.
        form: the format of the files.
        now_ms: the time now, milliseconds since 1970: trust is computed up to today.

    Returns:
        The number of rows of each table.

    Raises:
        ArrowMissingError: Arrow is not installed.
        LinkedFolderError: a link is where its folder belongs.
        OutputUnusableError: a file cannot be written.
    """
    new, folder, counts = _new_table_of(form), root / STAR, dict[str, int]()
    if folder.is_symlink():
        raise LinkedFolderError(folder)
    try:
        make_private_directory(folder)
        for offer, rows in _tables(moment, now_ms):
            counts[offer.name] = _write(new, _next(folder, offer.name, form), offer, rows)
        sync_directory(folder)
        for name in counts:
            _next(folder, name, form).replace(folder / f"{name}.{form.value}")
        sync_directory(folder)
    except OSError as error:
        raise OutputUnusableError(folder, error) from error
    return counts


def _tables(moment: Moment, now_ms: int) -> Iterator[tuple[Offer[Any], Iterable[Sequence[object]]]]:
    for offer in OF_VIEWS:
        names = ", ".join(f'"{name}"' for name in offer.names)
        text = f"SELECT {names} FROM {moment.dialect.prefix}{offer.name}"  # noqa: S608 – names of tables.py
        yield offer, moment.stream(text, ())
    yield TRUST_DAYS, (_values(row, TRUST_DAYS.names) for row in trust_days(moment, now_ms))


def _values(row: Mapping[str, object], names: Sequence[str]) -> tuple[object, ...]:
    return tuple(row[name] for name in names)


def _write(new: NewTable, path: Path, offer: Offer[Any], rows: Iterable[Sequence[object]]) -> int:
    path.unlink(missing_ok=True)
    file, count, left = new(path, offer), 0, iter(rows)
    try:
        while some := list(islice(left, ROWS_AT_ONCE)):
            file.add(some)
            count += len(some)
        file.close()
    except BaseException:
        file.abandon()
        raise
    return count


def _next(folder: Path, name: str, form: Format) -> Path:
    # What begins so is no data for Hive, Spark and Arrow.
    return folder / f"_next-{name}.{form.value}"


def _new_table_of(form: Format) -> NewTable:
    if form is Format.JSONL:
        return JsonlTable
    try:
        from ops.export.arrow_table import ParquetTable
    except ModuleNotFoundError as error:
        raise ArrowMissingError from error
    return ParquetTable
