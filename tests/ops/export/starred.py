"""The star of a log as files, and the queries of docs/analysis.md on them and on the views."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb

from ops.export.layout import Format
from ops.export.star import write_star
from projections.queries.views import open_views
from projections.store.urls import open_view
from tests.house.sources import ROOT
from tests.ops.export.logs import exported, land, memory_log
from tests.projections.filling import Filler
from tests.projections.histories import LogBuilder

Ask = Callable[[str], list[tuple[Any, ...]]]
Counts = dict[str, int]
PAGE = (ROOT / "docs" / "analysis.md").read_text(encoding="utf-8")
_HEAD, *_SECTIONS = re.split(r"^## \d+\. ", PAGE, flags=re.MULTILINE)
_BLOCK = re.compile(r"^```sql ?(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
# How to open the files and the views.
_OPENING = dict(_BLOCK.findall(_HEAD))
# Question, engine and query. A query without an engine is for files and views.
_ASKED = [(text.partition("\n")[0], *block) for text in _SECTIONS for block in _BLOCK.findall(text)]
OF_ALL = {title: query for title, engine, query in _ASKED if not engine}
OF_FILES = {title: query for title, engine, query in _ASKED if engine == "files"}
EXTENSION = "from duckdb_extensions import import_extension; import_extension('sqlite_scanner')"


def view_of(url: str, log: LogBuilder, definitions: LogBuilder | None = None) -> None:
    """Fill the views of a URL."""
    filler = Filler(open_view(url))
    filler.fill(log, definitions)
    filler.store.close()


def starred(url: str, root: Path, now_ms: int, form: Format = Format.PARQUET) -> Counts:
    """Write the star of the views of a URL."""
    views = open_views(url)
    try:
        return views.read_now(lambda now: write_star(now, root, form, now_ms))[0]
    finally:
        views.close()


async def export_of(log: LogBuilder, url: str, root: Path, now_ms: int) -> Counts:
    """What `placet export --star` makes: the events of a log, and the star of its views."""
    memory = memory_log(log.partitions)
    land(memory, log)
    await exported(memory, root, Format.PARQUET)
    return starred(url, root, now_ms)


def plain(rows: list[Any]) -> list[tuple[Any, ...]]:
    """Rows without what databases tell apart: decimals and the last digits of numbers."""
    return [tuple(round(float(v), 6) if isinstance(v, float | Decimal) else v for v in row) for row in rows]


def over_files(root: Path, tenant: str = "") -> Iterator[Ask]:
    """DuckDB over the files of an export, of one tenant if one is named."""
    opening = _OPENING["files"].replace("placet-export", str(root))
    if tenant:
        opening = opening.replace(";", f" WHERE tenant = '{tenant}';")
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(opening)
        yield lambda text: plain(connection.execute(text).fetchall())


def over_views(file: Path, home: Path) -> Iterator[Ask]:
    """DuckDB over the SQLite file of views, with an extension that is installed in `home`."""
    environ = {"HOME": str(home), "PATH": ""}
    subprocess.run([sys.executable, "-c", EXTENSION], env=environ, check=True)
    config: dict[str, Any] = {
        "home_directory": str(home),
        "custom_extension_repository": "http://127.0.0.1:1",
    }
    with duckdb.connect(config=config) as connection:
        connection.execute(_OPENING["views"].replace("views.sqlite", str(file)))
        yield lambda text: plain(connection.execute(text).fetchall())
