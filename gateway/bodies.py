"""Request bodies as models: read strictly, closed to unknown fields, and published as schemas.

The same models serve REST, the WebSocket, the OpenAPI and the AsyncAPI document.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.json_schema import JsonSchemaValue

from gateway.problems import invalid
from schemas import commands as k
from schemas.command_rules import form_of, limit_of
from schemas.commands import Decision, RequestKind, Scope
from schemas.events.calls import RiskLevel
from schemas.limits import COUNT_MAX, DEADLINE_MAX_S, ITEMS_MAX, REQUEST_MAX_BYTES
from schemas.probe import WRONG_MAX
from schemas.standing_rule import Asked

REQUEST_WORDS = (
    "The task that the run was started for, shown with each of its holds: any JSON of at most "
    f"{REQUEST_MAX_BYTES} bytes."
)

# The calls of one plan, and what is read of a description.
ASSESSED_MAX = 50
DESCRIPTION_MAX_CHARS = 10_000

# The id of a new resource follows today's rules; an existing resource may have an id from an earlier version.
ChosenId = Annotated[
    str,
    Field(max_length=limit_of(k.ProposeToolCall, "call_id"), pattern=form_of(k.ProposeToolCall, "call_id")),
]
ClientId = Annotated[str, Field(pattern=form_of(k.ConsumeGrant, "attempt_id"))]
GrantId = Annotated[str, Field(max_length=limit_of(k.ConsumeGrant, "grant_id"))]
ToolName = Annotated[str, Field(pattern=form_of(k.ProposeToolCall, "tool"))]
ScopeName = Annotated[str, Field(max_length=limit_of(k.StartExecution, "user"))]
Text = Annotated[str, Field(max_length=limit_of(k.ProposeToolCall, "reason"))]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
JsonObject = dict[str, Any]
IdleSeconds = Annotated[
    float | None,
    Field(
        ge=1,
        le=DEADLINE_MAX_S,
        description="The execution is completed by itself once nothing in it has been open, and nothing was "
        "done, for so long; null: never.",
    ),
]


def _whole(given: Any) -> Any:
    return int(given) if isinstance(given, float) and given.is_integer() else given


# An integer as JSON Schema has it: 407.0 is one, which some clients write for 407. It comes after a field's limits.
INTEGRAL = BeforeValidator(_whole)
# What names an option: a text that is not empty, a number, true or false.
_OPTION_NAME: JsonSchemaValue = {"type": ["string", "number", "boolean"], "minLength": 1}
# The decider checks options, and this describes what it accepts (`schemas.questions.rules`). It is no choice of
# types: of that openapi-generator's typescript-fetch makes one that sends each text as `{}`.
Option = Annotated[
    Any,
    Field(
        json_schema_extra={
            "if": {"type": ["string", "number", "boolean"]},
            "then": {"minLength": 1},
            "else": {
                "not": {"type": ["null", "array"]},
                "properties": {"id": _OPTION_NAME},
                "required": ["id"],
            },
        },
        description="A text that is not empty, a number, true or false; or an object with one of these as `id`, by "
        "which it is chosen, and any other fields, such as the texts `label`, the words of its button, and "
        "`description`, what it means, and `recommended`, true if it is the agent's own choice.",
    ),
]


class Body(BaseModel):
    """A request's body."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class StartExecution(Body):
    """Open an execution. Without an id one is generated; without an agent it is the token's agent."""

    execution_id: ChosenId | None = None
    agent: ChosenId | None = None
    user: ScopeName = ""
    workspace: ScopeName = ""
    request: Any = Field(default=None, description=REQUEST_WORDS)
    context: JsonObject = Field(default_factory=dict)
    idle_seconds: IdleSeconds = None


class ProposeToolCall(Body):
    """Propose to run a tool. `annotations` are the agent's own claims: they can raise a risk, never lower it.

    With an `attempt_id`, random per process and never derived from the call, a call that the policy releases is
    consumed by that attempt at once: the answer then has the status `consumed` and permits the attempt to run it.
    """

    call_id: ChosenId | None = None
    tool: ToolName
    arguments: JsonObject = Field(default_factory=dict)
    context: JsonObject = Field(default_factory=dict)
    reason: Text = ""
    annotations: JsonObject = Field(default_factory=dict)
    attempt_id: ClientId | None = None


