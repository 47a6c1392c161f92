"""A hold as the server renders it: the fixed text whose digest is in the log, printed unchanged."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timezone
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from placet.cli import safe
from placet.cli.past_values import in_full
from placet.cli.remembering import options_of
from placet.cli.session import clock, console, local_time, print_pretty
from placet.cli.telling import print_exactly
from placet.errors import DigestMismatch
from placet.models import Hold, HoldView, Risk, Verdict

if TYPE_CHECKING:
    from rich.table import Table

    from placet.sync import Placet

# The question and what would run: printed last, right above the prompt for the decision.
ASKED = (
    "asked first in the conversation",
    "asked of the agent",
    "agent",
    "reason",
    "question",
    "decision type",
    "options",
    "fields",
    "may be answered in one's own words",
    "several options may be chosen",
    "the answer may be for further times",
    "tool",
    "risk, by the agent's own word",
    "action",
    "edited",
    "redactions",
    "arguments",
)
_OF_THE_AGENT = "asked of the agent"
# Longer arguments would push the question out of sight: then they come before it.
ARGUMENTS_BELOW_LINES = 12


def fetch_view(placet: Placet, hold: Hold) -> HoldView:
    """The view of a hold.

    Raises:
        DigestMismatch: see `check_view`.
    """
    view = placet.holds.view(hold.hold_id)
    check_view(hold, view)
    return view


def check_view(hold: Hold, view: HoldView) -> None:
    """Refuse a text that is not what its digest names, or not about what a decision would bind to.

    Raises:
        DigestMismatch: it is not; nothing should be decided on it.
    """
    found = sha256(view.text.encode()).hexdigest()
    if view.view_digest and found != view.view_digest:
        fields = {"shown": found, "view_digest": view.view_digest}
        raise DigestMismatch(
            "digest_mismatch",
            0,
            "the view does not match its digest: nothing was decided",
            fields,
        )
    if f"\ndigest: {hold.digest}\n" not in view.text:
        raise DigestMismatch(
            "digest_mismatch", 0, "the view shows arguments other than those of the hold: nothing was decided"
        )


def print_view(
    hold: Hold,
    view: HoldView,
    *,
    stderr: bool = False,
    tools: Mapping[str, str] | None = None,
    planted: str = "",
) -> None:
    """The complete basis of a decision, with the question and what would run at the end.

    Args:
        hold: the hold.
        view: its view.
        stderr: print it there.
        tools: the tools of the calls whose outputs its tainted values were in (`past_values.tools_of_sources`).
        planted: what is told of a planted call whose hold has ended (`planted.planted_call`).
    """
    from rich.text import Text

    screen = console(stderr=stderr)
    around, asked = arranged(view.text)
    for line in around:
        print_exactly(screen, Text(_inert(line), style="dim"))
    if view.view_digest:
        screen.print(Text(f"view digest: {view.view_digest}", style="dim"), soft_wrap=True)
    for line in _lines([*_facts(hold, tools or {}), ("planted", planted)]):
        print_exactly(screen, safe.text(line))
    for line in asked:
        style = "bold red" if line.startswith("badges: ") else ""
        print_exactly(screen, Text(_inert(line), style=style))


def arranged(text: str) -> tuple[list[str], list[str]]:
    """All lines of a view in two parts: the context, then the question and what would run."""
    blocks: list[list[str]] = []
    for line in text.splitlines():
        if line.startswith(("  ", "]", "}")) and blocks:
            blocks[-1].append(line)
        else:
            blocks.append([line])
    named = {block[0].partition(":")[0]: block for block in blocks}
    names = [name for name in ASKED if name in named]
    if _OF_THE_AGENT in named and _value(named[_OF_THE_AGENT]) == _value(named.get("question", [])):
        # A question outside a run is itself what its agent was asked for.
        names.remove(_OF_THE_AGENT)
    if "arguments" in names and len(named["arguments"]) > ARGUMENTS_BELOW_LINES:
        names = ["arguments", *(name for name in names if name != "arguments")]
    if named.get("badges", ["badges: none"]) != ["badges: none"]:
        names = ["badges", *names]
    chosen = [named[name] for name in names]
    around = [line for block in blocks if not any(block is one for one in chosen) for line in block]
    return around, [line for block in chosen for line in block]


def _value(block: Sequence[str]) -> Sequence[str]:
    """The lines of a fact without its name."""
    return [block[0].partition(":")[2], *block[1:]] if block else []


def risk_of(hold: Hold) -> str:
    """A hold's risk in two words, and in two more what its new values make of it."""
    risk = hold.risk or (hold.verdict.risk if hold.verdict else None)
    if risk is None:
        return ""
    raised = hold.verdict.risk_with_values if hold.verdict else None
    return _both_risks(risk, raised, lambda one: f"{one.level} {one.score:.2f}".strip())


def risk_told(verdict: Verdict | None) -> str:
    """The risk of a call by its tool alone, with its parts; and what its new values make of it."""
    if verdict is None or verdict.risk is None:
        return ""
    return both_risks(verdict.risk, verdict.risk_with_values, digits=4)


def both_risks(of_tool: Risk, with_values: Risk | None, digits: int) -> str:
    """The risk of a call by its tool, and what new values make of it, if they do, each with its parts."""

    def told(risk: Risk) -> str:
        return f"{risk.level} {risk.score:.{digits}f} ({', '.join(map(str, risk.parts)) or 'no part'})"

    return _both_risks(of_tool, with_values, told)


