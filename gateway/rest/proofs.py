"""/v1/audit/…: signed heads, proofs and raw records, for verification without trust in this server."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from starlette.responses import Response

from gateway import resources as r
from gateway.audit_reads import AuditReads, cut_to_size, record_json, tree_in, within_reach
from gateway.identity.authentication import check_role
from gateway.problems import Problem, not_found
from gateway.rest.documented import operation
from gateway.rest.parameters import CURSOR, LIMIT, NUMBER_MAX, Choice, Number
from gateway.rest.request_context import RequestContext, answer, context_of, listed
from projections.audit.tiles import TreeDamaged
from projections.audit.trees import TreeKey
from projections.queries.moment import Moment
from projections.queries.paging import OTHER, bounded
from projections.queries.proofs import Place, index_of, leaves, place_of_entry, tiles_of, tree_size
from schemas.audit import Head, TopicRole
from schemas.ids import TENANT_WIDE, definition_key, project_of_definition
from schemas.refusals import Refusal
from schemas.standing_rule import RULE_KIND

router = APIRouter(prefix="/v1/audit", tags=["records"])
Context = Annotated[RequestContext, Depends(context_of)]
ROLES: dict[str, TopicRole] = {"executions": "executions", "definitions": "definitions"}
TOPIC = Choice("topic", "The topic.", choices=tuple(ROLES), required=True)
PARTITION = Number("partition", "A partition of the topic; 0 if it is left out.", least=0, most=NUMBER_MAX)
SINCE_HEAD = Number("from", "The number of an earlier head.", most=NUMBER_MAX)
NUMBER_DIGITS = 18


@router.get(
    "/head",
    operation_id="getAuditHead",
    **operation({200: r.AuditHeadAnswer}, 404),
)
async def get_head(context: Context) -> Response:
    """Get the newest signed head of the tenant's audit trees."""
    head = _reads(context).newest(context.actor.tenant)
    if head is None:
        raise not_found("audit head yet")
    return answer(context.gate.json({"head": _head_json(head)}))


@router.get(
    "/heads",
    operation_id="listAuditHeads",
    **operation({200: r.Page[r.AuditHead]}, parameters=(CURSOR, LIMIT)),
)
async def list_heads(context: Context) -> Response:
    """List the tenant's heads, oldest first; the cursor is the number of the last one seen."""
    reads, count = _reads(context), bounded(context.limit())
    after = _cursor(context, 0)
    heads = await asyncio.to_thread(reads.heads_after, context.actor.tenant, after, count + 1)
    more = str(heads[count - 1].number) if len(heads) > count else None
    return answer(listed(context.gate, [_head_json(head) for head in heads[:count]], more))


@router.get("/keys", operation_id="listAuditKeys", **operation({200: r.AuditKeys}))
async def list_keys(context: Context) -> Response:
    """List the public keys (Ed25519) that sign heads, by key id. A verifier keeps a copy from an earlier day."""
    return answer(context.gate.json({"keys": _reads(context).keys()}))


@router.get(
    "/records",
    operation_id="listAuditRecords",
    **operation({200: r.Page[r.AuditLeaf]}, parameters=(TOPIC, PARTITION, CURSOR, LIMIT)),
)
async def list_records(context: Context) -> Response:
    """List the leaves of one tree in order, with the records of the token's project and of the tenant's definitions.

    The cursor is the index of the last leaf seen. A page can be shorter than its limit without being the last.
    """
    reads, tree, count = _reads(context), _tree(context), bounded(context.limit())
    after = _cursor(context, -1)
    (found, size), _ = await context.ask_views(
        lambda now: (list(leaves(now, tree, after, count)), tree_size(now, tree))
    )
    found = within_reach(found)
    raws = await reads.raw(tree, [leaf.offset for leaf in found])
    items = cut_to_size(
        [
            {
                "index": leaf.index,
                "offset": leaf.offset,
                "leaf": leaf.hash.hex(),
                "record": record_json(tree, raws[leaf.offset])
                if _may_see(context, raws[leaf.offset].key)
                else None,
            }
            for leaf in found
        ]
    )
    more = str(items[-1]["index"]) if items and items[-1]["index"] + 1 < size else None
    return answer(listed(context.gate, items, more))


