"""Case 35 of the abuse list: an operator, admin or policy of one project acting on another."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator

import httpx
import pytest

from log.places import TopicPartition
from schemas.actor import Actor
from schemas.commands import CancelExecution, PublishPolicy, PublishPrincipal
from schemas.envelope import Draft
from schemas.ids import definition_key, execution_key
from tests.integration.doors import (
    PROJECT,
    Caller,
    Tenant,
    dead_letter,
    fresh,
    new_tenant,
    received,
    refused,
    site_log,
    socket,
)
from tests.integration.site import PAY, READ, Site
from tests.integration.verbs import BY_NAME, VERBS, Things, Verb
from tests.servers.stack import wait_for

pytestmark = [pytest.mark.stack, pytest.mark.broker]

OTHER = "p2"
EVERY_ROLE = ("admin", "operator", "reviewer", "analyst", "treasurer")
TWO_TREASURERS = """
policy: own
rules:
  - {id: two, match: {tools: [send_money]}, then: hold, hold: {roles: [treasurer], quorum: 2}}
  - {id: one, match: {tools: [ask_boss]}, then: hold, hold: {remember: {four_eyes: false}}}
  - {id: reads, match: {annotations: {readOnlyHint: true}}, then: allow}
"""
ALLOW_ALL = """
policy: mine
scope: {agent: bot}
rules:
  - {id: all, then: allow}