class PlantProbe(Body):
    """Plant a known-bad call of an agent, in a run of its own (docs/probes.md).

    Ids that are left out are made. `requester` is the account that appears to propose it, by default the agent's
    name. `context` and `annotations` are the call's, `run_context` and `idle_seconds` the run's, as an agent gives
    them. The same body opens the run alone (`POST /v1/probes/runs`); with the run's id it then plants the call there.
    """

    agent: ChosenId
    tool: ToolName
    arguments: JsonObject = Field(default_factory=dict)
    note: Annotated[
        str,
        Field(
            min_length=1,
            max_length=limit_of(k.PlantProbe, "note"),
            description="What is bad about the call: told to those who have answered.",
        ),
    ]
    wrong: Annotated[
        list[str],
        Field(
            max_length=WRONG_MAX,
            description="The places in the arguments (JSON Pointers) that an edit must change to make the call "
            "right. Empty: no edit makes it right, so only a rejection catches it.",
        ),
    ] = Field(default_factory=list)
    requester: Annotated[str, Field(max_length=limit_of(k.PlantProbe, "requester"))] = ""
    execution_id: ChosenId | None = None
    call_id: ChosenId | None = None
    user: ScopeName = ""
    workspace: ScopeName = ""
    request: Any = Field(default=None, description=REQUEST_WORDS)
    reason: Text = ""
    context: JsonObject = Field(default_factory=dict)
    annotations: JsonObject = Field(default_factory=dict)
    run_context: JsonObject = Field(default_factory=dict)
    idle_seconds: IdleSeconds = None


class AskedCall(Body):
    """A call that may be proposed."""

    tool: ToolName
    arguments: JsonObject = Field(default_factory=dict)
    annotations: JsonObject = Field(default_factory=dict)


class AssessCalls(Body):
    """Calls that an agent may propose, and the tools of a task; without either, a task that may use every tool.

    A description of the task can only raise its risk.
    """

    calls: Annotated[list[AskedCall], Field(max_length=ASSESSED_MAX)] = Field(default_factory=list)
    tools: Annotated[list[ToolName], Field(max_length=ASSESSED_MAX)] = Field(default_factory=list)
    task_description: Annotated[str, Field(max_length=DESCRIPTION_MAX_CHARS)] = ""
    user: ScopeName = ""
    workspace: ScopeName = ""
    request: Any = Field(default=None, description=REQUEST_WORDS)
    context: JsonObject = Field(default_factory=dict)


class TakeSecrets(Body):
    """Deliver sensitive values to an attempt; its id is random per process, as for `ConsumeGrant`."""

    attempt_id: ClientId


class EraseSecrets(Body):
    """Erase the sensitive values of a call or request permanently."""

    reason: Text = ""


class DestroyDataKey(Body):
    """Destroy a data key, and with it everything that was sealed under it."""

    reason: Text = ""


class RetirePolicy(Body):
    """Take a policy out of force; with `version`, refused if another version is in force."""

    version: Annotated[int, Field(ge=1, le=COUNT_MAX), INTEGRAL] | None = None
    reason: Text = ""


class FinishExecution(Body):
    """End an execution, over the WebSocket: with `result` if it completed, else with `reason`; never with both."""

    outcome: Literal["completed", "failed", "cancelled"]
    result: Any = Field(default=None, description="The result of the execution: any JSON.")
    reason: Text = ""


