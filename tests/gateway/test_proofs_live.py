"""The audit trees at the doors of a real stack: heads, proofs that hold, raw records, and who may ask."""

from __future__ import annotations

import base64
import hashlib
import itertools
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from gateway import resources as r
from host.key_files import load_public
from schemas.audit import read_head, record_leaf, verify_head
from schemas.canonical import canonical
from schemas.merkle import root_of_path
from schemas.record import RawRecord
from tests.gateway.conftest import Caller, Doors
from tests.servers.stack import wait_for

pytestmark = [pytest.mark.stack, pytest.mark.broker]


@pytest.fixture
def analyst(doors: Doors) -> Caller:
    return doors.caller("ada", "analyst")


def audit_rows(analyst: Caller) -> Iterator[dict[str, Any]]:
    """All entries, however many the tests before have left on the stack."""
    cursor = ""
    while cursor is not None:
        page = analyst.get(f"/v1/audit?limit=500&cursor={cursor}" if cursor else "/v1/audit?limit=500").json()
        yield from page["items"]
        cursor = page["next_cursor"]


def an_entry(bot: Caller, analyst: Caller) -> str:
    """Let a policy release a call, and give the event id of its audit entry."""
    execution_id = bot.execution()
    bot.propose(execution_id, "read_file")

    def entry() -> Any:
        return next((row for row in audit_rows(analyst) if row["execution_id"] == execution_id), None)

    return str(wait_for(entry, bool)["event_id"])


def proof_of(analyst: Caller, event_id: str) -> dict[str, Any]:
    """The proof, once a head covers it."""

    def proof() -> Any:
        answer = analyst.get(f"/v1/audit/{event_id}/proof")
        if answer.status_code == 503:
            assert int(answer.headers["Retry-After"]) >= 1
            return None
        assert answer.status_code == 200, answer.text
        return answer.json()

    found: dict[str, Any] = wait_for(proof, bool)
    return found


def raw_of(record: dict[str, Any]) -> RawRecord:
    headers = tuple((name, base64.b64decode(value)) for name, value in record["headers"])
    key, value = base64.b64decode(record["key"]), base64.b64decode(record["value"])
    return RawRecord(record["partition"], record["offset"], 0, key, value, headers)


def test_proof_leads_from_the_record_to_the_signed_root(doors: Doors, bot: Caller, analyst: Caller) -> None:
    event_id = an_entry(bot, analyst)
    found = proof_of(analyst, event_id)
    r.AuditProof.model_validate(found)
    record, head = found["record"], found["head"]
    assert (b"ce_id", event_id.encode()) in [(n.encode(), v) for n, v in raw_of(record).headers]
    leaf = record_leaf(record["topic"], raw_of(record))
    root = root_of_path(
        leaf, found["leaf_index"], found["tree_size"], [bytes.fromhex(s) for s in found["path"]]
    )
    tree = next(
        t for t in head["trees"] if (t["topic"], t["partition"]) == (record["topic"], record["partition"])
    )
    assert root is not None
    assert (root.hex(), found["tree_size"]) == (tree["root"], tree["size"])
    signed = read_head(canonical(head))
    keys = load_public(doors.stack.data_dir / "keys" / "audit.json")
    assert verify_head(signed, keys[head["kid"]])
    assert list(analyst.get("/v1/audit/keys").json()["keys"]) == [head["kid"]]


def test_heads_name_one_another_in_pages(bot: Caller, analyst: Caller) -> None:
    proof_of(analyst, an_entry(bot, analyst))
    proof_of(analyst, an_entry(bot, analyst))
    newest = analyst.get("/v1/audit/head").json()["head"]
    heads: list[dict[str, Any]] = []
    cursor: str | None = "0"
    while cursor is not None:
        page = analyst.get(f"/v1/audit/heads?limit=1&cursor={cursor}").json()
        heads += page["items"]
        cursor = page["next_cursor"]
    assert [head["number"] for head in heads] == list(range(1, len(heads) + 1))
    assert len(heads) >= newest["number"] >= 2
    for before, head in itertools.pairwise(heads):
        assert head["previous"] == hashlib.sha256(canonical(before).encode()).hexdigest()
    answer = analyst.get("/v1/audit/consistency?from=1").json()
    r.AuditConsistency.model_validate(answer)
    assert {(p["topic"], p["partition"]) for p in answer["proofs"]} == {
        (t["topic"], t["partition"]) for t in heads[0]["trees"]
    }
    assert analyst.get("/v1/audit/consistency?from=99999").status_code == 404


def test_records_are_every_leaf_in_order_with_the_own_projects_bytes(
    doors: Doors, bot: Caller, analyst: Caller
) -> None:
    proof = proof_of(analyst, an_entry(bot, analyst))
    tree = proof["record"]["topic"], proof["record"]["partition"]
    path = f"/v1/audit/records?topic={tree[0]}&partition={tree[1]}&limit=2"
    found: list[dict[str, Any]] = []
    query: str | None = ""
    while query is not None:
        page = analyst.get(f"{path}{query}").json()
        r.Page[r.AuditLeaf].model_validate(page)
        found += page["items"]
        query = None if page["next_cursor"] is None else f"&cursor={page['next_cursor']}"
    assert [leaf["index"] for leaf in found] == list(range(len(found)))
    assert len(found) >= proof["tree_size"]
    assert all(one["offset"] < other["offset"] for one, other in itertools.pairwise(found))
    for leaf in found:
        assert record_leaf(leaf["record"]["topic"], raw_of(leaf["record"])).hex() == leaf["leaf"]
    elsewhere = Caller(doors.url, _token_of_another_project(doors), doors.client)
    items = elsewhere.get(path).json()["items"]
    assert [leaf["leaf"] for leaf in items] == [leaf["leaf"] for leaf in found[:2]]
    assert [leaf["record"] for leaf in items] == [None, None]
    definitions = elsewhere.get("/v1/audit/records?topic=definitions&partition=0").json()["items"]
    keys = [base64.b64decode(leaf["record"]["key"]) for leaf in definitions if leaf["record"] is not None]
    assert definitions
    assert not any(b"/books/" in key for key in keys)


