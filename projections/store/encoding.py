"""The encoding of a PostgreSQL database and of the connections to it: UTF8; any other is refused.

With SQL_ASCII the driver returns bytes in place of text, and other encodings cannot store every text.
"""

from typing import Any

import psycopg

from projections.store.port import DatabaseUnfit

# Of the database, and of every connection, whatever PGCLIENTENCODING, the URL or the role's own settings say.
ENCODING = "UTF8"


def check_encoding(connection: psycopg.Connection[Any]) -> None:
    """Refuse a database of another encoding; costs no round trip.

    Raises:
        DatabaseUnfit: it is not UTF8.
    """
    found = connection.info.parameter_status("server_encoding")
    if found != ENCODING:
        raise DatabaseUnfit(
            f"The PostgreSQL database {connection.info.dbname!r} has the encoding {found}, and Placet needs UTF8: "
            "create another (CREATE DATABASE placet ENCODING 'UTF8' TEMPLATE template0) and name it in its URL."
        )
