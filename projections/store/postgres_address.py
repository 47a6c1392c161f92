"""Parsing a `postgresql://` URL, without connecting to a server."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict

from projections.store.port import SETTING, DatabaseUnfit

DEFAULT_SCHEMA = "placet"
_NO_ADDRESS = (
    "{} is not an address of a PostgreSQL database: give postgresql://USER:PASSWORD@HOST:PORT/NAME, "
    "with %XX for special characters in the password."
)


def split_url(url: str, setting: str = SETTING) -> tuple[str, str]:
    """The connection URL without the parameter `schema`, and the schema it names (`placet` by default).

    Analysts read that schema; the tables are in its `facade.data_schema`.

    Raises:
        DatabaseUnfit: it is not a URL.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        raise DatabaseUnfit(_NO_ADDRESS.format(setting)) from None
    parameters = dict(parse_qsl(parts.query))
    schema = parameters.pop("schema", DEFAULT_SCHEMA)
    return urlunsplit(parts._replace(query=urlencode(parameters))), schema


def read_url(url: str, setting: str = SETTING) -> dict[str, Any]:
    """The parameters of a connection URL without the parameter `schema`.

    Raises:
        DatabaseUnfit: PostgreSQL's client cannot read it.
    """
    try:
        given: dict[str, Any] = conninfo_to_dict(url)
        for port in filter(None, str(given.get("port") or "").split(",")):
            int(port)
    except (psycopg.ProgrammingError, ValueError):
        # Not chained: the cause can quote a part of the password.
        raise DatabaseUnfit(_NO_ADDRESS.format(setting)) from None
    return given


def check_url(url: str, setting: str) -> None:
    """As `urls.check_url`."""
    read_url(split_url(url, setting)[0], setting)