def _both_risks(of_tool: Risk, with_values: Risk | None, told: Callable[[Risk], str]) -> str:
    return told(of_tool) if with_values is None else f"{told(of_tool)}, with new values {told(with_values)}"


def class_of(verdict: Verdict | None) -> str:
    """The class in which trust weighed a call."""
    trust = None if verdict is None else verdict.trust
    return str(trust.get("trust_class") or "") if isinstance(trust, Mapping) else ""


def weighed(verdict: Verdict | None) -> str:
    """What trust made of a call that a rule holds, and by what numbers; empty if it was not weighed."""
    found = None if verdict is None else verdict.adaptive
    if not isinstance(found, Mapping):
        return ""
    if found.get("result") == "asked":
        return f"not released by it: {found.get('why')}"
    numbers = f"it is at least {found.get('lower_bound')}, and {found.get('required')} is required"
    if found.get("result") == "sampled":
        return f"would have released it, and people are asked as a sample: {numbers}"
    return f"released it: {numbers}"


def decided(decision: Any) -> str:
    """What was decided, by whom and when."""
    if not isinstance(decision, Mapping):
        return ""
    return f"{decision.get('decision')} by {decision.get('by')} at {local_time(decision.get('at'))}"


def until(hold: Hold) -> str:
    """The deadline, and the time left."""
    if hold.deadline_at is None or hold.status not in ("open", ""):
        return ""
    now = datetime.now(timezone.utc)
    left_s = int((hold.deadline_at - now).total_seconds())
    local = clock(hold.deadline_at, now)
    return f"{local} ({_in_units(left_s)})" if left_s > 0 else f"{local} (over)"


def _in_units(seconds: int) -> str:
    """A duration in the two largest units that it has."""
    minutes, hours, days = seconds // 60, seconds // 3_600, seconds // 86_400
    if days:
        return f"{days} d {hours % 24} h"
    return f"{hours} h {minutes % 60} min" if hours else f"{minutes} min {seconds % 60} s"


def _inert(line: str) -> str:
    # The server already escapes control characters; the terminal does not rely on it.
    return safe.escaped(line) if any(map(safe.is_hidden, line)) else line


def _lines(facts: Iterable[tuple[str, Any]]) -> list[str]:
    """Facts in the form of the view, without the empty ones."""
    lines: list[str] = []
    for name, value in facts:
        if value in (None, "", []):
            continue
        first, *more = str(value).split("\n")
        # What a person said may have several lines, of which none may look like another fact.
        lines += [f"{name}: {first}"] if not more else [f"{name}:", *(f"  | {one}" for one in (first, *more))]
    return lines


def facts_grid(facts: Iterable[tuple[str, Any]]) -> Table:
    """A list of facts without the empty ones; wrapped, not cut, since their ids and digests are copied."""
    from rich.table import Column, Table

    grid = Table.grid(Column(overflow="fold"), Column(overflow="fold"), padding=(0, 2))
    for name, value in facts:
        if value not in (None, "", []):
            # What a person said may have several lines; a column of its own keeps them from looking like other facts.
            grid.add_row(safe.text(name, style="bold"), safe.text(value, lines=True))
    return grid


def print_value(name: str, value: object) -> None:
    """A JSON value under its name; not in a grid, which would break its lines."""
    console().print(safe.text(name, style="bold"), soft_wrap=True)
    print_pretty(value)


def _facts(hold: Hold, tools: Mapping[str, str]) -> Sequence[tuple[str, Any]]:
    return (
        ("status", hold.status),
        ("decided", decided(hold.raw.get("decision"))),
        ("answer", _answer(hold)),
        ("feedback", (hold.raw.get("decision") or {}).get("feedback")),
        ("risk", risk_of(hold)),
        ("trust", weighed(hold.verdict)),
        ("values", in_full(hold.verdict.history if hold.verdict else None, tools)),
        ("claimed", claimed(hold)),
        ("delegated to", hold.raw.get("assignee")),
        ("votes", f"{len(hold.votes)} of {hold.quorum}" if hold.quorum > 1 else ""),
        ("to be remembered", _asked_before(hold)),
        ("waits until", until(hold)),
    )


def _answer(hold: Hold) -> str:
    """The answer to a question as JSON; of variables, which nobody but the agent reads, only their names."""
    response = hold.raw.get("response")
    if response is None:
        return ""
    if hold.kind == "env_var" and isinstance(response, Mapping):
        return ", ".join(response)
    return json.dumps(response, ensure_ascii=False)


def claimed(hold: Hold) -> str:
    """By whom a hold is claimed, and until when; empty if nobody works on it."""
    by = hold.raw.get("claimed_by")
    return f"by {by} until {local_time(hold.raw.get('claimed_until'))}" if by else ""


def _asked_before(hold: Hold) -> str:
    """What each approver asks to be remembered, as options for a person who agrees to it."""
    said = [
        f"{vote.get('by')}: {options_of(str(vote['scope']), vote.get('remember') or {})}"
        for vote in hold.votes
        if isinstance(vote, Mapping) and vote.get("scope", "once") != "once"
    ]
    return "\n".join(said)
