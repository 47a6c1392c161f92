"""What the checker keeps of an execution itself."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class RunFacts:
    """What the log says of one execution itself so far; its calls and holds are kept beside."""

    tenant: str
    project: str
    state: str = ""
    started_by: str = ""
    user: str = ""
    agent: str = ""
    # The command that started it, and for which planted call it was opened, as JSON; None for any other run.
    started_command: str = ""
    opened_for: str | None = None
    has_calls: bool = False
    # What the run remembers of its decisions, as JSON, and who made the rule that is asked for next.
    memory: dict[str, str] = field(default_factory=dict)
    makers: tuple[str, ...] = ()
    # The decision of the command that is being read: (command id, decision, call id, resolves).
    decision: tuple[str, str, str, bool] = ("", "", "", False)
    decided_hold: str = ""
    # After how long without anything open it ends by itself; None: never.
    idle_ms: int | None = None
    active_at_ms: int = 0
    # The turns that have not ended, in the order of their messages.
    open_turns: list[str] = field(default_factory=list)
    # Who has sent a message, each once.
    senders: list[str] = field(default_factory=list)
    # The hold for which one of them waits, and the command that ended it: that command resumes the turn as well.
    waits_for: str = ""
    resumed_by: str = ""
