"""How a function is gated: the options of the decorator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

from placet.models import Object
from placet.recording import Encode

OnDenied = Literal["raise", "return"]


@dataclass(frozen=True)
class Options:
    """How a function is gated.

    Attributes:
        tool: its name in Placet; by default the function's own.
        annotations: MCP's hints about it. They can raise a risk, never lower it.
        reason: why the agent wants it, for the reviewer.
        context: anything else for the reviewer.
        call_id: the call's id, or a function that takes the dict of the arguments; by default uuid5(execution, tool,
            arguments' digest, occurrence).
        timeout_s: for the decision; None waits as long as the hold does.
        on_denied: `raise` Denied, or `return` its feedback as the function's value, for the model; the whole
            message if it names calls to undo.
        encode: converts the function's return value to JSON, for the record.
        sensitive: the arguments that the tool's published schema marks as sensitive; the call's default id is not
            computed from them.
        register: publish the function's definition (`placet.tools.register`, `placet tool register`): its
            name, docstring, signature and `annotations`. Its first call checks that it is published.
        input_schema: of its arguments, in place of the one derived from its signature.
        idempotent: with `register`: a call whose process died without a report can be run again.
    """

    tool: str | None = None
    annotations: Object | None = None
    reason: str = ""
    context: Object | None = None
    call_id: str | Callable[[Mapping[str, Any]], str] | None = None
    timeout_s: float | None = None
    on_denied: OnDenied = "raise"
    encode: Encode | None = None
    sensitive: Sequence[str] = ()
    register: bool = False
    input_schema: Object | None = None
    idempotent: bool = False


class GatedOptions(TypedDict, total=False):
    """The keywords of `gated`: the attributes of `Options`."""

    tool: str | None
    annotations: Object | None
    reason: str
    context: Object | None
    call_id: str | Callable[[Mapping[str, Any]], str] | None
    timeout_s: float | None
    on_denied: OnDenied
    encode: Encode | None
    sensitive: Sequence[str]
    register: bool
    input_schema: Object | None
    idempotent: bool
