"""Data keys: listed, and destroyed with everything that was sealed under them."""

from __future__ import annotations

from typing import Any

from gateway import bodies
from gateway.asking.asker import name_of
from gateway.bodies import read_body
from gateway.identity.authentication import check_role
from gateway.live.outcome import Outcome
from gateway.operations.plan import Gate, Given, Plan, Reply, definition_ask, never
from gateway.problems import not_found
from gateway.vault.access import ERASE_WITHIN_S
from gateway.vault.vault import DataKey
from projections.folds.rows import moment
from schemas import commands as k
from schemas.ids import TENANT_WIDE, definition_key
from schemas.token import Claims


async def list_keys(gate: Gate, claims: Claims) -> list[dict[str, Any]]:
    """Return the data keys of the actor's project, oldest first; for a tenant-wide token, those of all projects.

    Raises:
        Problem: 403, the actor is not an admin; 503, the vault cannot be used now.
    """
    return [key_json(key) for key in await _keys(gate, claims)]


async def _keys(gate: Gate, claims: Claims) -> list[DataKey]:
    actor, project = claims.publisher, claims.definitions_project
    check_role(actor, "admin")
    found = await gate.vault_access.run(lambda vault: vault.data_keys(actor.tenant))
    return [key for key in found if project in (key.project, TENANT_WIDE)]


async def plan_destruction(gate: Gate, claims: Claims, name: str, given: Given, key: str | None) -> Plan:
    """Destroy a data key: the destruction is recorded first, then done.

    Raises:
        Problem: the token does not permit it, or the name or the body is invalid; 503, the vault cannot be used now.
    """
    found = next((one for one in await _keys(gate, claims) if one.name == name), None)
    if found is None:
        raise not_found("data key")
    return _plan(gate, claims, found, given, key)


def key_json(key: DataKey) -> dict[str, Any]:
    """A data key as the API shows it; the key itself is never shown."""
    return {
        "name": key.name,
        "project": key.project,
        "made_at": moment(key.made_at_ms),
        "destroyed_at": moment(key.destroyed_at_ms),
        "wrapped_by": key.wrapped_by,
    }


def _plan(gate: Gate, claims: Claims, found: DataKey, given: Given, key: str | None) -> Plan:
    actor, name = claims.publisher, found.name
    command = k.DestroyDataKey(name=name, reason=read_body(bodies.DestroyDataKey, given()).reason)
    address = definition_key(actor.tenant, "data-key", name, found.project)
    ask = definition_ask(gate, address, command, actor, name_of(actor, f"/v1/data-keys/{name}/destroy", key))

    async def deliver(_: None, outcome: Outcome) -> Reply:
        await gate.vault_access.run(
            lambda vault: vault.destroy_key(actor.tenant, found.project, name), ERASE_WITHIN_S
        )
        (now,) = [one for one in await list_keys(gate, claims) if one["name"] == name]
        return gate.json(now)

    return Plan(ask, None, never, deliver=deliver)
