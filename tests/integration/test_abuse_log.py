"""Case 25 of the abuse list: poison and foreign records on the topics; the partition goes on."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.identity.issuer import issue
from log.places import TopicPartition
from schemas import codec
from schemas import commands as k
from schemas.envelope import Draft
from schemas.event_signatures import HEADER
from schemas.events.calls import ToolCallReleased
from schemas.events.holds import DecisionRecorded
from schemas.events.log import WriterAlive, WriterClaimed
from schemas.headers import event_record
from schemas.message import Message
from schemas.record import EventMeta, OutRecord
from services.runtime.claim import log_key
from tests.integration.doors import (
    PROJECT,
    Caller,
    SiteLog,
    Tenant,
    agent_of,
    dead_letter,
    fresh,
    key_of,
    refused,
    site_log,
)
from tests.integration.site import Site
from tests.schemas.token_commands import with_token
from tests.servers.stack import wait_for

pytestmark = [pytest.mark.stack, pytest.mark.broker]

UNKNOWN_SCHEMA = b"\x00" + (2**31 - 1).to_bytes(4, "big") + b"\x02\x04"


def unreadable(key: bytes, believed: OutRecord) -> dict[str, tuple[OutRecord, bytes]]:
    """Records that no decider can read or believe, each with the reason owed."""
    headers = believed.headers
    again = (*headers, ("ce_id", b"another"))
    event = codec.encode(WriterAlive(commands_through=2**40))
    return {
        "empty": (OutRecord(b"", b"", ()), b"malformed"),
        "noise": (OutRecord(key, b"\xff\xfe\x00noise" * 100, headers), b"malformed"),
        "plain JSON": (OutRecord(key, b'{"type":"DecideHold","decision":"approve"}', headers), b"malformed"),
        "unknown schema": (OutRecord(key, UNKNOWN_SCHEMA, headers), b"unknown_schema"),
        "cut off": (OutRecord(key, believed.value[:-3], headers), b"malformed"),
        "with a tail": (OutRecord(key, believed.value + b"tail", headers), b"malformed"),
        "no headers": (OutRecord(key, believed.value, ()), b"malformed"),
        "a header twice": (OutRecord(key, believed.value, again), b"malformed"),
        "event as a command": (OutRecord(key, event, headers), b"malformed"),
        "other key": (OutRecord(key + b"/more", believed.value, headers), b"malformed"),
    }


async def test_case_25_poison_commands_become_dead_letters_and_the_partition_goes_on(
    site: Site, tenant: Tenant
) -> None:
    execution_id = tenant.execution()
    key = key_of(tenant, execution_id)
    propose = k.ProposeToolCall(call_id="poison", tool="read_file", arguments="{}")
    async with site_log(site) as log:
        believed = with_token(Draft(propose, agent_of(tenant), fresh("poison"), key), tenant.bot.token)
        place = log.place(key)
        for name, (record, reason) in unreadable(key, believed).items():
            letter = await dead_letter(log, place, await log.log.send(place, record))
            assert letter["placet_reason"] == reason, name
            assert letter["placet_detail"], name
        await _check_elsewhere(log, place, believed)

    assert tenant.propose(execution_id, "read_file", {}, "after")["status"] == "released"
    assert "poison" not in {call["call_id"] for call in _calls(tenant, execution_id)}


async def _check_elsewhere(log: SiteLog, place: TopicPartition, believed: OutRecord) -> None:
    """The same command, whole, on another partition than its key's."""
    elsewhere = TopicPartition(place.topic, (place.partition + 1) % log.partitions)
    letter = await dead_letter(log, elsewhere, await log.log.send(elsewhere, believed))
    assert letter["placet_reason"] == b"wrong_partition"


def _calls(tenant: Tenant, execution_id: str) -> list[Any]:
    items: list[Any] = tenant.admin.get(f"/executions/{execution_id}/tool-calls").json()["items"]
    return items


async def test_case_25_dead_letter_is_told_to_the_operator(site: Site, tenant: Tenant) -> None:
    execution_id = tenant.execution()
    key = key_of(tenant, execution_id)
    async with site_log(site) as log:
        place = log.place(key)
        offset = await log.log.send(place, OutRecord(key, b"noise", ()))
        await dead_letter(log, place, offset)

    letter = wait_for(
        lambda: dead_letter_shown_to(tenant.admin, f"{place}/{offset}"), lambda found: found is not None
    )
    assert (letter["key"], letter["reason"]) == (key.decode(), "malformed")
    said = (site.stack.data_dir / "logs" / "decider.log").read_text(encoding="utf-8")
    assert f"WARNING services.runtime.dead_letters {place}" in said
    assert f"offset {offset}" in said


