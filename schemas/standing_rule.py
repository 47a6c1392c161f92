"""The document of a standing rule: what was decided once, for which calls, until when, and on what evidence.

RuleAsked, MakeRule and RuleMade contain it as canonical JSON. `arguments` has a test for every argument of a covered
call; a call with an argument that has no test is not covered.
"""

from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from schemas.canonical import MalformedJson, canonical, parse_strict
from schemas.message import Long
from schemas.plain_words import by_place, sentence

DOCUMENT_MAX_BYTES = 16 * 1024
TESTS_MAX = 200
VALUES_MAX = 100
RULE_KIND = "rule"
# Prefix of the ids of decisions that a run remembers itself, which are not rules of the definitions.
IN_EXECUTION = "execution:"

Number = StrictInt | StrictFloat
RiskMax = Literal["low", "medium"]


class RuleRefused(ValueError):
    """The document, or the request for one, is not a valid standing rule; the message says what to correct."""


class RuleModel(BaseModel):
    """A part of the document: frozen, and closed to fields that it does not name."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, str_min_length=0)


def _no_number(value: Any) -> Any:
    """The value of `any`, which must be `true` itself: 1 equals it in Python, but is another JSON value."""
    if value is not True and value is not None:
        raise ValueError("write true")
    return value


# Generated clients treat a constant as a text, and could not send a boolean one.
AnyValue = Annotated[
    Literal[True] | None,
    BeforeValidator(_no_number),
    WithJsonSchema({"anyOf": [{"type": "boolean"}, {"type": "null"}], "description": "Any value: `true`."}),
]


class ArgumentTest(RuleModel):
    """The test of one argument: exactly one of these fields, or bounds for a number.

    `equals` and `one_of` compare as JSON, so 1 and 1.0 are the same. `prefix` applies to texts; a text with a step
    back (`..` between slashes) never matches.
    """

    any: AnyValue = None
    equals: Any = Field(default=None, description="Exactly this JSON value.")
    one_of: Annotated[tuple[Any, ...], Field(min_length=1, max_length=VALUES_MAX)] | None = None
    prefix: Annotated[StrictStr, Field(min_length=1, max_length=1_000)] | None = None
    at_least: Number | None = None
    at_most: Number | None = None

    @model_validator(mode="after")
    def _one_test(self) -> "ArgumentTest":
        named = self.model_fields_set
        if named <= {"at_least", "at_most"} and named and None not in (self._bounds(named)):
            return self
        if len(named) != 1 or (named != {"equals"} and getattr(self, next(iter(named))) is None):
            raise ValueError("write one of equals, one_of, prefix or any: true; or at_least and at_most")
        return self

    def _bounds(self, named: set[str]) -> list[Any]:
        return [getattr(self, name) for name in sorted(named)]


Tests = Annotated[dict[str, ArgumentTest], Field(max_length=TESTS_MAX)]


class Terms(RuleModel):
    """The people whom the hold asked under which the rule was made; a covered hold may not require more."""

    roles: tuple[str, ...] = ()
    reviewers: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    quorum: Annotated[StrictInt, Field(ge=1)] = 1
    exclude_requester: StrictBool = False


class Maker(RuleModel):
    """A person whose approval contributed to a rule.

    `roles` are the roles by which the approval counted. `voice` is the delegator, if the person approved by
    delegation.
    """

    by: StrictStr
    roles: tuple[StrictStr, ...] = ()
    voice: StrictStr = ""


class Evidence(RuleModel):
    """The decision from which the rule was made, and its subject."""

    execution_id: str
    call_id: str
    hold_id: str
    decision_id: str
    digest: str
    view_digest: str = ""


class StandingRuleDocument(RuleModel):
    """One standing rule.

    `policy_rules` are the rules that held the call, as `policy/rule` without a version; no other rule is overruled.
    `uses` is None for no limit. `requesters` are the people whose request the call was. `made_with` are the roles by
    which `made_by`, the last approver, could decide. `makers` are all approvers; it is left out if the last approver
    was the only one and did not act by delegation, as in documents of earlier versions.
    """

    rule_id: StrictStr
    project: StrictStr
    agent: StrictStr
    tool: StrictStr
    tool_version: StrictStr
    policy_rules: Annotated[tuple[StrictStr, ...], Field(min_length=1)]
    arguments: Tests
    expires_at_ms: Long
    uses: Annotated[StrictInt, Field(ge=1)] | None
    risk_max: RiskMax
    terms: Terms
    evidence: Evidence
    requesters: tuple[StrictStr, ...]
    made_by: StrictStr
    made_with: tuple[StrictStr, ...] = ()
    makers: tuple[Maker, ...] = ()
    four_eyes: StrictBool

    @property
    def all_makers(self) -> tuple[Maker, ...]:
        """All approvers of the rule; for a document without `makers` only `made_by` is known."""
        return self.makers or (Maker(by=self.made_by, roles=self.made_with),)


class Asked(RuleModel):
    """What a client wants remembered, beside the scope of its decision. Without `uses` the default applies."""

    arguments: Tests = Field(default_factory=dict)
    expires_seconds: Annotated[StrictInt, Field(ge=1)] | None = None
    uses: Annotated[StrictInt, Field(ge=1)] | None = None


def asked_form(text: str | None) -> str:
    """The request of a decision to be remembered, as canonical JSON: equal requests have equal texts.

    Raises:
        RuleRefused: it cannot be read.
    """
    value = {} if text is None else asked_from_text(text).model_dump(mode="json", exclude_unset=True)
    return canonical({"arguments": {}, **value})


@lru_cache(maxsize=4096)
def standing_rule_from_text(text: str) -> StandingRuleDocument:
    """Read a rule's document.

    Raises:
        RuleRefused: it is not one.
    """
    try:
        return StandingRuleDocument.model_validate(parse_strict(text))
    except (MalformedJson, ValidationError) as error:
        raise RuleRefused(_first_problem(error)) from error


def asked_from_text(text: str) -> Asked:
    """Read what a decision wants remembered.

    Raises:
        RuleRefused: it cannot be read.
    """
    try:
        return Asked.model_validate(parse_strict(text))
    except (MalformedJson, ValidationError) as error:
        raise RuleRefused(f"remember: {_first_problem(error)}") from error


def standing_rule_to_text(document: StandingRuleDocument) -> str:
    """The document as canonical JSON.

    Raises:
        RuleRefused: the document is too large to be sent to every decider, or too deep to be read again.
    """
    left_out = {"arguments"} if document.makers else {"arguments", "makers"}
    value = document.model_dump(mode="json", exclude=left_out)
    tests = {
        name: test.model_dump(mode="json", exclude_unset=True) for name, test in document.arguments.items()
    }
    try:
        text = canonical(value | {"arguments": tests})
    except MalformedJson as error:
        # Arguments that are not too deep in a call can be too deep inside a rule.
        raise RuleRefused(f"these arguments cannot be remembered ({error}): decide once") from error
    if len(text.encode()) > DOCUMENT_MAX_BYTES:
        detail = f"the rule would have more than {DOCUMENT_MAX_BYTES} bytes"
        raise RuleRefused(f"{detail}: these arguments are too large to be remembered, decide once")
    return text


def _first_problem(error: MalformedJson | ValidationError) -> str:
    if isinstance(error, MalformedJson):
        return str(error)
    place, problems = next(iter(by_place(error.errors(include_url=False, include_input=False)).items()))
    where = ".".join(map(str, place))
    said = sentence(problems)
    return f"{where}: {said}" if where else said
