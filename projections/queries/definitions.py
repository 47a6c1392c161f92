"""Published definitions, and how far they are in force."""

from projections.queries.moment import Moment
from projections.tables.answers import AnswerRow
from projections.tables.definitions import DEFINITIONS, DefinitionRow
from projections.tables.log import ADOPTIONS


def published_by_command(moment: Moment, answer: AnswerRow) -> DefinitionRow | None:
    """The version that a command published, from its row in `answers`."""
    tail = 'WHERE "tenant" = ? AND "command_id" = ? AND "log_offset" BETWEEN ? AND ?'
    where = answer["tenant"], answer["command_id"], answer["first_offset"], answer["last_offset"]
    return next(iter(moment.select(DEFINITIONS, tail, where)), None)


def adopted_through(moment: Moment) -> dict[int, int]:
    """For each partition of the executions, the offset up to which it has adopted definitions."""
    return {row["log_partition"]: row["through_offset"] for row in moment.select(ADOPTIONS, "")}
