from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from gateway.identity.authentication import (
    VERIFIED_FOR_S,
    Authenticator,
    RolesChanged,
    acts_for,
    check_acts,
    check_role,
    check_sees,
    permitted_scope,
    project_of,
    reads_project,
)
from gateway.identity.issuer import issue
from gateway.identity.keys import ISSUERS, PublishedKeyFile, load_or_create
from gateway.problems import Problem
from schemas.actor import Actor
from schemas.principals import People, principal_from_value
from schemas.refusals import Refusal
from schemas.token import Claims

BOT = Actor(subject="bot", tenant="acme", project="books", roles=("agent",), agent="billing")


def person(*roles: str) -> Actor:
    return Actor(subject="anna", tenant="acme", project="books", roles=roles)


def claims(actor: Actor, user: str | None = None, workspace: str | None = None) -> Claims:
    return Claims(actor, 2_000_000_000, "t", user, workspace)


@pytest.fixture
def clock() -> list[float]:
    return [0.0]


async def test_claims_token_believed_once_still_expires(tmp_path: object, clock: list[float]) -> None:
    from pathlib import Path

    directory = Path(str(tmp_path))
    token = issue(directory, "anna", ["reviewer"], "acme", "books", ttl_s=60)
    authenticator = Authenticator(load_or_create(directory).issuers.get, lambda: clock[0])
    expires_at_s = await _expiry(authenticator, token, clock)
    clock[0] = expires_at_s - 1
    assert (await authenticator.claims(token)).actor.subject == "anna"
    clock[0] = expires_at_s
    with pytest.raises(Problem) as caught:
        await authenticator.claims(token)
    assert caught.value.code is Refusal.UNAUTHENTICATED


async def _expiry(authenticator: Authenticator, token: str, clock: list[float]) -> int:
    import time

    clock[0] = time.time()
    return (await authenticator.claims(token)).expires_at_s


def people(*documents: dict[str, Any]) -> People:
    found = People()
    for document in documents:
        found = found.with_principal("acme", principal_from_value(document))
    return found


async def test_still_stands_until_the_roles_that_count_are_others(tmp_path: Path) -> None:
    ann = {"principal": "ann", "subjects": ["anna", "root"], "roles": ["admin"]}
    now = [people(ann)]
    authenticator = Authenticator(load_or_create(tmp_path).issuers.get, people=lambda: now[0])
    promoted = await authenticator.claims(issue(tmp_path, "anna", ["analyst"], "acme", "books"))
    unknown = await authenticator.claims(issue(tmp_path, "bob", ["reviewer"], "acme", "books"))
    assert promoted.actor.roles == ("admin",)
    assert authenticator.has_same_roles(promoted)
    assert authenticator.has_same_roles(unknown)
    for version in (
        {**ann, "roles": ["reviewer"]},
        {**ann, "disabled": True},
        # The account was taken away: its token's own roles count again.
        {**ann, "subjects": ["root"]},
    ):
        now[0] = people(ann, version)
        assert not authenticator.has_same_roles(promoted)
        assert authenticator.has_same_roles(unknown)
    now[0] = people(ann, {"principal": "bob", "subjects": ["bob"], "roles": ["reviewer"]})
    assert authenticator.has_same_roles(unknown)


async def test_claims_issuers_file_damaged_is_unavailable_and_names_no_file(tmp_path: Path) -> None:
    token = issue(tmp_path, "anna", ["reviewer"], "acme", "books")
    (tmp_path / ISSUERS).write_text("damaged")
    with pytest.raises(Problem) as caught:
        await Authenticator(PublishedKeyFile(tmp_path / ISSUERS).get).claims(token)
    assert (caught.value.status, str(tmp_path) in caught.value.detail) == (503, False)


class Withdrawn:
    """A file of issuers' keys, whose only key can be withdrawn, and an authenticator that reads it."""

    def __init__(self, directory: Path) -> None:
        self.now_s = time.time()
        self.token = issue(directory, "anna", ["reviewer"], "acme", "books")
        self.path = directory / ISSUERS
        keys = PublishedKeyFile(self.path, lambda: self.now_s)
        self.authenticator = Authenticator(keys.get, lambda: self.now_s, keys_version=keys.version)

    def write(self, text: str, after_s: float) -> None:
        self.path.write_text(text)
        self.now_s += after_s
        os.utime(self.path, (self.now_s, self.now_s))


async def test_admission_ends_with_its_issuers_key_within_a_second(tmp_path: Path) -> None:
    issuers = Withdrawn(tmp_path)
    authentication = await issuers.authenticator.admit(issuers.token)
    await authentication.check()

    issuers.write("{}", after_s=1.0)

    with pytest.raises(Problem) as caught:
        await authentication.check()
    assert caught.value.code is Refusal.UNAUTHENTICATED
    with pytest.raises(Problem):
        await issuers.authenticator.claims(issuers.token)


async def test_admission_outlives_a_file_that_is_being_written_and_ends_after_its_minute(
    tmp_path: Path,
) -> None:
    issuers = Withdrawn(tmp_path)
    authentication = await issuers.authenticator.admit(issuers.token)
    whole = issuers.path.read_text()

    issuers.write(whole[:10], after_s=1.0)
    await authentication.check()
    issuers.write(whole, after_s=1.0)
    await authentication.check()
    issuers.write(whole[:10], after_s=1.0)
    await authentication.check()

    issuers.now_s += VERIFIED_FOR_S
    with pytest.raises(Problem) as caught:
        await authentication.check()
    assert caught.value.code is Refusal.UNAVAILABLE


