"""The policy document: its models, its JSON Schema, and a reader that refuses every unknown field.

Expressions are text here; `services.domain.policy` compiles them and refuses those that do not compile.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    Tag,
    ValidationError,
    WithJsonSchema,
)

from schemas.canonical import canonical
from schemas.commands import RequestKind
from schemas.ids import CLIENT_ID
from schemas.limits import DEADLINE_MAX_S
from schemas.policy_problems import PolicyRefused, Problem, path_of, problems_of

Effect = Literal["allow", "hold", "deny"]
ALLOW_WHEN = "adaptive.allow_when"
MAX_EXPRESSION_CHARS = 2_000
MAX_RULES = 500

Name = Annotated[StrictStr, Field(pattern=f"^{CLIENT_ID}$")]
Pattern = Annotated[StrictStr, Field(pattern=r"^[^\x00-\x1f]{1,256}$")]
Role = Annotated[StrictStr, Field(pattern=r"^[^\x00-\x1f]{1,128}$")]
Person = Annotated[StrictStr, Field(pattern=r"^[^\x00-\x1f]{1,256}$")]
# Pydantic writes no JSON Schema for the bounds of a union.
Seconds = Annotated[
    StrictInt | StrictFloat,
    Field(gt=0, le=DEADLINE_MAX_S),
    WithJsonSchema({"type": "number", "exclusiveMinimum": 0, "maximum": DEADLINE_MAX_S}),
]
Share = Annotated[
    StrictInt | StrictFloat,
    Field(ge=0, le=1),
    WithJsonSchema({"type": "number", "minimum": 0, "maximum": 1}),
]
ShortText = Annotated[StrictStr, Field(min_length=1, max_length=500)]
Expression = Annotated[StrictStr, Field(min_length=1, max_length=MAX_EXPRESSION_CHARS)]


ModelT = TypeVar("ModelT", bound="PolicyModel")
_NULL = {"type": "null"}


class PolicyModel(BaseModel):
    """A part of the document: frozen, and closed to fields that it does not name."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Scope(PolicyModel):
    """The runs that the policy is for, by patterns of `*`, `?` and `[...]`. Tenant `*` is the publisher's own."""

    tenant: Pattern = "*"
    project: Pattern = "*"
    workspace: Pattern = "*"
    user: Pattern = "*"
    agent: Pattern = "*"


class DefaultAnswer(PolicyModel):
    """The answer to the agent if nobody decides in time.

    A deadline never lets a call run: the call expires, and this text is its feedback.
    """

    default: ShortText


TimeoutWord = Literal["deny", "halt", "escalate", "wait"]


def _timeout_form(value: Any) -> str | None:
    if isinstance(value, dict | DefaultAnswer):
        return "answer"
    return "word" if value in get_args(TimeoutWord) else None


OnTimeout = Annotated[
    Annotated[TimeoutWord, Tag("word")] | Annotated[DefaultAnswer, Tag("answer")],
    Discriminator(
        _timeout_form,
        custom_error_type="on_timeout",
        custom_error_message="'deny', 'halt', 'escalate', 'wait' or {default: TEXT} is needed here",
    ),
]


class Defaults(PolicyModel):
    """Defaults for fields that a rule leaves out. An unknown tool and an error are never allowed."""

    unknown_tool: Literal["hold", "deny"] = "hold"
    error: Literal["hold", "deny"] = "hold"
    on_timeout: OnTimeout = "deny"
    timeout_seconds: Seconds = 900


class MatchAnnotations(PolicyModel):
    """MCP's tool annotations, as the operator published them. All named annotations must match."""

    readOnlyHint: StrictBool | None = None
    destructiveHint: StrictBool | None = None
    idempotentHint: StrictBool | None = None
    openWorldHint: StrictBool | None = None


