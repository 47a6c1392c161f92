"""Published definitions, and how far they are in force."""

from projections.queries.moment import Moment
from projections.tables.answers import AnswerRow
from projections.tables.definitions import DEFINITIONS, DefinitionRow
from projections.tables.log import ADOPTIONS
from schemas.ids import TENANT_WIDE


def tools(moment: Moment, tenant: str, project: str = TENANT_WIDE) -> list[DefinitionRow]:
    """The newest version of every tool of a project, or of the tenant itself, by name."""
    tail = 'WHERE "tenant" = ? AND "project" = ? AND "kind" = \'tool\' ORDER BY "name", "version"'
    newest = {row["name"]: row for row in moment.select(DEFINITIONS, tail, (tenant, project))}
    return list(newest.values())


def versions(
    moment: Moment, tenant: str, kind: str, name: str, project: str = TENANT_WIDE
) -> list[DefinitionRow]:
    """All versions of a policy or tool, newest first. `kind` is `policy` or `tool`."""
    tail = 'WHERE "tenant" = ? AND "project" = ? AND "kind" = ? AND "name" = ? ORDER BY "version" DESC'
    return moment.select(DEFINITIONS, tail, (tenant, project, kind, name))


def published_by_command(moment: Moment, answer: AnswerRow) -> DefinitionRow | None:
    """The version that a command published, from its row in `answers`."""
    tail = 'WHERE "tenant" = ? AND "command_id" = ? AND "log_offset" BETWEEN ? AND ?'
    where = answer["tenant"], answer["command_id"], answer["first_offset"], answer["last_offset"]
    return next(iter(moment.select(DEFINITIONS, tail, where)), None)


def adopted_through(moment: Moment) -> dict[int, int]:
    """For each partition of the executions, the offset up to which it has adopted definitions."""
    return {row["log_partition"]: row["through_offset"] for row in moment.select(ADOPTIONS, "")}
