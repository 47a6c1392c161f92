"""Sealed values: asked for, handed over once, erased. The decider sees commitments and nothing else."""

import json
from typing import Any

import pytest

from schemas import commands as k
from schemas.actor import Actor
from schemas.events.definitions import DataKeyDestroyed
from schemas.limits import SECRETS_LEASE_MS
from schemas.policy_problems import PolicyRefused
from schemas.sensitive import MARK
from schemas.tool_definition import tool_to_publish
from services.domain.publishing import decide, evolve
from tests.domain.steps import code, consumed, decided, proposed, started
from tests.domain.world import BOT, OLGA, OTHER_BOT, PROJECT, RITA, TENANT, World, names, published, the

SEALED = {"handle": "sec_" + "1" * 32, "commitment": "b" * 64}
OTHER = {"handle": "sec_" + "2" * 32, "commitment": "c" * 64}
LOGIN = {
    "name": "pay",
    "inputSchema": {
        "type": "object",
        "properties": {"amount": {"type": "number"}, "token": {"type": "string", MARK: True}},
    },
}
ROOT = OLGA.model_copy(update={"subject": "root", "roles": ("admin",)})


def with_token(token: Any) -> str:
    return json.dumps({"amount": 5, "token": token}, separators=(",", ":"), sort_keys=True)


def world_with_secret_tool() -> World:
    world = started()
    world.definitions = published(world.definitions, None, [LOGIN])
    return world


def asked(world: World, fields: str = '["API_KEY"]', **content: Any) -> list[Any]:
    command = k.RequestHumanInput(
        request_id="q", kind="env_var", question="Which key?", fields=fields, **content
    )
    return world.ask(command)


def answered(world: World, value: Any = None, hold: Any = None) -> list[Any]:
    hold = hold or the(asked(world), "HoldOpened")
    text = json.dumps({"API_KEY": SEALED} if value is None else value)
    return world.ask(k.DecideHold(hold_id=hold.hold_id, decision="respond", digest="", value=text), RITA)


def taken(world: World, attempt_id: str = "a", by: Any = BOT) -> list[Any]:
    return world.ask(k.TakeSecrets(request_id="q", attempt_id=attempt_id), by)


def erased(world: World, by: Any = OLGA, **subject: str) -> list[Any]:
    return world.ask(k.EraseSecrets(**{"call_id": "", "request_id": "", **subject}), by)


def test_call_with_sealed_argument_is_judged_like_any_other() -> None:
    world = world_with_secret_tool()

    said = proposed(world, "pay", arguments=with_token(SEALED))

    assert names(said) == ["ToolCallProposed", "PolicyVerdictIssued", "HoldOpened"]


def test_call_with_plain_sensitive_argument_is_refused_and_not_quoted() -> None:
    world = world_with_secret_tool()

    said = proposed(world, "pay", arguments=with_token("hunter2"))

    assert code(said) == "invalid_arguments"
    assert "hunter2" not in str(said)


@pytest.mark.parametrize(
    "arguments",
    [{"auth": "hunter2"}, {"auth": ["hunter2"]}, {"logins": {"pin": "hunter2"}}, {"logins": [["hunter2"]]}],
    ids=str,
)
def test_sensitive_argument_where_none_is_looked_for_is_refused_and_not_quoted(arguments: Any) -> None:
    secret = {MARK: True}
    login = {"type": "object", "properties": {"pin": secret}}
    properties = {
        "auth": {"type": "object", "properties": {"token": secret}},
        "logins": {"type": "array", "items": login},
    }
    world = started()
    tool = {"name": "pay", "inputSchema": {"type": "object", "properties": properties}}
    world.definitions = published(world.definitions, None, [tool])

    said = proposed(world, "pay", arguments=json.dumps(arguments, separators=(",", ":")))

    assert code(said) == "invalid_arguments"
    assert "hunter2" not in str(said)


def test_edit_to_a_plain_sensitive_argument_is_refused_and_not_quoted() -> None:
    world = world_with_secret_tool()
    hold = the(proposed(world, "pay", arguments=with_token(SEALED)), "HoldOpened")

    said = decided(world, hold, "edit", edited_arguments=with_token("hunter2"))

    assert code(said) == "invalid_arguments"
    assert "hunter2" not in str(said)
    assert names(decided(world, hold, "edit", edited_arguments=with_token(OTHER)))[-1] == "ToolCallReleased"


def test_tool_whose_marks_cannot_be_kept_to_is_not_published() -> None:
    schema = {"type": "object", "additionalProperties": {MARK: True}}

    with pytest.raises(PolicyRefused, match="properties and items"):
        tool_to_publish("pay", {"name": "pay", "inputSchema": schema})


@pytest.mark.parametrize(
    ("fields", "content"),
    [
        ("[]", {}),
        ('["NOT A NAME"]', {}),
        ('["A","A"]', {}),
        ("[7]", {}),
        ('["A",{"name":"A"}]', {}),
        ('[{"title":"A"}]', {}),
        ('[{"name":"A","kind":"x"}]', {}),
        ('[{"name":"A","required":"yes"}]', {}),
        ('[{"name":"A","description":1}]', {}),
        ('[{"name":"A","pattern":"("}]', {}),
        ('[{"name":"A","pattern":"(?=a)"}]', {}),
        ('["A"]', {"default": '{"A":"plain"}'}),
        ('["A"]', {"options": '["plain"]'}),
    ],
)
def test_env_var_request_that_names_no_variables_or_holds_values_is_refused(
    fields: str, content: dict[str, str]
) -> None:
    assert code(asked(started(), fields, **content)) == "invalid"