async def test_admission_is_verified_anew_after_a_minute_also_where_no_change_was_seen(
    tmp_path: Path,
) -> None:
    issuers = Withdrawn(tmp_path)
    keys_now = [load_or_create(tmp_path).issuers]
    authenticator = Authenticator(lambda kid: keys_now[0].get(kid), lambda: issuers.now_s)
    authentication = await authenticator.admit(issuers.token)
    keys_now[0] = {}
    issuers.now_s += VERIFIED_FOR_S - 1
    await authentication.check()
    issuers.now_s += 1
    with pytest.raises(Problem) as caught:
        await authentication.check()
    assert caught.value.code is Refusal.UNAUTHENTICATED


async def test_admission_expires_and_shows_that_roles_have_changed(tmp_path: Path) -> None:
    issuers = Withdrawn(tmp_path)
    now = [People()]
    issuers.authenticator.people = lambda: now[0]
    authentication = await issuers.authenticator.admit(issuers.token)
    now[0] = people({"principal": "ann", "subjects": ["anna"], "roles": ["reviewer"], "disabled": True})
    with pytest.raises(RolesChanged):
        await authentication.check()
    now[0] = People()
    await authentication.check()
    issuers.now_s = authentication.claims.expires_at_s - 1
    assert authentication.recheck_s == 1.0
    issuers.now_s += 1
    with pytest.raises(Problem) as caught:
        await authentication.check()
    assert caught.value.detail == "the token has expired: get a new one"


@pytest.mark.parametrize("sent", ["", " ", "\t"])
def test_project_of_an_empty_header_is_refused_and_of_none_is_the_default(sent: str) -> None:
    with pytest.raises(Problem, match="Placet-Project is empty") as refused:
        project_of({"placet-project": sent})

    assert refused.value.code == Refusal.INVALID
    assert project_of({}) == ""
    assert project_of({"placet-project": " books "}) == "books"


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic abc", "bearer x y", "token abc"])
async def test_of_headers_without_a_believed_bearer_token_refused(header: str) -> None:
    with pytest.raises(Problem) as caught:
        await Authenticator(lambda kid: None).of_headers({"authorization": header})
    assert caught.value.status == 401


@pytest.mark.parametrize(
    ("actor", "agent", "may"),
    [
        (BOT, "billing", True),
        (BOT, "other", False),
        (BOT.model_copy(update={"roles": ("agent", "admin")}), "other", False),
        (person("operator"), "billing", True),
        (person("admin"), "billing", True),
        (person("reviewer"), "billing", False),
        (person("analyst"), "billing", False),
    ],
)
def test_acts_for_an_agent(actor: Actor, agent: str, may: bool) -> None:
    assert acts_for(actor, agent) is may
    if not may:
        with pytest.raises(Problem) as caught:
            check_acts(actor, agent)
        assert caught.value.status == 403


def test_check_sees_agent_only_its_own() -> None:
    check_sees(BOT, "billing")
    check_sees(person("analyst"), "anything")
    for actor, agent in ((BOT, "other"), (person("treasurer"), "billing")):
        with pytest.raises(Problem):
            check_sees(actor, agent)


def test_check_role_agents_token_has_none() -> None:
    check_role(person("admin"), "operator")
    both = BOT.model_copy(update={"roles": ("agent", "operator")})
    for actor in (both, person("reviewer")):
        with pytest.raises(Problem):
            check_role(actor, "operator")


@pytest.mark.parametrize("role", ["reviewer", "operator", "analyst", "admin"])
def test_agents_token_that_lists_a_readers_role_reads_no_more_than_its_agents(role: str) -> None:
    both = BOT.model_copy(update={"roles": ("agent", role)})
    assert reads_project(person(role))
    assert not reads_project(both)
    check_sees(both, "billing")
    with pytest.raises(Problem):
        check_sees(both, "other")
    assert permitted_scope(Claims(both, 2**40, "t"), "user", "") == ""
    with pytest.raises(Problem):
        permitted_scope(Claims(both, 2**40, "t"), "user", "anyone")


@pytest.mark.parametrize(
    ("claim", "actor", "given", "used"),
    [
        (None, BOT, "", ""),
        ("alice", BOT, "", "alice"),
        ("alice", BOT, "alice", "alice"),
        ("*", BOT, "anyone", "anyone"),
        ("*", BOT, "", ""),
        (None, person("operator"), "anyone", "anyone"),
        (None, person("admin"), "anyone", "anyone"),
    ],
)
def test_permitted_scope_given(claim: str | None, actor: Actor, given: str, used: str) -> None:
    assert permitted_scope(claims(actor, user=claim), "user", given) == used
    assert permitted_scope(claims(actor, workspace=claim), "workspace", given) == used


@pytest.mark.parametrize(("claim", "actor"), [(None, BOT), ("alice", BOT), ("alice", person("admin"))])
def test_permitted_scope_of_somebody_else_refused(claim: str | None, actor: Actor) -> None:
    with pytest.raises(Problem) as caught:
        permitted_scope(claims(actor, user=claim), "user", "bob")
    assert caught.value.code is Refusal.NOT_AUTHORISED