def _token_of_another_project(doors: Doors, tenant: str = "acme") -> str:
    from gateway.identity.issuer import issue

    return issue(doors.stack.data_dir / "keys", "eva", ["analyst"], tenant, "another")


GIFTS = """
policy: gifts
rules:
  - id: gifts
    match: {tools: [send_gift]}
    then: hold
    hold: {timeout_seconds: 3600, remember: {four_eyes: false, max_uses: unlimited}}
"""


def test_standing_rules_entry_is_proved_by_its_own_record_and_shown_to_its_own_project_only(
    doors: Doors,
) -> None:
    tenant = f"rules-{uuid4().hex[:8]}"
    olga, rita = (
        doors.caller("olga", "operator", tenant=tenant),
        doors.caller("rita", "reviewer", tenant=tenant),
    )
    ada, bot = (
        doors.caller("ada", "analyst", tenant=tenant),
        doors.caller("bot", "agent", tenant=tenant, agent="billing"),
    )
    assert olga.call("PUT", "/v1/tools/send_gift", {"inputSchema": {"type": "object"}}).status_code == 200
    yaml = {"Content-Type": "application/yaml"}
    assert olga.call("PUT", "/v1/policies/gifts", content=GIFTS, headers=yaml).status_code == 200
    call = bot.propose(bot.execution(), "send_gift")
    word = {"decision": "approve", "digest": call["digest"], "scope": "rule", "remember": {"uses": None}}
    assert rita.post(f"/v1/holds/{call['hold_id']}/decision", word).status_code == 200

    def made() -> Any:
        rows = ada.get("/v1/audit?limit=500").json()["items"]
        return next((row for row in rows if row["action"] == "rule_made"), None)

    event_id = wait_for(made, bool)["event_id"]
    found = proof_of(ada, event_id)
    assert found["record"]["topic"] == "definitions"
    assert ("ce_id", event_id.encode()) in raw_of(found["record"]).headers
    neighbour = Caller(doors.url, _token_of_another_project(doors, tenant), doors.client)
    path = "/v1/audit/records?topic=definitions&partition=0"
    ours, theirs = ada.get(path).json()["items"], neighbour.get(path).json()["items"]
    assert len([leaf for leaf in ours if b"/rule/" in base64.b64decode(leaf["record"]["key"])]) == 1
    assert [leaf["record"] for leaf in theirs] == [None] * len(ours)
    assert [leaf["leaf"] for leaf in theirs] == [leaf["leaf"] for leaf in ours]


def test_proof_of_anothers_or_no_event_is_not_found(doors: Doors, bot: Caller, analyst: Caller) -> None:
    event_id = an_entry(bot, analyst)
    proof_of(analyst, event_id)
    stranger = doors.caller("sam", "analyst", tenant="other")
    neighbour = Caller(doors.url, _token_of_another_project(doors), doors.client)
    for caller, wanted in ((stranger, event_id), (neighbour, event_id), (analyst, uuid4().hex)):
        answer = caller.get(f"/v1/audit/{wanted}/proof")
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def test_tenant_sees_its_own_trees_only(doors: Doors, bot: Caller, analyst: Caller) -> None:
    proof = proof_of(analyst, an_entry(bot, analyst))
    stranger = doors.caller("sam", "analyst", tenant="other")
    partition = proof["record"]["partition"]
    leaves = stranger.get(f"/v1/audit/records?topic=executions&partition={partition}").json()["items"]
    assert not {leaf["leaf"] for leaf in leaves} & {
        leaf["leaf"]
        for leaf in analyst.get(f"/v1/audit/records?topic=executions&partition={partition}").json()["items"]
    }
    assert stranger.get("/v1/audit/head").json()["head"]["tenant"] == "other"
    nobody = doors.caller("nia", "analyst", tenant="never-heard-of")
    assert nobody.get("/v1/audit/head").status_code == 404
    assert nobody.get("/v1/audit/heads").json()["items"] == []


@pytest.mark.parametrize(
    "path", ["head", "heads", "keys", "consistency?from=1", "records?topic=executions", "x/proof"]
)
def test_reviewers_and_agents_are_refused(anna: Caller, bot: Caller, path: str) -> None:
    for caller in (anna, bot):
        answer = caller.get(f"/v1/audit/{path}")
        assert (answer.status_code, answer.json()["code"]) == (403, "not_authorised")


@pytest.mark.parametrize(
    "query", ["topic=commands", "", "topic=executions&partition=-1", "topic=executions&cursor=x"]
)
def test_records_of_no_such_tree_are_invalid(analyst: Caller, query: str) -> None:
    answer = analyst.get(f"/v1/audit/records?{query}")
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
