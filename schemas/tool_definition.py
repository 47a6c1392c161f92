"""A tool's definition: MCP's `Tool` with fields of Placet's own, as APIs and deciders read it at publishing.

`services.domain.tools` reads published definitions: by the same model, and no more strictly than at publishing.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    ValidationError,
    WithJsonSchema,
)

from schemas.ids import CLIENT_ID
from schemas.limits import ID_MAX_CHARS, TEXT_MAX_CHARS
from schemas.policy_problems import PolicyRefused, Problem, problems_of
from schemas.sensitive import marking_problem

RUN_TIMEOUT_S = 15 * 60
LEASE_S = 60
RUN_TIMEOUT_MAX_S = 24 * 60 * 60
# A shorter lease would need a renewal every other second, and each renewal is recorded in the log.
LEASE_MIN_S = 5
PATH_MAX_CHARS = 500
# Members of MCP that do not affect what a call does. If they were kept, each new icon would be a new version, and
# each new version asks people again.
NOT_KEPT = frozenset({"icons", "execution", "_meta"})

Name = Annotated[StrictStr, Field(pattern=f"^{CLIENT_ID}$")]
Text = Annotated[StrictStr, Field(max_length=TEXT_MAX_CHARS)]
JsonObject = dict[str, Any]
# Pydantic writes no JSON Schema for the bounds of a union.
RunTimeout = Annotated[
    StrictInt | StrictFloat,
    Field(gt=0, le=RUN_TIMEOUT_MAX_S),
    WithJsonSchema({"type": "number", "exclusiveMinimum": 0, "maximum": RUN_TIMEOUT_MAX_S}),
]
Lease = Annotated[
    StrictInt | StrictFloat,
    Field(ge=LEASE_MIN_S, le=RUN_TIMEOUT_MAX_S),
    WithJsonSchema({"type": "number", "minimum": LEASE_MIN_S, "maximum": RUN_TIMEOUT_MAX_S}),
]


class ToolAnnotations(BaseModel):
    """MCP's hints. A missing or null hint counts as the worse value: not read-only, destructive, open world."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: Text | None = None
    readOnlyHint: StrictBool | None = None
    destructiveHint: StrictBool | None = None
    idempotentHint: StrictBool | None = None
    openWorldHint: StrictBool | None = None


class ToolDefinition(BaseModel):
    """MCP's `Tool`, with `idempotent`, `run_timeout_seconds` and `lease_seconds` of Placet.

    A member of MCP that is null counts as left out. `icons`, `execution` and `_meta` are accepted and dropped: they
    are not part of the published definition, nor of its version. A field that is not named here is refused.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Name
    title: Text | None = None
    description: Text | None = None
    inputSchema: JsonObject = Field(default_factory=lambda: {"type": "object"})
    outputSchema: JsonObject | None = None
    annotations: ToolAnnotations | None = None
    icons: list[Any] | None = None
    execution: JsonObject | None = None
    meta: JsonObject | None = Field(default=None, alias="_meta")
    idempotent: StrictBool = False
    run_timeout_seconds: RunTimeout = RUN_TIMEOUT_S
    lease_seconds: Lease = LEASE_S


def tool_to_publish(name: str, given: Any) -> JsonObject:
    """The definition to publish: the given one without what is null or not kept.

    Args:
        name: the tool's name; a definition without a name gets it.
        given: parsed JSON.

    Raises:
        PolicyRefused: with every reason.
    """
    if not isinstance(given, dict):
        message = "a tool's definition is a JSON object"
        raise PolicyRefused((Problem(path="definition", code="malformed", message=message),))
    definition = {"name": name, **given}
    problems = (*form_problems(definition), *_problems_beside_form(name, definition))
    if problems:
        raise PolicyRefused(problems)
    return kept(definition)


def form_problems(definition: Mapping[str, Any]) -> tuple[Problem, ...]:
    """The fields of a definition that do not fit the model, each with its path."""
    try:
        ToolDefinition.model_validate(definition)
    except ValidationError as error:
        return problems_of(error, ToolDefinition)
    return ()


def kept(definition: Mapping[str, Any]) -> JsonObject:
    """A definition without the members that are not kept, and without null members."""
    found = {name: value for name, value in definition.items() if value is not None and name not in NOT_KEPT}
    if isinstance(annotations := found.get("annotations"), dict):
        found["annotations"] = {name: value for name, value in annotations.items() if value is not None}
    return found


def _problems_beside_form(name: str, definition: Mapping[str, Any]) -> Iterator[Problem]:
    stated = definition["name"]
    if isinstance(stated, str) and stated != name:
        message = f"the definition is for the tool {stated[:ID_MAX_CHARS]!r}, not for {name!r}"
        yield Problem(path="name", code="other_name", message=message)
    schema = definition.get("inputSchema")
    if not isinstance(schema, dict):
        return
    # Imported only when a definition is read, so that a starting decider does not wait for it.
    from schemas.json_schema import schema_problem

    if (found := schema_problem(schema)) is not None:
        path = f"inputSchema{found.path}"[:PATH_MAX_CHARS]
        yield Problem(path=path, code="schema", message=found.message)
    elif (marking := marking_problem(schema)) is not None:
        yield Problem(path="inputSchema", code="schema", message=marking)