"""
ASK = {
    "name": "ask_boss",
    "annotations": {"destructiveHint": False},
    "inputSchema": {
        "type": "object",
        "properties": {"amount": {"type": "number"}, "pin": {"type": "string", "x-placet-sensitive": True}},
    },
}
YAML = {"Content-Type": "application/yaml"}


@pytest.fixture(scope="module")
def tenant(site: Site) -> Iterator[Tenant]:
    with new_tenant(site, TWO_TREASURERS, PAY, READ, ASK) as found:
        yield found


def of_project(tenant: Tenant, project: str, *roles: str) -> Caller:
    return tenant.caller(f"somebody-{project.replace('*', 'wide')}", *(roles or EVERY_ROLE), project=project)


def publish(by: Caller, policy: str) -> httpx.Response:
    name = policy.split()[1]
    return by.ask("PUT", f"/policies/{name}", policy.encode(), headers=YAML)


def test_case_35_policy_of_another_projects_operator_releases_nothing_here(tenant: Tenant) -> None:
    assert publish(of_project(tenant, OTHER, "operator"), ALLOW_ALL).json()["project"] == OTHER

    _, call = tenant.held()

    assert call["verdict"]["rules"] == ["own@1/two"]


def test_case_35_policy_of_a_project_judges_its_own_calls(tenant: Tenant) -> None:
    assert publish(of_project(tenant, "p3", "operator"), ALLOW_ALL).status_code == 200
    bot = tenant.caller("bot", "agent", agent="bot", project="p3")
    run = bot.post("/executions", {"agent": "bot"}).json()["execution_id"]

    body = {"tool": "send_money", "arguments": {"amount": 1.0}}
    call = bot.post(f"/executions/{run}/tool-calls", body).json()

    assert (call["status"], call["verdict"]["policy_version"]) == ("released", "p3/mine@1")


@pytest.mark.parametrize("scope", [PROJECT, f"{PROJECT}*", "d*"])
def test_case_35_policy_that_names_another_project_is_refused(tenant: Tenant, scope: str) -> None:
    document = ALLOW_ALL.replace("{agent: bot}", f"{{agent: bot, project: '{scope}'}}").replace(
        "mine", fresh("p")
    )

    answer = publish(of_project(tenant, OTHER, "operator"), document)

    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (422, "scope.project")


def test_case_35_person_disabled_in_another_project_still_decides_here(tenant: Tenant) -> None:
    body = {"subjects": ["rita"], "roles": [], "disabled": True}
    name = fresh("rita")
    assert of_project(tenant, OTHER, "admin").ask("PUT", f"/principals/{name}", body).status_code == 200
    _, call = tenant.held("ask_boss")

    assert tenant.decide(call).status_code == 200
    there = tenant.caller("rita", "reviewer", project=OTHER)
    assert there.get("/executions").status_code == 403


def test_case_35_roles_given_in_another_project_count_there_alone(tenant: Tenant) -> None:
    subject = fresh("mole")
    body = {"subjects": [subject], "roles": ["treasurer", "admin", "operator"]}
    assert of_project(tenant, OTHER, "admin").ask("PUT", f"/principals/{subject}", body).status_code == 200
    _, call = tenant.held()
    mole = tenant.caller(subject, "analyst", project="*")

    assert refused(tenant.decide(call, by=mole))[0] == 403
    assert publish(mole, ALLOW_ALL).status_code == 403
    assert publish(tenant.caller(subject, "analyst", project=PROJECT), ALLOW_ALL).status_code == 403


def test_case_35_project_may_not_take_an_account_of_a_person_of_the_tenant(tenant: Tenant) -> None:
    name = fresh("tina")
    body = {"subjects": [name], "roles": ["treasurer"]}
    assert tenant.admin.ask("PUT", f"/principals/{name}", body).status_code == 200
    other = of_project(tenant, OTHER, "admin")

    taken = other.ask("PUT", f"/principals/{fresh('mine')}", {"subjects": [name]})
    given = other.ask("PUT", f"/principals/{name}", {"subjects": [name, "mallory"]})

    assert (taken.status_code, given.status_code) == (422, 422)
    assert taken.json()["errors"][0]["path"] == "subjects[0]"


def test_case_35_tool_of_another_project_changes_nothing_here(tenant: Tenant) -> None:
    lax = {"name": "send_money", "annotations": {"readOnlyHint": True}, "idempotent": True}
    assert of_project(tenant, OTHER, "operator").ask("PUT", "/tools/send_money", lax).status_code == 200

    here = of_project(tenant, PROJECT).get("/tools/send_money").json()
    there = of_project(tenant, OTHER).get("/tools/send_money").json()

    assert (here["project"], there["project"]) == ("*", OTHER)
    _, call = tenant.held()
    assert call["tool_version"] == here["tool_version"] != there["tool_version"]


def test_case_35_token_of_one_project_may_not_name_another(tenant: Tenant) -> None:
    answer = of_project(tenant, OTHER).get("/holds", headers={"Placet-Project": PROJECT})
    wide = of_project(tenant, OTHER).get("/holds", headers={"Placet-Project": "*"})

    assert (refused(answer), refused(wide)) == ((403, "not_authorised"), (403, "not_authorised"))


def test_case_35_decider_refuses_definitions_of_a_project_that_is_not_the_senders(tenant: Tenant) -> None:
    async def letters() -> list[bytes]:
        async with site_log(tenant.site) as log:
            topic = TopicPartition(log.log.topics.definition_commands, 0)
            nora = Actor(subject="nora", tenant=tenant.name, project=OTHER, roles=EVERY_ROLE)
            policy = PublishPolicy(name="mine", document=json.dumps({"policy": "mine", "rules": []}))
            person = PublishPrincipal(name="x", document=json.dumps({"principal": "x", "subjects": ["rita"]}))
            drafts = [
                Draft(policy, nora, fresh("c"), definition_key(tenant.name, "policy", "mine")),
                Draft(policy, nora, fresh("c"), definition_key(tenant.name, "policy", "mine", PROJECT)),
                Draft(person, nora, fresh("c"), definition_key(tenant.name, "principal", "x")),
            ]
            found = []
            for record in log.signer.sign(drafts):
                offset = await log.log.send(topic, record)
                found.append(await dead_letter(log, topic, offset))
            key = execution_key(tenant.name, PROJECT, "run")
            (steering,) = log.signer.sign([Draft(CancelExecution(), nora, fresh("c"), key)])
            place = log.place(key)
            found.append(await dead_letter(log, place, await log.log.send(place, steering)))
            return [letter["placet_reason"] for letter in found]

    assert asyncio.run(letters()) == [b"wrong_key"] * 4


# All verbs, tried on what is of the project `default`: with a token of it, of another project, of the whole tenant.


def send_message(tenant: Tenant, run: str) -> None:
    answer = tenant.bot.post(f"/executions/{run}/messages", {"message_id": "m", "text": "hello"})
    assert answer.status_code == 201, answer.text


@pytest.fixture(scope="module")
def things(tenant: Tenant) -> Things:
    olga = of_project(tenant, PROJECT)
    assert olga.ask("PUT", "/tools/local-tool", {"name": "local-tool"}).status_code == 200
    local = ALLOW_ALL.replace("mine", "local").replace("bot", "nobody")
    assert publish(olga, local).status_code == 200
    run, call = tenant.held("ask_boss")
    remembered = tenant.decide(call, scope="rule", remember={"uses": 10})
    assert remembered.status_code == 200, remembered.text
    tenant.propose(run, "ask_boss", {"amount": 7.0, "pin": "1234"}, call_id="sealed")
    request = {"execution_id": run, "agent": "bot", "kind": "clarification", "question": "Which?"}
    send_message(tenant, run)
    request_id = tenant.bot.post("/requests", request).json()["request_id"]
    after = tenant.rita.get(f"/executions/{run}").json()["cursor"]
    there = of_project(tenant, OTHER)
    there.ask("PUT", "/principals/rita", {"subjects": ["rita"], "roles": []})
    wait_for(lambda: there.get("/audit/impact?reviewer=rita").is_success, bool)
    return Things(
        tenant,
        run,
        call,
        request_id,
        wait_for(lambda: olga.get("/standing-rules").json()["items"], bool)[0]["rule_id"],
        wait_for(lambda: olga.get(f"/audit?subject=rita&after={after}").json()["items"], bool)[0]["event_id"],
        olga.get("/data-keys").json()["items"][0]["name"],
        "{partition}@{offset}".format(**olga.get(f"/executions/{run}/events?limit=1").json()["items"][0]),
    )


def sent(by: Caller, verb: Verb, things: Things, headers: dict[str, str] | None = None) -> httpx.Response:
    body = verb.body(things) if callable(verb.body) else verb.body
    path = verb.path.format(
        run=things.execution_id,
        hold=things.call["hold_id"],
        request=things.request_id,
        rule=things.rule_id,
        event=things.event_id,
        key=things.data_key,
        partition=things.place.partition("@")[0],
        offset=things.place.partition("@")[2],
    )
    return by.ask(verb.name, path, body, headers=headers or {})


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: f"{verb.name} {verb.path}")
def test_case_35_verb_of_another_project_finds_and_changes_nothing(things: Things, verb: Verb) -> None:
    answer = sent(of_project(things.tenant, OTHER), verb, things)

    assert answer.status_code == verb.other, answer.text
    own = (things.execution_id, things.call["hold_id"], things.rule_id, "local-tool")
    assert [one for one in own if verb.other == 200 and one in answer.text] == []


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: f"{verb.name} {verb.path}")
@pytest.mark.parametrize("project", [PROJECT, "*"])
def test_case_35_verb_of_the_project_and_of_the_tenant_finds_it(
    things: Things, verb: Verb, project: str
) -> None:
    run, call = things.tenant.held("ask_boss", amount=6.0)
    send_message(things.tenant, run)
    fresh_things = Things(**{**things.__dict__, "execution_id": run, "call": call})

    answer = sent(of_project(things.tenant, project), verb, fresh_things, {"Placet-Project": PROJECT})

    assert (answer.status_code, answer.json().get("code")) != (404, "not_found"), answer.text
    assert answer.status_code not in (401, 500), answer.text


@pytest.mark.parametrize(
    "verb", [verb for verb in VERBS if verb.other == 404], ids=lambda v: f"{v.name} {v.path}"
)
def test_case_35_token_of_the_tenant_works_in_the_project_that_it_names(things: Things, verb: Verb) -> None:
    if verb.path.startswith(("/data-keys", "/tools", "/policies")):
        assert (
            sent(of_project(things.tenant, "*"), verb, things, {"Placet-Project": OTHER}).status_code == 404
        )
        return
    answer = sent(of_project(things.tenant, "*"), verb, things, {"Placet-Project": OTHER})

    assert answer.status_code == 404, answer.text


def test_case_35_every_verb_of_the_interface_is_tried(site: Site) -> None:
    paths = httpx.get(f"{site.url}/openapi.json").json()["paths"]
    served = {
        (method.upper(), path)
        for path, item in paths.items()
        for method in item
        if path.startswith("/v1/") and method in ("get", "put", "post", "delete", "patch")
    }

    untried = {
        (method, path)
        for method, path in served - BY_NAME
        if not any(verb.name == method and is_at(verb.path, path) for verb in VERBS)
    }

    assert untried == set()


def is_at(verb_path: str, path: str) -> bool:
    wanted = re.sub(r"\{[^}]+\}", "[^/]+", path)
    return re.fullmatch(wanted, "/v1" + verb_path.partition("?")[0]) is not None


def test_case_35_same_ids_in_two_projects_are_two_things(things: Things) -> None:
    other = of_project(things.tenant, OTHER)
    started = other.post("/executions", {"execution_id": things.execution_id, "agent": "elsewhere"})
    bulk = [{"hold_id": things.call["hold_id"], "digest": things.call["digest"], "decision": "approve"}]

    assert started.status_code == 201
    assert things.tenant.rita.get(f"/executions/{things.execution_id}").json()["agent"] == "bot"
    decided = other.post("/holds/decisions", {"items": bulk}).json()["items"]
    assert [item["code"] for item in decided] == ["not_found"]


def test_case_35_same_idempotency_key_in_two_projects_asks_twice(tenant: Tenant) -> None:
    headers, run = {"Idempotency-Key": fresh("key")}, fresh("run")
    answers = [
        of_project(tenant, "*").post(
            "/executions",
            {"execution_id": run, "agent": "bot"},
            headers={**headers, "Placet-Project": project},
        )
        for project in (PROJECT, OTHER)
    ]

    assert [answer.status_code for answer in answers] == [201, 201]
    assert of_project(tenant, OTHER).get(f"/executions/{run}").status_code == 200


async def test_case_35_channels_of_another_project_are_not_there(things: Things) -> None:
    token = things.tenant.token("nora", *EVERY_ROLE, project="p4")
    async with socket(things.tenant.site, token) as ws:
        for channel in (f"executions:{things.execution_id}", f"calls:{things.execution_id}/c1"):
            await ws.send(json.dumps({"type": "subscribe", "channels": [channel]}))
            assert (await received(ws))["code"] == "not_found"