class Match(PolicyModel):
    """The calls that the rule is about; all keys must match.

    `tools` are patterns of the name itself, `tools_like` of the name however it is spelt: lower-case words with `_`
    between them (`send_money` for `sendMoney`, `Send-Money` and `mcp__bank__send_money`).
    """

    tools: Annotated[tuple[Pattern, ...], Field(min_length=1, max_length=200)] | None = None
    tools_like: Annotated[tuple[Pattern, ...], Field(min_length=1, max_length=200)] | None = None
    annotations: MatchAnnotations | None = None


class Escalate(PolicyModel):
    """The roles that are asked in addition if nobody has decided after a while."""

    after_seconds: Seconds
    roles: Annotated[tuple[Role, ...], Field(min_length=1, max_length=50)]


class Remember(PolicyModel):
    """What an approval can be remembered for, and for how long; a standing rule waits for a second person.

    Without roles, everybody who can decide can also have the decision remembered.
    """

    scopes: tuple[Literal["execution", "rule"], ...] = ("execution", "rule")
    four_eyes: StrictBool = True
    max_seconds: Annotated[StrictInt, Field(ge=1, le=DEADLINE_MAX_S)] = 30 * 86_400
    max_uses: Annotated[StrictInt, Field(ge=1, le=100_000)] | Literal["unlimited"] = 1_000
    roles: Annotated[tuple[Role, ...], Field(max_length=50)] = ()


class Hold(PolicyModel):
    """How a held call is decided. Without roles and reviewers, any reviewer can decide.

    `reviewers` and `excluded` name principals, or subjects without one. An excluded person cannot decide by a
    delegation either.

    `adaptive`: false if the policy's `adaptive` block never releases such a call. If the hold asks certain people,
    more than one, or others later, it never does.
    """

    kind: RequestKind = "permission"
    roles: Annotated[tuple[Role, ...], Field(max_length=50)] = ()
    reviewers: Annotated[tuple[Person, ...], Field(max_length=50)] = ()
    excluded: Annotated[tuple[Person, ...], Field(max_length=50)] = ()
    quorum: Annotated[StrictInt, Field(ge=1, le=50)] = 1
    exclude_requester: StrictBool = False
    timeout_seconds: Seconds | None = None
    on_timeout: OnTimeout | None = None
    remind_after_seconds: Seconds | None = None
    escalate: Escalate | None = None
    on_reject: Literal["feedback", "halt", "rollback"] = "feedback"
    question: ShortText | None = None
    remember: Remember = Remember()
    adaptive: StrictBool = True


class Rule(PolicyModel):
    """One rule; the first that matches decides."""

    id: Annotated[StrictStr, Field(pattern=r"^[A-Za-z0-9._-]{1,64}$")]
    match: Match = Match()
    when: Expression | None = None
    then: Effect
    hold: Hold | None = None


def _bound_form(value: Any) -> str | None:
    return "word" if value == "ask" else "number" if isinstance(value, int | float) else None


Bound = Annotated[
    Annotated[Share, Tag("number")] | Annotated[Literal["ask"], Tag("word")],
    Discriminator(
        _bound_form,
        custom_error_type="bound",
        custom_error_message="a number from 0 to 1, or 'ask', is needed here",
    ),
]


class Floor(PolicyModel):
    """The least trust that can release a call, by the level of its risk; `ask`: nothing releases it."""

    low: Bound = 0.5
    medium: Bound = 0.5
    high: Bound = "ask"


class Adaptive(PolicyModel):
    """Release by earned trust: calls that a rule holds, and that trust releases without asking.

    Whatever `allow_when` says, the trust's lower bound must reach the risk's `required` and the floor of the risk's
    level. Of the calls that would be released, the share `sample_rate` is asked all the same: 1 releases none.
    """

    allow_when: Expression = "trust.lower_bound >= risk.required"
    sample_rate: Share = 0.05
    floor: Floor = Floor()


class PolicyDocument(PolicyModel):
    """A policy: its scope, and its rules in order."""

    policy: Name
    scope: Scope = Scope()
    defaults: Defaults = Defaults()
    rules: Annotated[tuple[Rule, ...], Field(max_length=MAX_RULES)] = ()
    adaptive: Adaptive | None = None