def test_env_var_answer_is_taken_sealed_only_and_never_quoted() -> None:
    world = started()
    hold = the(asked(world), "HoldOpened")

    mistakes: list[Any] = [
        {"API_KEY": "hunter2"}, {"API_KEY": SEALED, "B": SEALED}, {}, "hunter2", {"API_KEY": {}}
    ]  # fmt: skip
    for wrong in mistakes:
        said = answered(world, wrong, hold)
        assert code(said) == "invalid_arguments"
        assert "hunter2" not in str(said)
    said = answered(world, None, hold)

    assert json.loads(the(said, "HumanInputProvided").response) == {"API_KEY": SEALED}


def test_secrets_taken_before_the_answer_are_not_there() -> None:
    world = started()
    asked(world)

    assert code(taken(world)) == "not_released"


def test_secrets_are_delivered_to_one_attempt_and_again_to_it_within_its_lease() -> None:
    world = started()
    answered(world)

    said = the(taken(world), "SecretsDelivered")

    assert (said.attempt_id, said.until_ms, said.by) == ("a", world.now_ms + SECRETS_LEASE_MS, "bot")
    assert code(taken(world, "b")) == "already_consumed"
    assert code(taken(world)) == "duplicate"
    world.later(SECRETS_LEASE_MS / 1000)
    assert code(taken(world)) == "expired"
    assert code(taken(world, "b")) == "already_consumed"


def test_secrets_are_not_delivered_to_who_merely_names_the_attempt_of_another() -> None:
    world = started()
    answered(world)
    taken(world)

    colleague = Actor(subject="bot-again", tenant=TENANT, project=PROJECT, roles=("agent",), agent="bot")
    assert code(taken(world, by=colleague)) == "already_consumed"
    assert code(taken(world)) == "duplicate"


def test_variables_are_handed_to_no_operator_before_the_agent_takes_them() -> None:
    world = started()
    answered(world)

    assert code(taken(world, by=OLGA)) == "not_authorised"
    assert names(taken(world)) == ["SecretsDelivered"]


def test_consumption_is_repeated_by_whose_attempt_it_is_alone() -> None:
    world = world_with_secret_tool()
    hold = the(proposed(world, "pay", arguments=with_token(SEALED)), "HoldOpened")
    decided(world, hold, "approve")
    again = k.ConsumeGrant(call_id="c", digest=hold.digest, attempt_id="a")

    assert names(consumed(world, hold.digest)) == ["GrantConsumed"]
    assert code(world.ask(again, OLGA)) == "already_consumed"
    assert code(world.ask(again)) == "duplicate"


def test_secrets_taken_by_another_agent_or_of_another_kind_are_refused() -> None:
    world = started()
    answered(world)
    world.ask(k.RequestHumanInput(request_id="p", kind="clarification", question="Why?"))

    assert code(taken(world, by=OTHER_BOT)) == "not_found"
    assert code(taken(world, by=RITA)) == "not_found"
    assert code(world.ask(k.TakeSecrets(request_id="p", attempt_id="a"))) == "invalid"
    assert code(world.ask(k.TakeSecrets(request_id="none", attempt_id="a"))) == "not_found"


def test_secrets_rejected_are_nothing_to_take() -> None:
    world = started()
    hold = the(asked(world), "HoldOpened")

    said = decided(world, hold, "reject")

    assert the(said, "HumanInputProvided").response == "null"


def test_erased_answer_is_delivered_to_nobody() -> None:
    world = started()
    answered(world)
    taken(world)

    assert names(erased(world, request_id="q")) == ["SecretsErased"]
    assert code(erased(world, request_id="q")) == "duplicate"
    assert code(taken(world)) == "expired"


def test_erased_call_is_consumed_by_nobody() -> None:
    world = world_with_secret_tool()
    hold = the(proposed(world, "pay", arguments=with_token(SEALED)), "HoldOpened")
    decided(world, hold, "approve")

    assert names(erased(world, call_id="c")) == ["SecretsErased"]
    assert code(consumed(world, hold.digest)) == "expired"


@pytest.mark.parametrize(
    ("by", "subject", "expected"),
    [
        (BOT, {"call_id": "c"}, "not_authorised"),
        (RITA, {"call_id": "c"}, "not_authorised"),
        (OLGA, {}, "invalid"),
        (OLGA, {"call_id": "c", "request_id": "q"}, "invalid"),
        (OLGA, {"call_id": "none"}, "not_found"),
        (OLGA, {"request_id": "none"}, "not_found"),
    ],
)
def test_erasure_that_may_not_be_is_refused(by: Any, subject: dict[str, str], expected: str) -> None:
    world = started()
    proposed(world, "pay")

    assert code(erased(world, by, **subject)) == expected


def test_erasure_in_an_execution_long_ended_is_recorded() -> None:
    world = started()
    proposed(world, "read")
    world.ask(k.CompleteExecution())
    world.partition.recent.clear()
    world.partition.forgotten.add(world.key())

    assert names(erased(world, call_id="c")) == ["SecretsErased"]


def test_data_key_is_destroyed_once_by_an_admin() -> None:
    definitions = World().definitions
    command = k.DestroyDataKey(name="key-1", reason="the customer left")
    key = b"acme/main/data-key/key-1"

    assert [event.code for event in decide(definitions, key, command, OLGA)] == ["not_authorised"]  # type: ignore[attr-defined]
    (said,) = decide(definitions, key, command, ROOT)

    assert said == DataKeyDestroyed(name="key-1", reason="the customer left", by="root", project="main")
    after = evolve(definitions, said, "acme", definitions.through_offset + 1)
    assert after.through_offset == definitions.through_offset
    assert [event.code for event in decide(after, key, command, ROOT)] == ["duplicate"]  # type: ignore[attr-defined]
