"""Erasures in the audit trail, from which a vault of sealed values catches up."""

from typing import NamedTuple

from projections.folds.acts import DESTROY_KEY, ERASE
from projections.folds.rows import json_value
from projections.queries.moment import Moment
from projections.tables.audit import AUDIT_ENTRIES
from schemas.ids import TENANT_WIDE


class Erasure(NamedTuple):
    """Sealed values that must be erased: of a call, of a request, or (with `key_name`) all under a data key.

    The project of a data key is `*` if the key belongs to the tenant.
    """

    tenant: str
    project: str
    execution_id: str = ""
    call_id: str = ""
    request_id: str = ""
    key_name: str = ""


def erasures_since(moment: Moment, tenant: str, project: str, since_ms: int) -> list[Erasure]:
    """The erasures of a project, of its data keys and of its tenant's, from a moment on."""
    tail = (
        'WHERE "tenant" = ? AND "project" IN (?, \'\') AND "at_ms" >= ? AND "action" IN (?, ?) '
        'ORDER BY "at_ms", "event_id"'
    )
    rows = moment.select(AUDIT_ENTRIES, tail, (tenant, project, since_ms, ERASE, DESTROY_KEY))
    found = []
    for row in rows:
        after = json_value(row["after"])
        if row["action"] == DESTROY_KEY:
            found.append(Erasure(tenant, row["project"] or TENANT_WIDE, key_name=after["name"]))
        else:
            subject = (after["call_id"] or "", after["request_id"] or "")
            found.append(Erasure(tenant, project, row["execution_id"] or "", *subject))
    return found
