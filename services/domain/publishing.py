"""Publishing: the events of a command about a definition, and what an event makes of the definitions in force."""

from typing import Any

from msgspec.structs import replace

from schemas.actor import Actor
from schemas.canonical import MalformedJson, canonical, parse_new, parse_strict, sha256_hex
from schemas.commands import DestroyDataKey, PublishPolicy, PublishPrincipal, PublishTool, RetirePolicy
from schemas.events.definitions import (
    DataKeyDestroyed,
    PolicyPublished,
    PolicyRetired,
    PrincipalPublished,
    ToolPublished,
)
from schemas.events.executions import CommandRefused
from schemas.ids import CHOSEN_ID_RULE, TENANT_WIDE, definition_key, is_chosen_id, project_of_definition
from schemas.limits import POLICIES_MAX
from schemas.message import Message
from schemas.policy_document import policy_from_value
from schemas.policy_problems import PolicyRefused, Problem
from schemas.policy_size import size_problems
from schemas.principals import People, principal_from_value, principal_to_json
from schemas.refusals import Refusal
from schemas.standing_rule import RULE_KIND
from schemas.tool_definition import kept, tool_to_publish
from services.domain.definitions import Definitions, Published
from services.domain.input_schema import SchemaCheck
from services.domain.memory import standing_rules
from services.domain.memory.standing_rules import (
    RuleCommand,
    RuleEvent,
    StandingRules,
)
from services.domain.policy import (
    PolicySet,
)
from services.domain.policy.programs import program_problems
from services.domain.tools import OwnCheck, tool_from_definition, unreadable_tool

UNREADABLE_MAX_CHARS = 300

Publishing = PublishPolicy | PublishTool | PublishPrincipal
Publication = PolicyPublished | ToolPublished | PrincipalPublished
KIND_OF: dict[type[Message], str] = {
    PublishPolicy: "policy",
    PolicyPublished: "policy",
    PublishTool: "tool",
    ToolPublished: "tool",
    PublishPrincipal: "principal",
    PrincipalPublished: "principal",
    DestroyDataKey: "data-key",
    DataKeyDestroyed: "data-key",
    RetirePolicy: "policy",
    PolicyRetired: "policy",
}
# Whoever can give roles can give any role, so publishing a principal needs an admin.
ROLE_TO_PUBLISH: dict[type[Message], str] = {
    PublishPolicy: "operator",
    PublishTool: "operator",
    PublishPrincipal: "admin",
    DestroyDataKey: "admin",
    RetirePolicy: "operator",
}


def _check_of(check: SchemaCheck, tenant: str) -> OwnCheck:
    return lambda schema_text, arguments: check(schema_text, arguments, tenant)


def decide(definitions: Definitions, key: bytes, command: Message, actor: Actor) -> list[Message]:
    """The events of a command about a definition; its key names the project, to which the sender must have access.

    A sender for the whole tenant has the roles given for the tenant: a role given for a project counts only there.
    """
    people = definitions.people.of(actor.tenant, actor.project)
    if isinstance(command, RuleCommand):
        return standing_rules.decide(definitions.standing, people, command, people.resolved(actor))
    if not isinstance(command, Publishing | DestroyDataKey | RetirePolicy):
        return [_refused(command, actor, Refusal.INVALID, "not a publishing command")]
    role = ROLE_TO_PUBLISH[type(command)]
    actor, project = people.resolved(actor), project_of_definition(key)
    if actor.project not in (TENANT_WIDE, project):
        return [
            _refused(command, actor, Refusal.NOT_AUTHORISED, "this does not belong to the sender's project")
        ]
    if not actor.has(role):
        return [_refused(command, actor, Refusal.NOT_AUTHORISED, f"publishing this needs the role {role}")]
    if isinstance(command, DestroyDataKey):
        return _destroyed(definitions, command, project, actor)
    earlier = definitions.published.get(key)
    if isinstance(command, RetirePolicy):
        return [_retired(earlier, command, project, actor)]
    if earlier is None and not is_chosen_id(command.name):
        return [_refused(command, actor, Refusal.INVALID, f"name {CHOSEN_ID_RULE}")]
    version = earlier.version + 1 if earlier else 1
    try:
        event = _published(definitions, command, project, actor, version)
    except PolicyRefused as error:
        return [_refused(command, actor, Refusal.INVALID, error.in_full())]
    except MalformedJson as error:
        return [_refused(command, actor, Refusal.INVALID, str(error))]
    if earlier is not None and not earlier.retired and _says_the_same(definitions, earlier, event, actor):
        return [
            _refused(command, actor, Refusal.DUPLICATE, f"already published as version {earlier.version}")
        ]
    if isinstance(event, PolicyPublished) and (crowd := _crowd_problem(definitions.policies, event, actor)):
        return [_refused(command, actor, Refusal.QUOTA, crowd)]
    return [event]


