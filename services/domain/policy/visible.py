"""What a condition sees of a call, and by that which names it may read.

What has fields here has these and no others in every call: a name that is not among them is a fault of whoever wrote
the condition. What an agent, a run or a person makes up (arguments, context, what is remembered) may have any.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, get_args

from schemas.plain_words import nearest
from services.domain.policy.cel_failures import kind_of
from services.domain.policy.cel_memory import MEMORY
from services.domain.policy.risk import WEIGHTS, RiskLevel
from services.domain.policy.sql_dialects import KINDS
from services.domain.policy.tool_facts import ToolView, tool_views
from services.domain.policy.verdict import CallFacts
from services.domain.trust import TrustBook

# More names are not told where none of them is near.
_NAMED_MAX = 12


class Kind(NamedTuple):
    """What stands under a name in every call: `what` it is in words, empty where it may be anything.

    `fields` are all that a map has, `items` what a list is of, and `values` all that a text may be.
    """

    what: str = ""
    fields: Mapping[str, "Kind"] | None = None
    items: "Kind | None" = None
    values: frozenset[str] | None = None


def variables_of(call: CallFacts, view: ToolView) -> dict[str, Any]:
    """What the conditions on a call see of it, but for the time."""
    execution = {
        "id": call.execution_id,
        "tenant": call.tenant,
        "project": call.project,
        "context": call.context,
        "request": call.request,
    }
    return {
        "tool": view.variable,
        "args": call.arguments,
        "proposed": call.arguments if call.proposed_arguments is None else call.proposed_arguments,
        "edited": call.proposed_arguments is not None,
        "agent": call.agent,
        "user": call.user,
        "workspace": call.workspace,
        "execution": execution,
        "risk": view.risk_variable,
        "trust": call.trust,
        MEMORY: call.memory,
    }


def no_field(path: str, field: str, known: Iterable[str]) -> str:
    """What is said of a field that is none: which one was meant, or which there are."""
    names = sorted(known)
    near = nearest(field, names)
    if near is not None:
        return f"{path} has no field {field!r}; did you mean {near!r}?"
    return f"{path} has no field {field!r}; it has {', '.join(names[:_NAMED_MAX])}"


def _kind(value: Any, *path: str) -> Kind:
    if value is None or value == {}:
        return Kind()
    if isinstance(value, Mapping):
        return Kind(kind_of({}), fields={name: _kind(part, *path, name) for name, part in value.items()})
    if isinstance(value, list | tuple):
        return Kind(kind_of([]), items=Kind(kind_of(""), values=_VALUES.get(path)))
    return Kind(kind_of(value), values=_VALUES.get(path))


_VALUES: dict[tuple[str, ...], frozenset[str]] = {
    ("risk", "level"): frozenset(get_args(RiskLevel)),
    ("risk", "parts"): frozenset(WEIGHTS),
}
# A call of which nobody said anything that they need not say: what it has, every call has.
_BARE_CALL = CallFacts(
    tenant="", project="", tool="", agent="", trust=TrustBook({}, "").trust_for("", "", "", "")
)
_BARE_VIEW = tool_views("", None, "", {})[0]

VISIBLE: dict[str, Kind] = {
    **{name: _kind(value, name) for name, value in variables_of(_BARE_CALL, _BARE_VIEW).items()},
    "now": Kind("a time"),
}
# What the functions of its own answer.
ANSWERS: dict[str, Kind] = {
    "url_host": Kind("a text"),
    "real_path": Kind("a text"),
    "sql_kind": Kind("a text", values=frozenset(KINDS)),
}