def policy_json_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of the document, as served at /schemas/policy.json, with the rules of form alone."""
    dialect = "https://json-schema.org/draft/2020-12/schema"
    schema = PolicyDocument.model_json_schema()
    parts = schema["$defs"]
    for part in (schema, *parts.values()):
        _close_to_empty(part)
    no_hold = {"properties": {"then": {"enum": ["allow", "deny"]}}, "required": ["then"]}
    parts["Rule"] |= {"if": no_hold, "then": {"properties": {"hold": False}}}
    return {"$schema": dialect, "$id": "/schemas/policy.json", **schema}


def _close_to_empty(part: dict[str, Any]) -> None:
    """Make a model's schema refuse what `_empty_values` does. Without its null, an editor explains a field's form."""
    part["minProperties"] = 1
    for field in part["properties"].values():
        if _NULL in field.get("anyOf", ()):
            field["anyOf"].remove(_NULL)
            del field["default"]
            if len(field["anyOf"]) == 1:
                field |= field.pop("anyOf")[0]


def policy_from_value(value: Any) -> PolicyDocument:
    """Read a policy document from parsed JSON or YAML.

    Raises:
        PolicyRefused: with every problem of form; expressions are not compiled here.
    """
    if not isinstance(value, dict):
        message = "a policy is a mapping that begins with 'policy: NAME'"
        raise PolicyRefused((Problem(path="policy", code="malformed", message=message),))
    empty = tuple(_empty_values(value, ()))
    try:
        document = PolicyDocument.model_validate(value)
    except ValidationError as error:
        found = problems_of(error, PolicyDocument)
        # An empty field with another fault, such as a misspelt name, is reported for that fault only.
        places = {problem.path for problem in found if problem.code == "unknown_field"}
        bare = {problem.path for problem in empty} - places
        said = [_of_cases(problem) for problem in found if problem.path not in bare]
        faulty = {problem.path for problem in found}
        beside = (one for one in _beside_form(value) if one.path not in faulty)
        raise PolicyRefused((*said, *(one for one in empty if one.path in bare), *beside)) from error
    if problems := (*empty, *_document_problems(document)):
        raise PolicyRefused(problems)
    return document


def policy_to_json(document: PolicyDocument) -> str:
    """The document to publish, as canonical JSON with only the fields that were written."""
    return canonical(document.model_dump(mode="json", exclude_unset=True))


def conditions_of(document: PolicyDocument) -> Iterator[tuple[str, str]]:
    """The CEL conditions of a document, each with its path."""
    for index, rule in enumerate(document.rules):
        if rule.when is not None:
            yield f"rules[{index}].when", rule.when
    if document.adaptive is not None:
        yield ALLOW_WHEN, document.adaptive.allow_when


def _empty_values(value: Any, loc: tuple[int | str, ...]) -> Iterator[Problem]:
    # An empty `when:` would otherwise read as "no condition", and an allow rule would fail open.
    if value is None or value == {}:
        message = "this field is empty; give it a value or remove it"
        if loc == ("adaptive",):
            message = f"this block is empty; write one of {', '.join(Adaptive.model_fields)}, or remove it"
        yield Problem(path=path_of(loc), code="empty", message=message)
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from _empty_values(item, (*loc, key))


def _document_problems(document: PolicyDocument) -> Iterator[Problem]:
    counts = Counter(rule.id for rule in document.rules)
    for index, rule in enumerate(document.rules):
        if counts[rule.id] > 1:
            yield _duplicate(rule.id, counts[rule.id], f"rules[{index}]")
        yield from _rule_problems(rule, f"rules[{index}]", document.defaults)
    if document.defaults.on_timeout == "escalate":
        message = "escalate needs the roles to ask: write it in the rules' hold, with an 'escalate' block"
        yield Problem(path="defaults.on_timeout", code="invalid", message=message)


def _of_cases(problem: Problem) -> Problem:
    """Explain an unknown field that belongs to the policy's test cases, which are in a file of their own."""
    if problem.code != "unknown_field" or problem.path not in ("tools", "cases"):
        return problem
    message = f"{problem.path!r} belongs to the policy's tests: write it to FILE.tests.yaml, for `placet policy test`"
    return problem.model_copy(update={"message": message})


