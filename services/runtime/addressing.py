"""Checks that a command is in its topic and its key's partition, and that its key matches its sender."""

from typing import get_args

from schemas.commands import DefinitionCommand, ExecutionCommand, ReserveRuleUse
from schemas.ids import (
    TENANT_WIDE,
    definition_key,
    is_client_id,
    project_of_definition,
    rule_uses_key,
    split_execution_key,
)
from schemas.message import Message
from schemas.record import Command, UnreadableRecord
from schemas.standing_rule import RULE_KIND
from schemas.topics import partition_of
from services.domain.memory.standing_rules import RuleCommand
from services.domain.publishing import KIND_OF

EXECUTION_COMMANDS: tuple[type[Message], ...] = get_args(ExecutionCommand)
# The commands of each topic: whatever else is sent there has no aggregate there.
OF_EXECUTIONS: tuple[type[Message], ...] = (*EXECUTION_COMMANDS, ReserveRuleUse)
OF_DEFINITIONS: tuple[type[Message], ...] = get_args(DefinitionCommand)


def check_address(
    command: Command, of_topic: tuple[type[Message], ...], partition: int, partitions: int
) -> None:
    """Refuse a command in the wrong topic or partition, or under a key that is not its body's or its sender's.

    Args:
        command: the command.
        of_topic: the types of commands that belong to the topic.
        partition: the number of the partition in which it is.
        partitions: the number of the topic's partitions.

    Raises:
        UnreadableRecord: it goes to the dead letters.
    """
    if not isinstance(command.body, of_topic):
        raise UnreadableRecord("wrong_topic", f"{type(command.body).__name__} does not belong to this topic")
    if partition_of(command.key, partitions) != partition:
        raise UnreadableRecord(
            "wrong_partition", f"the key belongs to partition {partition_of(command.key, partitions)}"
        )
    if isinstance(command.body, EXECUTION_COMMANDS):
        _check_execution_key(command)
    elif isinstance(command.body, ReserveRuleUse):
        _check_rule_uses_key(command, command.body.rule_id)
    else:
        _check_definition_key(command)


def _check_execution_key(command: Command) -> None:
    try:
        tenant, project, _ = split_execution_key(command.key)
    except (ValueError, UnicodeDecodeError) as error:
        raise UnreadableRecord("wrong_key", "not an execution's key") from error
    if (tenant, project) != (command.actor.tenant, command.actor.project):
        raise UnreadableRecord("wrong_key", "the key is of another tenant or project than the sender")


def _check_rule_uses_key(command: Command, rule_id: str) -> None:
    actor = command.actor
    if not is_client_id(rule_id) or command.key != rule_uses_key(actor.tenant, actor.project, rule_id):
        raise UnreadableRecord(
            "wrong_key", "the key is not {tenant}/{project}/rule/{rule_id} of the sender and body"
        )


def _check_definition_key(command: Command) -> None:
    body = command.body
    is_rule = isinstance(body, RuleCommand)
    kind = RULE_KIND if is_rule else KIND_OF.get(type(body), "")
    name = getattr(body, "rule_id" if is_rule else "name", "")
    actor = command.actor
    if is_rule:
        # Every rule has its own id, and its document names its project.
        mine = [definition_key(actor.tenant, kind, name)]
    else:
        # A sender for the whole tenant can also send for one of its projects.
        asked = project_of_definition(command.key) if actor.project == TENANT_WIDE else actor.project
        mine = [definition_key(actor.tenant, kind, name, asked)] if _is_project(asked) else []
    if not is_client_id(name) or command.key not in mine:
        raise UnreadableRecord(
            "wrong_key", "the key is not {tenant}/{project}/{kind}/{name} of the sender and the body"
        )


def _is_project(name: str) -> bool:
    return name == TENANT_WIDE or is_client_id(name)