async def test_case_25_dead_letter_does_not_stop_a_replay_and_is_in_the_rebuilt_view(
    site: Site, tenant: Tenant
) -> None:
    key = key_of(tenant, fresh("run"))
    async with site_log(site) as log:
        place = log.place(key)
        letter_id = f"{place}/{await log.log.send(place, OutRecord(key, b'noise', ()))}"
    wait_for(lambda: dead_letter_shown_to(tenant.admin, letter_id), lambda found: found is not None)

    replayed = site.stack.placet("replay", "--json")
    report = json.loads(replayed.stdout)
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr
    assert (report["equal"], report["swapped"], report["note"]) == (True, True, "")
    rows = {table["name"]: table["rows"] for table in report["tables"]}
    assert rows["dead_letters"] > 0
    assert dead_letter_shown_to(tenant.admin, letter_id) is not None


def dead_letter_shown_to(who: Caller, letter_id: str, scope: str = "") -> Any:
    """The letter of this id as somebody is shown it; None where it is not."""
    items = who.get(f"/dead-letters{scope}").json()["items"]
    return next((item for item in items if item["id"] == letter_id), None)


async def test_case_25_letters_of_nobody_are_shown_to_the_installations_admin_and_to_no_tenant(
    site: Site, tenant: Tenant
) -> None:
    key = key_of(tenant, fresh("run"))
    async with site_log(site) as log:
        topic = log.log.topics.commands
        sent = {
            name: await log.log.send(TopicPartition(topic, 0), OutRecord(record_key, b"noise", ()))
            for name, record_key in {"keyless": b"", "foreign": b"\xffnoise", "theirs": key}.items()
        }
        for offset in sent.values():
            await dead_letter(log, TopicPartition(topic, 0), offset)
    ids = {name: f"{topic}/0/{offset}" for name, offset in sent.items()}
    owner = Caller(tenant.client, site.stack.token)
    scope = "?scope=installation"

    wait_for(lambda: dead_letter_shown_to(tenant.admin, ids["theirs"]), lambda found: found is not None)
    assert (
        dead_letter_shown_to(tenant.admin, ids["keyless"])
        is dead_letter_shown_to(tenant.admin, ids["foreign"])
        is None
    )
    assert refused(tenant.admin.get(f"/dead-letters{scope}")) == (403, "not_authorised")
    operator = Caller(tenant.client, issue(tenant.keys_dir, "oscar", ["operator"], "default", PROJECT))
    assert refused(operator.get(f"/dead-letters{scope}")) == (403, "not_authorised")
    assert dead_letter_shown_to(owner, ids["keyless"], scope)["key"] == ""
    assert dead_letter_shown_to(owner, ids["foreign"], scope)["detail"]
    another = dead_letter_shown_to(owner, ids["theirs"], scope)
    assert (another["reason"], another["key"], another["detail"]) == ("malformed", None, None)
    assert dead_letter_shown_to(owner, ids["theirs"]) is None


async def test_case_25_foreign_records_among_the_facts_change_nothing_and_the_partition_goes_on(
    site: Site, tenant: Tenant
) -> None:
    execution_id = tenant.execution()
    call = tenant.propose(execution_id, "send_money", {"amount": 5})
    key = key_of(tenant, execution_id)
    released = ToolCallReleased(
        call_id="c1",
        grant_id="forged",
        revision=1,
        digest=call["digest"],
        arguments=json.dumps({"amount": 5}, separators=(",", ":")),
        decision_id="forged",
        released_by="decision",
        expires_at_ms=2**53,
    )
    async with site_log(site) as log:
        facts = TopicPartition(log.log.topics.executions, log.place(key).partition)
        for record in (OutRecord(b"", b"", ()), OutRecord(key, b"noise", ()), forged(key, tenant, released)):
            await log.log.send(facts, record)

    assert tenant.call(execution_id)["status"] == "held"
    assert tenant.consume(execution_id, call["digest"]).status_code == 409
    assert tenant.propose(execution_id, "read_file", {}, "after")["status"] == "released"
    assert "ToolCallReleased" in wait_for(lambda: tenant.events(execution_id), lambda found: len(found) > 5)
    assert tenant.events(execution_id).count("ToolCallReleased") == 1
    assert tenant.decide(call).status_code == 200
    assert tenant.consume(execution_id, call["digest"]).status_code == 200
    assert site.stack.wait_ready()
    counted = tenant.client.get("/metrics").text
    assert "placet_gateway_unreadable_records 0.0" not in counted


