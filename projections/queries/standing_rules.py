"""How often standing rules were used."""

from projections.queries.moment import Moment
from projections.tables.standing_rules import RULE_USES


def counts(moment: Moment, tenant: str, project: str, rule_id: str | None = None) -> dict[str, int]:
    """Rule id → number of uses granted, for each used rule of a project, or for one rule."""
    only = "" if rule_id is None else 'AND "rule_id" = ? '
    text = (
        f'SELECT "rule_id", MAX("number") FROM {moment.dialect.prefix}{RULE_USES.name} '  # noqa: S608 – names of tables.py
        f'WHERE "tenant" = ? AND "project" = ? {only}GROUP BY "rule_id"'
    )
    values = (tenant, project) if rule_id is None else (tenant, project, rule_id)
    rows = moment.execute(text.replace("?", moment.dialect.placeholder), values)
    return {str(row[0]): int(row[1]) for row in rows}