def evolve(definitions: Definitions, event: Message, tenant: str, offset: int) -> Definitions:
    """The definitions after an event; records without effect change nothing."""
    if isinstance(event, RuleEvent):
        rules = definitions.standing.with_event(tenant, event)
        return _with_rules(definitions, rules, tenant, event.rule_id, offset)
    if isinstance(event, PolicyPublished):
        policies = definitions.policies.with_policy(
            tenant, event.name, event.version, parse_strict(event.document), event.project
        )
        definitions = replace(definitions, policies=policies)
    elif isinstance(event, PolicyRetired):
        policies = definitions.policies.without_policy(tenant, event.name, event.project)
        row = Published(event.version, "", offset, retired=True)
        return _with(replace(definitions, policies=policies), event, tenant, row)
    elif isinstance(event, ToolPublished):
        tool = tool_from_definition(event.name, event.definition, _check_of(definitions.check_schema, tenant))
        definitions = replace(
            definitions, tools=definitions.tools.set((tenant, event.project, event.name), tool)
        )
    elif isinstance(event, PrincipalPublished):
        document = principal_from_value(parse_strict(event.document))
        people = definitions.people.with_principal(tenant, document, event.project)
        definitions = replace(definitions, people=people)
    elif isinstance(event, DataKeyDestroyed):
        # No verdict depends on it, so partitions need not adopt it.
        destroyed = definitions.destroyed.set((tenant, event.project, event.name), offset)
        return replace(definitions, destroyed=destroyed)
    else:
        return definitions
    return _with_row(definitions, event, tenant, offset)


def set_aside(
    definitions: Definitions, event: Message, tenant: str, offset: int, error: Exception
) -> Definitions:
    """The definitions after a publication that `evolve` cannot read: the calls that it concerns are held from now on.

    The earlier version is not used instead, because it may allow what this one forbids.
    """
    if isinstance(event, RuleEvent):
        rules = definitions.standing.without(tenant, event.rule_id)
        return _with_rules(definitions, rules, tenant, event.rule_id, offset)
    why = f"{type(error).__name__}: {error}"[:UNREADABLE_MAX_CHARS]
    if isinstance(event, PolicyPublished):
        policies = definitions.policies.with_unreadable(tenant, event.name, event.version, why, event.project)
        definitions = replace(definitions, policies=policies)
    elif isinstance(event, ToolPublished):
        tool = unreadable_tool(event.name, event.tool_version, why)
        definitions = replace(
            definitions, tools=definitions.tools.set((tenant, event.project, event.name), tool)
        )
    elif isinstance(event, PrincipalPublished):
        people = definitions.people.without_roles(tenant, event.name, event.project)
        definitions = replace(definitions, people=people)
    else:
        return definitions
    return _with_row(definitions, event, tenant, offset)


def _with_row(definitions: Definitions, event: Publication, tenant: str, offset: int) -> Definitions:
    return _with(definitions, event, tenant, Published(event.version, _digest_of(event), offset))


def _with(
    definitions: Definitions, event: Publication | PolicyRetired, tenant: str, row: Published
) -> Definitions:
    key = definition_key(tenant, KIND_OF[type(event)], event.name, event.project)
    published = definitions.published.set(key, row)
    return replace(definitions, published=published, through_offset=row.offset)


def _with_rules(
    definitions: Definitions, rules: StandingRules, tenant: str, rule_id: str, offset: int
) -> Definitions:
    """The definitions with the standing rules after an event, which counts as the next version of one rule."""
    key = definition_key(tenant, RULE_KIND, rule_id)
    earlier = definitions.published.get(key)
    row = Published(earlier.version + 1 if earlier else 1, "", offset)
    published = definitions.published.set(key, row)
    return replace(definitions, standing=rules, published=published, through_offset=offset)


