"""The variables of a call that a condition sees, and so the names that it can read.

A value with fields here has exactly these in every call: any other name is a mistake of the condition's author.
Values that an agent, a run or a person provides (arguments, context, remembered values) can have any.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, get_args

from schemas.call_history import CallHistory
from schemas.plain_words import nearest
from schemas.risk_score import HISTORY_WEIGHTS, WEIGHTS, RiskLevel
from schemas.trust_score import Posterior
from services.domain.policy.cel_failures import kind_of
from services.domain.policy.cel_memory import MEMORY
from services.domain.policy.leaves import prefixes
from services.domain.policy.sql_dialects import KINDS
from services.domain.policy.tool_facts import ToolView, tool_views
from services.domain.policy.verdict import CallFacts
from services.domain.trust.book import KnownTrust
from services.domain.trust.counting import combine
from services.domain.trust.reading import fields_of

# Up to this many names are listed if none of them is near.
_NAMED_MAX = 12


class Kind(NamedTuple):
    """The kind of value under a name in every call: `what` it is in words, empty if it can be anything.

    `fields` are all fields of a map, `items` is the kind of a list's items, and `values` are all values of a text.
    """

    what: str = ""
    fields: Mapping[str, "Kind"] | None = None
    items: "Kind | None" = None
    values: frozenset[str] | None = None


def variables_of(call: CallFacts, view: ToolView) -> dict[str, Any]:
    """The variables of a call for its conditions, without the time."""
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
        "history": _history(call.history),
        MEMORY: call.memory,
    }


def _history(history: CallHistory) -> dict[str, Any]:
    """The history of a call, with the paths of the objects around its values.

    While trust is missing, what is new is unknown: reading it is an error, and so holds the call.
    """
    new = {"parts": history.parts, "novel": _with_prefixes(history.novel)} if history.is_known else {}
    return {**new, "tainted": _with_prefixes(history.tainted), "is_whole": history.is_whole}


def _with_prefixes(paths: Sequence[str]) -> list[str]:
    return sorted({one for path in paths for one in prefixes(path)}) if paths else []


def no_field(path: str, field: str, known: Iterable[str]) -> str:
    """The message about a field that does not exist: the one that was probably meant, or those that exist."""
    names = sorted(known)
    near = nearest(field, names)
    if near is not None:
        return f"{path} has no field {field!r}; did you mean {near!r}?"
    return f"{path} has no field {field!r}; it has {', '.join(names[:_NAMED_MAX])}"


# All values that a text, or an item of a list, can have, by the path of names to it.
_Values = Mapping[tuple[str, ...], frozenset[str]]


def _kind(value: Any, values: _Values, *path: str) -> Kind:
    if value is None or value == {}:
        return Kind()
    if isinstance(value, Mapping):
        fields = {name: _kind(part, values, *path, name) for name, part in value.items()}
        return Kind(kind_of({}), fields=fields)
    if isinstance(value, list | tuple):
        return Kind(kind_of([]), items=Kind(kind_of(""), values=values.get(path)))
    return Kind(kind_of(value), values=values.get(path))


PARTS_OF_TOOL = frozenset(WEIGHTS)
PARTS_OF_HISTORY = frozenset(HISTORY_WEIGHTS)
_VALUES: _Values = {
    ("risk", "level"): frozenset(get_args(RiskLevel)),
    ("risk", "parts"): PARTS_OF_TOOL,
    ("history", "parts"): PARTS_OF_HISTORY,
}
# The risk that trust must outweigh has parts that the risk of a tool has not (`judge`).
_VALUES_OF_BLOCK: _Values = {**_VALUES, ("risk", "parts"): PARTS_OF_TOOL | PARTS_OF_HISTORY}
# A call with only its mandatory facts: every call has the fields that this one has.
_BARE_CALL = CallFacts(
    tenant="",
    project="",
    tool="",
    agent="",
    trust=fields_of(KnownTrust(combine(()), (), {}), "", Posterior(0.0, 0.0, 0.0), None),
)
_BARE_VIEW = tool_views("", None, "", {})[0]


def _visible(values: _Values) -> dict[str, Kind]:
    variables = variables_of(_BARE_CALL, _BARE_VIEW)
    return {**{name: _kind(value, values, name) for name, value in variables.items()}, "now": Kind("a time")}


# The names that a rule's condition sees, and those of the condition of an adaptive block.
VISIBLE = _visible(_VALUES)
VISIBLE_IN_BLOCK = _visible(_VALUES_OF_BLOCK)
# The kinds of the own functions' results.
ANSWERS: dict[str, Kind] = {
    "url_host": Kind("a text"),
    "real_path": Kind("a text"),
    "sql_kind": Kind("a text", values=frozenset(KINDS)),
}