async def test_case_32_release_forged_in_the_term_in_force_is_shown_by_nobody_and_granted_by_nobody(
    site: Site, tenant: Tenant
) -> None:
    execution_id = tenant.execution()
    call = tenant.propose(execution_id, "send_money", {"amount": 5})
    key = key_of(tenant, execution_id)
    async with site_log(site) as log:
        facts = TopicPartition(log.log.topics.executions, log.place(key).partition)
        await log.log.send(facts, forged_claim(await term_in_force(log, facts), facts.partition))
        term = await term_in_force(log, facts)
        for number, body in enumerate(forged_decision(call, tenant)):
            meta = EventMeta(fresh("forged"), 2**41, term, 90 + number, "forged", "", tenant.name)
            await log.log.send(facts, event_record(body, meta, key))

    assert tenant.propose(execution_id, "read_file", {}, "after")["status"] == "released"
    shown = tenant.call(execution_id)
    assert shown["status"] == "held"
    assert not (shown.get("grant") or {}).get("token")
    assert tenant.consume(execution_id, call["digest"]).status_code == 409
    events = wait_for(lambda: tenant.events(execution_id), lambda found: found.count("ToolCallReleased") == 1)
    assert "DecisionRecorded" not in events
    # What was forged neither keeps people from deciding nor counts beside what they decide.
    assert tenant.decide(call).status_code == 200
    assert tenant.consume(execution_id, call["digest"]).status_code == 200
    events = wait_for(lambda: tenant.events(execution_id), lambda found: "GrantConsumed" in found)
    assert (events.count("DecisionRecorded"), events.count("ToolCallReleased")) == (1, 2)
    assert "placet_gateway_forged_records 0.0" not in tenant.client.get("/metrics").text
    said = (site.stack.data_dir / "logs" / "projector.log").read_text(encoding="utf-8")
    assert "is not signed by a decider for this place" in said


async def term_in_force(log: SiteLog, facts: TopicPartition) -> int:
    """The term in which a decider recorded last on a partition."""
    _, end = await log.log.bounds(facts)
    terms = [
        int(dict(raw.headers)["placet_term"])
        async for chunk in log.log.read(facts, 0, end)
        for raw in chunk
        if HEADER in dict(raw.headers)
    ]
    return max(terms)


def forged_claim(after: int, partition: int) -> OutRecord:
    """A claim that follows the one in force, as a decider would write it."""
    meta = EventMeta(fresh("forged"), 0, after, 0, fresh("claim"), "", "")
    return event_record(
        WriterClaimed(claim_id="forged", after=after, worker="forger"), meta, log_key(partition)
    )


def forged_decision(call: dict[str, Any], tenant: Tenant) -> tuple[Message, ...]:
    """An approval and what follows from it."""
    decided = DecisionRecorded(
        decision_id="forged",
        hold_id=call["hold_id"],
        call_id="c1",
        revision=1,
        digest=call["digest"],
        decision="approve",
        by="rita",
        roles=("reviewer",),
        feedback="",
        edited_arguments=None,
        value=None,
        scope="once",
        resolves=True,
    )
    released = ToolCallReleased(
        call_id="c1",
        grant_id="forged",
        revision=1,
        digest=call["digest"],
        arguments=json.dumps({"amount": 5}, separators=(",", ":")),
        decision_id="forged",
        released_by="decision",
        expires_at_ms=2**53,
    )
    return decided, released


def forged(key: bytes, tenant: Tenant, body: ToolCallReleased) -> OutRecord:
    """A release that somebody with raw access wrote, in every form right, but under no term in force."""
    headers = {
        "ce_specversion": "1.0",
        "ce_id": fresh("forged"),
        "ce_type": codec.SUBJECTS[ToolCallReleased],
        "ce_source": "/placet/decider",
        "ce_subject": key.decode(),
        "ce_time": "2026-01-01T00:00:00.000Z",
        "placet_tenant": tenant.name,
        "placet_term": "7777777",
        "placet_version": "99",
        "placet_command_id": "forged",
        "placet_command_digest": "0" * 32,
        "placet_command_offset": "0",
    }
    return OutRecord(key, codec.encode(body), tuple((name, text.encode()) for name, text in headers.items()))