def _beside_form(value: dict[str, Any]) -> Iterator[Problem]:
    """The other problems of a document of wrong form: its faulty fields are left out."""
    rules = value.get("rules")
    defaults = readable(Defaults, value.get("defaults"))
    if not isinstance(rules, list):
        return
    ids = Counter(rule["id"] for rule in rules if isinstance(rule, dict) and isinstance(rule.get("id"), str))
    for index, rule in enumerate(rules[:MAX_RULES]):
        if not isinstance(rule, dict):
            continue
        rule_id, path = rule.get("id"), f"rules[{index}]"
        if isinstance(rule_id, str) and ids[rule_id] > 1:
            yield _duplicate(rule_id, ids[rule_id], path)
        if not isinstance(rule.get("hold"), dict) or not rule["hold"]:
            continue
        if rule.get("then") in ("allow", "deny"):
            yield _no_hold(rule["then"], path)
        yield from _hold_problems(readable(Hold, rule["hold"]), f"{path}.hold", defaults)


def readable(model: type[ModelT], value: Any) -> ModelT:
    """A part of a document without its faulty fields."""
    given = dict(value) if isinstance(value, dict) else {}
    try:
        return model.model_validate(given)
    except ValidationError as error:
        faulty = {str(item["loc"][0]) for item in error.errors(include_url=False)}
    if "escalate" in faulty:
        # `escalate` was given but cannot be read, so a missing one must not be reported.
        faulty.add("on_timeout")
    return model.model_validate({name: one for name, one in given.items() if name not in faulty})


def _duplicate(rule_id: str, count: int, path: str) -> Problem:
    message = f"the rule id {rule_id!r} appears {count} times; give each rule its own"
    return Problem(path=f"{path}.id", code="duplicate_rule", message=message)


def _no_hold(then: str, path: str) -> Problem:
    message = f"a rule that says 'then: {then}' has no hold; remove the block or write 'then: hold'"
    return Problem(path=f"{path}.hold", code="invalid", message=message)


def _rule_problems(rule: Rule, path: str, defaults: Defaults) -> Iterator[Problem]:
    if rule.hold is None:
        return
    if rule.then != "hold":
        yield _no_hold(rule.then, path)
    yield from _hold_problems(rule.hold, f"{path}.hold", defaults)


def _hold_problems(hold: Hold, path: str, defaults: Defaults) -> Iterator[Problem]:
    if both := sorted(set(hold.reviewers) & set(hold.excluded)):
        message = f"{both[0]!r} is both a reviewer and excluded; remove one of the two"
        yield Problem(path=f"{path}.excluded", code="invalid", message=message)
    if hold.reviewers and not hold.roles and len(hold.reviewers) < hold.quorum:
        message = f"{len(hold.reviewers)} reviewers can never be {hold.quorum} people; name more, or lower the quorum"
        yield Problem(path=f"{path}.quorum", code="invalid", message=message)
    if hold.on_timeout == "escalate" and hold.escalate is None:
        message = "'on_timeout: escalate' needs an 'escalate' block with after_seconds and roles"
        yield Problem(path=f"{path}.on_timeout", code="invalid", message=message)
    timeout = hold.timeout_seconds or defaults.timeout_seconds
    on_timeout = hold.on_timeout or defaults.on_timeout
    if hold.escalate is not None and on_timeout != "wait" and hold.escalate.after_seconds > timeout:
        message = (
            f"the hold ends after {timeout} s, before it would escalate; escalate earlier or wait longer"
        )
        yield Problem(path=f"{path}.escalate.after_seconds", code="invalid", message=message)
    if (
        hold.remind_after_seconds is not None
        and on_timeout != "wait"
        and hold.remind_after_seconds >= timeout
    ):
        message = f"the hold ends after {timeout} s, before anybody would be reminded; remind earlier or wait longer"
        yield Problem(path=f"{path}.remind_after_seconds", code="invalid", message=message)