def _published(
    definitions: Definitions, command: Publishing, project: str, actor: Actor, version: int
) -> Publication:
    name, by = command.name, actor.subject
    if isinstance(command, PublishPolicy):
        document = _canonical(command.document)
        model = policy_from_value(parse_strict(document))
        if problems := size_problems(model) or program_problems(model):
            raise PolicyRefused(problems)
        definitions.policies.with_policy(actor.tenant, name, version, model, project)
        return PolicyPublished(name=name, version=version, document=document, by=by, project=project)
    if isinstance(command, PublishPrincipal):
        document = _principal_to_publish(definitions.people, command, project, actor.tenant)
        return PrincipalPublished(name=name, version=version, document=document, by=by, project=project)
    text = canonical(tool_to_publish(name, parse_new(command.definition)))
    tool_version = tool_from_definition(name, text).version
    return ToolPublished(
        name=name, version=version, tool_version=tool_version, definition=text, by=by, project=project
    )


def _says_the_same(definitions: Definitions, earlier: Published, event: Publication, actor: Actor) -> bool:
    """True if a definition equals the one in force; older versions contain fields that are now left out."""
    if earlier.digest == _digest_of(event):
        return True
    if not isinstance(event, ToolPublished):
        return False
    tool = definitions.tools.get((actor.tenant, event.project, event.name))
    return (
        tool is not None and not tool.unreadable and kept(tool.definition) == parse_strict(event.definition)
    )


def _crowd_problem(policies: PolicySet, event: PolicyPublished, actor: Actor) -> str | None:
    """The reason why the tenant can have no further policy, or None; new versions are always possible."""
    if (actor.tenant, event.project, event.name) in policies.policies:
        return None
    if sum(tenant == actor.tenant for tenant, _, _ in policies.policies) < POLICIES_MAX:
        return None
    return f"{POLICIES_MAX} policies of this tenant are in force: retire some"


def _principal_to_publish(people: People, command: PublishPrincipal, project: str, tenant: str) -> str:
    principal = principal_from_value(parse_strict(command.document))
    if principal.principal != command.name:
        message = f"the document is of {principal.principal!r}, not of {command.name!r}"
        raise PolicyRefused((Problem(path="principal", code="other_name", message=message),))
    people.check_beside_tenant(tenant, project, principal)
    people.with_principal(tenant, principal, project)
    return principal_to_json(principal)


def _retired(earlier: Published | None, command: RetirePolicy, project: str, actor: Actor) -> Message:
    if earlier is None:
        return _refused(command, actor, Refusal.NOT_FOUND, "no policy with this name was published here")
    if earlier.retired:
        return _refused(command, actor, Refusal.DUPLICATE, f"version {earlier.version} is already retired")
    if command.version not in (0, earlier.version):
        # A sender who saw an older version does not know which policy the command retires.
        detail = (
            f"version: {earlier.version} is in force, not {command.version}; read it before you retire it"
        )
        return _refused(command, actor, Refusal.INVALID, detail)
    return PolicyRetired(
        name=command.name, version=earlier.version, reason=command.reason, by=actor.subject, project=project
    )


def _destroyed(
    definitions: Definitions, command: DestroyDataKey, project: str, actor: Actor
) -> list[Message]:
    if (actor.tenant, project, command.name) in definitions.destroyed:
        return [_refused(command, actor, Refusal.DUPLICATE, "destroyed already")]
    return [DataKeyDestroyed(name=command.name, reason=command.reason, by=actor.subject, project=project)]


def _canonical(text: str) -> str:
    return canonical(parse_new(text))


def _digest_of(event: Any) -> str:
    return sha256_hex(event.definition if isinstance(event, ToolPublished) else event.document)


def _refused(command: Message, actor: Actor, code: Refusal, detail: str) -> CommandRefused:
    name = getattr(command, "name", "")
    return CommandRefused(
        code=code, command=type(command).__name__, subject_id=name, detail=detail, by=actor.subject
    )