@router.get(
    "/consistency",
    operation_id="getAuditConsistency",
    **operation({200: r.AuditConsistency}, 404, parameters=(SINCE_HEAD,)),
)
async def get_consistency(context: Context) -> Response:
    """Prove that the trees of an earlier head are prefixes of the newest head's (RFC 9162, section 2.1.4)."""
    reads, tenant = _reads(context), context.actor.tenant
    number = context.number(SINCE_HEAD)
    old = next(iter(reads.heads_after(tenant, number - 1, 1)), None) if number else None
    new = reads.newest(tenant)
    if old is None or new is None or old.number != number:
        raise not_found("audit head")
    proofs, _ = await context.ask_views(lambda now: _consistency(now, tenant, old, new))
    found = {"first": _head_json(old), "second": _head_json(new), "proofs": proofs}
    return answer(context.gate.json(found))


@router.get(
    "/{event_id}/proof",
    operation_id="getAuditProof",
    **operation({200: r.AuditProof}, 404),
)
async def get_proof(context: Context, event_id: str) -> Response:
    """Prove that the event of an audit entry is in the log that the newest head was signed for.

    For an event that is newer than the newest head, the answer is 503 with Retry-After: the next head is signed soon.
    """
    reads, actor = _reads(context), context.actor
    head = reads.newest(actor.tenant)
    place, _ = await context.ask_views(lambda now: place_of_entry(now, actor.tenant, actor.project, event_id))
    if place is None:
        raise not_found("audit entry")
    signed = None if head is None else tree_in(head, place.tree)
    if head is None or signed is None or place.offset > signed.last_offset:
        raise reads.not_covered()
    (index, path), _ = await context.ask_views(lambda now: _proof(now, place, signed.size))
    record = (await reads.raw(place.tree, [place.offset]))[place.offset]
    if dict(record.headers).get("ce_id") != event_id.encode():
        raise Problem(
            Refusal.UNAVAILABLE, "the views refer to another record: an operator must run placet replay"
        )
    found = {
        "event_id": event_id,
        "record": record_json(place.tree, record),
        "leaf_index": index,
        "tree_size": signed.size,
        "path": [step.hex() for step in path],
        "head": _head_json(head),
    }
    return answer(context.gate.json(found))


def _reads(context: RequestContext) -> AuditReads:
    check_role(context.actor, "analyst", "operator")
    return context.gateway.audit


def _proof(moment: Moment, place: Place, size: int) -> tuple[int, list[bytes]]:
    index = index_of(moment, place.tree, place.offset)
    if index is None or index >= size:
        raise Problem(Refusal.UNAVAILABLE, "the views do not contain this yet: try again", retry_after=1)
    try:
        return index, tiles_of(moment, place.tree).inclusion(index, size)
    except TreeDamaged as error:
        raise Problem(Refusal.UNAVAILABLE, str(error)) from error


def _consistency(moment: Moment, tenant: str, old: Head, new: Head) -> list[dict[str, Any]]:
    found = []
    for tree in old.trees:
        key = TreeKey(tenant, tree.topic, tree.partition)
        now = tree_in(new, key)
        size = 0 if now is None else now.size
        try:
            path = tiles_of(moment, key).consistency(tree.size, size)
        except TreeDamaged as error:
            raise Problem(Refusal.UNAVAILABLE, str(error)) from error
        found.append(
            {
                "topic": tree.topic,
                "partition": tree.partition,
                "first_size": tree.size,
                "second_size": size,
                "path": [step.hex() for step in path],
            }
        )
    return found


def _tree(context: RequestContext) -> TreeKey:
    # The parameter is required and checked, so the word is one of ROLES.
    topic = ROLES[context.one_of(TOPIC) or ""]
    return TreeKey(context.actor.tenant, topic, context.number(PARTITION) or 0)


def _may_see(context: RequestContext, key: bytes) -> bool:
    """Return True if the caller may see a record: its own project's, or one that belongs to the whole tenant."""
    actor = context.actor
    if context.query("topic") != "definitions":
        return key.startswith(f"{actor.tenant}/{actor.project}/".encode())
    rules = definition_key(actor.tenant, RULE_KIND, "")
    if not key.startswith(rules):
        is_tenants = key.startswith(f"{actor.tenant}/".encode())
        return is_tenants and project_of_definition(key) in (TENANT_WIDE, actor.project)
    rule = context.gate.live.definitions.standing.get((actor.tenant, key.removeprefix(rules).decode()))
    return rule is not None and rule["project"] == actor.project


def _cursor(context: RequestContext, first: int) -> int:
    """Return the number that the last page ended with; `first` for the first page."""
    text = context.query(CURSOR.name)
    if text is None:
        return first
    if not text.isascii() or not text.isdigit() or len(text) > NUMBER_DIGITS:
        raise Problem(Refusal.INVALID, OTHER)
    return int(text)


def _head_json(head: Head) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(head.line)
    return found
