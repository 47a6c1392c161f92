"""The version of the tables that a view was built with."""

from projections.store.port import ViewOutdated
from projections.store.statements import Dialect, create_statements
from schemas.canonical import sha256_hex

LAYOUT_STATEMENT = "CREATE TABLE IF NOT EXISTS placet_layout (layout TEXT PRIMARY KEY)"
# Increased when the folds make other rows from the same events: an older view would differ from its log for ever.
# 2: a call that is denied has no grant. 3: an adoption has the time at which it was written.
# 4: every hold that time ended has timed out, and only an existing default answers.
# 5: holds, calls and executions have the senders of messages, and holds the message that the agent was answering.
# 6: what was refused in the run of a planted call is not counted for the agent.
ROWS_VERSION = 6


def layout_of(dialect: Dialect) -> str:
    """A digest of the tables, and of the folds' version, of this version of Placet."""
    return sha256_hex("\n".join((*create_statements(dialect), f"rows {ROWS_VERSION}")))[:16]


def check_layout(stored: str, dialect: Dialect, where: str) -> None:
    """Refuse a view of another version.

    Raises:
        ViewOutdated: its tables are not those of this version.
    """
    if stored != layout_of(dialect):
        raise ViewOutdated(
            f"The view at {where} was built by another version of Placet: rebuild it with placet replay."
        )
