"""Calls assessed for a gateway by the engine that judges (`services.domain.assessing`), in the reader of definitions.

A question is `{tenant, project, agent, user, workspace, request, context, calls, tools, description, now_ms,
definitions, trust, samples}`: `calls` are `[tool, arguments, annotations]`, the last two as canonical JSON, as are
`request` and `context`; `definitions` are the newest ones that the project sees, as fields of the events that
published them, with `kind`, in the order of the log; `trust` is `{complete, through, parts}`, the parts as on
`placet.trust`; `samples` are `[tool, class, partition, offset]` of the sampled calls that wait for people.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from schemas.events.definitions import PolicyPublished, PrincipalPublished, ToolPublished
from schemas.trust import ClassPart, TrustPart, decode
from schemas.trust_family import closes
from services.domain import publishing
from services.domain.assessing import AskedCall, Assessed, assess, risk_of_task
from services.domain.definitions import Definitions
from services.domain.execution.adaptive import ENOUGH
from services.domain.input_schema import misfit
from services.domain.policy import PolicySet
from services.domain.policy.cel import evaluate_alone
from services.domain.state import Execution
from services.domain.trust.book import KnownTrust
from services.domain.trust.counting import combine
from services.domain.trust.reading import Contrary

PUBLISHED = {"policy": PolicyPublished, "tool": ToolPublished, "principal": PrincipalPublished}


class _Trust(NamedTuple):
    """What a gateway knows of one agent."""

    is_complete: bool
    through: dict[int, int]
    tools: tuple[TrustPart, ...]
    classes: tuple[ClassPart, ...]
    samples: tuple[tuple[str, str, int, int], ...]

    def known(self, tool: str, trust_class: str) -> KnownTrust | None:
        """As `TrustBook.known`."""
        if not self.is_complete:
            return None
        classes = tuple(part for part in self.classes if part.tool == tool)
        return KnownTrust(
            combine(part for part in self.tools if part.tool == tool),
            tuple(part for part in classes if part.trust_class == trust_class),
            self.through,
            classes,
            tuple(
                part
                for part in classes
                if part.trust_class != trust_class and closes(part.trust_class, trust_class)
            ),
        )

    def waiting(self, tool: str, trust_class: str) -> Contrary | None:
        """The first sampled call that keeps trust from releasing a class."""
        for of_tool, of_class, partition, offset in self.samples:
            if of_tool == tool and closes(of_class, trust_class):
                return Contrary(partition, offset, is_open=True)
        return None


def assessed(question: dict[str, Any]) -> dict[str, Any]:
    """Return `{risk, calls}`, as the API shows them."""
    definitions = _definitions(question["tenant"], tuple(map(_hashable, question["definitions"])))
    run, trust = _run(question), _trust(question)
    found = [
        assess(definitions, run, AskedCall(*call), question["now_ms"], trust.known, trust.waiting)
        for call in question["calls"]
    ]
    risk = risk_of_task(definitions, run, found, question["tools"], question["description"])
    return {
        "risk": msgspec.to_builtins(risk),
        "calls": [_shown(call[0], one) for call, one in zip(question["calls"], found, strict=True)],
    }


def _shown(tool: str, one: Assessed) -> dict[str, Any]:
    verdict, adaptive = one.verdict, one.verdict.adaptive
    return {
        "tool": tool,
        "requires_approval": one.requires_approval,
        "effect": verdict.effect,
        "reason": verdict.reason,
        "detail": verdict.detail,
        "rules": verdict.rules,
        "policy_version": verdict.policy_version or None,
        "risk": msgspec.to_builtins(one.risk),
        "risk_of_tool": msgspec.to_builtins(verdict.risk),
        "trust": verdict.trust,
        "adaptive": None
        if adaptive is None
        else {**msgspec.to_builtins(adaptive), "why": adaptive.why or ENOUGH},
        "history": msgspec.to_builtins(verdict.history),
        "is_published": one.is_published,
        "misfit": one.misfits[0] if one.misfits else None,
        "misfits": one.misfits,
    }


def _run(question: dict[str, Any]) -> Execution:
    names = ("tenant", "project", "agent", "user", "workspace", "request", "context")
    return Execution(execution_id="", start_digest="", **{name: question[name] for name in names})


def _trust(question: dict[str, Any]) -> _Trust:
    given = question["trust"]
    parts = [decode(text.encode()) for text in given["parts"]]
    return _Trust(
        given["complete"],
        {int(partition): offset for partition, offset in given["through"].items()},
        tuple(part for part in parts if isinstance(part, TrustPart)),
        tuple(part for part in parts if isinstance(part, ClassPart)),
        tuple((tool, of_class, number, offset) for tool, of_class, number, offset in question["samples"]),
    )


def _hashable(row: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted(row.items()))


@lru_cache(maxsize=8)
def _definitions(tenant: str, rows: tuple[tuple[tuple[str, Any], ...], ...]) -> Definitions:
    """The definitions of a tenant; what this version cannot read is set aside, as deciders do."""
    found = Definitions(policies=PolicySet(), evaluate=evaluate_alone, check_schema=_misfit)
    for offset, row in enumerate(map(dict, rows)):
        event = PUBLISHED[row.pop("kind")](**row)
        try:
            found = publishing.evolve(found, event, tenant, offset)
        except Exception as error:
            found = publishing.set_aside(found, event, tenant, offset, error)
    return found


def _misfit(schema_text: str, arguments: Any, tenant: str = "") -> str | None:
    """Checked here whatever work it is: this process is ended if it takes too long."""
    return misfit(schema_text, arguments)
