"""Runs that the tests of forks fork, and the command that forks them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.integration.doors import PROJECT, Caller, Tenant, fresh, new_tenant
from tests.integration.site import PAY, READ, Site
from tests.servers.stack import run_placet

FILE = {
    "name": "file_receipt",
    "inputSchema": {"type": "object", "properties": {"receipt_id": {"type": "string"}}},
    "annotations": {"readOnlyHint": True},
}
WIRE = {"name": "wire", "inputSchema": {"type": "object", "properties": {"to": {"type": "string"}}}}
SEAL = {
    "name": "seal",
    "inputSchema": {"type": "object", "properties": {"key": {"type": "string", "x-placet-sensitive": True}}},
    "annotations": {"readOnlyHint": True},
}
NOTE = {
    "name": "note",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
    "annotations": {"destructiveHint": False, "idempotentHint": True, "openWorldHint": False},
}
POLICY = """
policy: own
rules:
  - {id: payments, match: {tools: [send_money]}, then: hold, hold: {exclude_requester: true}}
  - {id: wires, match: {tools: [wire]}, then: hold, hold: {quorum: 2}}
  - {id: notes, match: {tools: [note]}, then: hold}
  - {id: halts, match: {tools: [halt]}, then: hold, hold: {on_reject: halt}}
  - {id: reads, match: {annotations: {readOnlyHint: true}}, then: allow}
"""
IBAN = "GB29 NWBK 6016"


@contextmanager
def forking_tenant(site: Site) -> Iterator[Tenant]:
    """A tenant with the policy and the tools of these runs."""
    with new_tenant(site, POLICY, PAY, READ, FILE, WIRE, SEAL, NOTE) as found:
        yield found


def ran(tenant: Tenant, run: str, call_id: str, output: Any) -> None:
    """Consume a released call, and report what it returned."""
    attempt = fresh("attempt")
    digest = tenant.call(run, call_id)["digest"]
    assert tenant.consume(run, digest, call_id, attempt).status_code == 200
    result = {"attempt_id": attempt, "outcome": "succeeded", "output": output}
    assert tenant.bot.post(f"/executions/{run}/tool-calls/{call_id}/result", result).status_code == 200


def paid(tenant: Tenant) -> str:
    """A run: an invoice is read and paid, its receipt filed, and a second payment rejected."""
    run = tenant.execution()
    tenant.propose(run, "read_file", {"path": "march.pdf"}, "read")
    ran(tenant, run, "read", {"iban": IBAN})
    call = tenant.propose(run, "send_money", {"to": IBAN, "amount": 98.7}, "pay")
    assert tenant.decide(call).status_code == 200
    ran(tenant, run, "pay", {"receipt": "R-7731"})
    tenant.propose(run, "file_receipt", {"receipt_id": "R-7731"}, "file")
    ran(tenant, run, "file", "filed")
    call = tenant.propose(run, "send_money", {"to": IBAN, "amount": 5.5}, "again")
    assert tenant.decide(call, "reject", feedback="paid already").status_code == 200
    assert tenant.bot.post(f"/executions/{run}/complete", {"result": "done"}).status_code == 200
    return run


def forked(tenant: Tenant, run: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    where = ("--data-dir", str(tenant.site.stack.data_dir), "--tenant", tenant.name, "--as", "leo")
    return run_placet("--project", PROJECT, "fork", run, *arguments, *where)


def answer(tenant: Tenant, run: str, *arguments: str) -> dict[str, Any]:
    done = forked(tenant, run, *arguments, "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def rows(found: dict[str, Any]) -> dict[str, tuple[str, list[str]]]:
    return {row["call_id"]: (row["relation"], row["differs"]) for row in found["calls"]}


def reader(tenant: Tenant, project: str) -> Caller:
    return tenant.caller("ann", "analyst", project=project)