class RequestHumanInput(Body):
    """Ask a person something. Without an execution, one is opened for the request."""

    request_id: ChosenId | None = None
    execution_id: ClientId | None = None
    agent: ClientId | None = None
    kind: RequestKind = "clarification"
    question: Annotated[str, Field(min_length=1, max_length=limit_of(k.RequestHumanInput, "question"))]
    options: Annotated[
        list[Option],
        Field(
            max_length=ITEMS_MAX,
            description="The answers to choose from, without duplicates: a text, a number, true or false, or an "
            "object with an `id`, by which it is chosen, and any fields that describe it. Empty with `env_var`.",
        ),
    ] = Field(default_factory=list)
    fields: Annotated[
        list[Annotated[Any, Field(description="A variable (`env_var`), or any JSON.")]],
        Field(
            max_length=ITEMS_MAX,
            description="With `env_var` the requested variables, at least one: each a name, or an object with a "
            "`name` and optionally `description`, `required` (true), `secret` (true; false lets a person see what is "
            "typed; the value is sealed all the same) and `pattern`, which the value must contain. Otherwise any "
            "JSON, which is shown to the person who answers.",
        ),
    ] = Field(default_factory=list)
    allow_custom: Annotated[
        bool, Field(description="Only with `decision`: a text that is none of the options is an answer, too.")
    ] = False
    multiple: Annotated[
        bool, Field(description="Only with `decision`: the answer is a list of one or more of the options.")
    ] = False
    tool: Annotated[
        str,
        Field(
            max_length=limit_of(k.RequestHumanInput, "tool"),
            description="Only with `permission`: the tool that it is for.",
        ),
    ] = ""
    action: Annotated[
        str,
        Field(
            max_length=limit_of(k.RequestHumanInput, "action"),
            description="Only with `permission`: what would be done.",
        ),
    ] = ""
    risk: Annotated[
        RiskLevel | None,
        Field(
            description="Only with `permission`: the risk by the agent's own word, which is shown as such."
        ),
    ] = None
    remember: Annotated[
        bool,
        Field(
            description="Only with `permission`: the answer can also be `{granted, remember}`, by which a person "
            "tells the agent that it is for further times, too."
        ),
    ] = False
    decision_type: Annotated[str, Field(max_length=limit_of(k.RequestHumanInput, "decision_type"))] = ""
    timeout_seconds: Annotated[float, Field(gt=0, le=DEADLINE_MAX_S)] | None = None
    remind_after_seconds: Annotated[
        float | None,
        Field(
            gt=0,
            lt=DEADLINE_MAX_S,
            description="People are reminded once if nobody has answered by then; below `timeout_seconds`.",
        ),
    ] = None
    default: Any = Field(
        default=None,
        description="The answer that takes effect if nobody answers in time; null for none. With `decision` one of "
        "the options (the `id` of an object), with `allow_custom` or a text, with `multiple` a list of these; with "
        "`clarification`, and with `decision` without options, any JSON except a blank text; with `permission` only "
        "false, because a timeout grants nothing; null, or left out, with `env_var`.",
    )


Prompt = Annotated[
    str,
    Field(
        min_length=1,
        max_length=limit_of(k.RequestHumanInput, "question"),
        description="The question that a person is asked.",
    ),
]


class HumanInputArguments(Body):
    """The arguments of the tool `human_input`."""

    prompt: Prompt


class RunTool(Body):
    """Run the tool `human_input`, the only one that a gateway runs by itself."""

    name: Literal["human_input"]
    arguments: HumanInputArguments


class DecideHold(Body):
    """Decide a hold with exactly the digest that was seen. `remember` is for scope execution or rule."""

    decision: Decision
    digest: Annotated[str, Field(max_length=64)] = Field(
        default="",
        description="The hold's `digest`, of exactly what was shown. May be left out only for a question.",
    )
    edited_arguments: JsonObject | None = None
    feedback: Text = ""
    value: Any = Field(
        default=None,
        description="The answer, only with `respond`. Its JSON Schema is the hold's "
        "`input_schema`. To a `permission`: true, false or one of its options, or with `remember` an object of "
        "`granted` and `remember`; to a `decision`: one of its options, with `allow_custom` or a text, with "
        "`multiple` a list of these; to a `clarification`, and to a `decision` without options: any JSON except null "
        "and a blank text; to an `env_var`: an object of its variables, each a text; to a call whose outcome is "
        "unknown: its output; to another call: any JSON, which denies it and is its feedback. An option is given "
        "exactly as in the hold's `options`, an object by its `id`.",
    )
    scope: Scope = "once"
    remember: Asked | None = None
    view_digest: Annotated[str, Field(max_length=64)] = ""


class DecideOneOfMany(DecideHold):
    """One decision of several."""

    hold_id: ClientId


class DecideHolds(Body):
    """Decide several holds of low risk."""

    items: Annotated[list[DecideOneOfMany], Field(min_length=1, max_length=ITEMS_MAX)]


class Nothing(Body):
    """A body without fields."""


B = TypeVar("B", bound=Body)


def read_body(model: type[B], value: dict[str, Any]) -> B:
    """Validate a parsed body.

    Raises:
        Problem: 422 invalid, with every error and its path.
    """
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise invalid(error) from error
