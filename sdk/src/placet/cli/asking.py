"""A question asked at this terminal, until it is answered, or cannot be answered here."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import typer

from placet.canonical import MalformedJson, parse_strict
from placet.cli import safe
from placet.cli.answering import (
    answer_to,
    asks_permission,
    check_open,
    gives_permission,
    label_of,
    name_shown,
    send_answer,
)
from placet.cli.describing import answers
from placet.cli.inputs import name_of, variables_of
from placet.cli.prompting import InputEnded, Watch, Withdrawn, agrees, ask
from placet.cli.session import confirm
from placet.cli.telling import list_one, tell
from placet.cli.viewing import fetch_view, print_view
from placet.errors import DigestMismatch, NotAuthorised, Refused, Unreachable
from placet.models import Hold, Recorded

if TYPE_CHECKING:
    from placet.sync import Placet

# The question is still open, and another answer may be accepted.
_ASKED_AGAIN = frozenset({"too_large", "malformed", "invalid", "invalid_arguments", "unknown_option"})
# As long as every answer but the longest options.
SHOWN_CHARS = 40


def ask_here(
    placet: Placet, hold: Hold, watch: Watch | None = None, feedback: str = "", to_leave: str = ""
) -> Recorded | None:
    """Ask the person at this terminal, again after each answer that does not fit.

    A token that may not answer the question is told so, and what others can do: the question stays open.

    Args:
        placet: the client.
        hold: the question, which is open.
        watch: withdraws the question, as when somebody else has answered it.
        feedback: for the agent, with the answer.
        to_leave: what ends the command that goes on once the question is left open; empty if it ends.

    Returns:
        The answer that was recorded; None if there is none.
    """
    asked = _Asked(placet, hold, watch, feedback)
    try:
        asked.show()
    except DigestMismatch as mismatch:
        tell(f"it cannot be answered here: {mismatch}")
        return None
    while True:
        try:
            return asked.answer()
        except Withdrawn:
            return None
        except InputEnded:
            tell(f"the question stays open: {asked.command}{to_leave and f'; {to_leave}'}")
            return None
        except typer.BadParameter as wrong:
            tell(f"not accepted: {wrong.message}")
        except NotAuthorised as refused:
            tell(f"not accepted: {refused}")
            tell(f"it waits for somebody who may answer it: {asked.command}")
            return None
        except Unreachable as lost:
            tell(f"{lost}")
        except Refused as refused:
            tell(f"not accepted: {refused}")
            if refused.code not in _ASKED_AGAIN and refused.acts != "retry":
                return None
            asked.forget(refused)


def tell_meaning(hold: Hold, typed: str | None, said: Any) -> None:
    """Tell which option a label stands for: the agent chose both, and gets the id."""
    labels, pairs = list(map(label_of, hold.options)), [(typed, said)]
    if isinstance(said, list):
        try:
            several = parse_strict(typed or "")
        except MalformedJson:
            several = None
        pairs = list(zip(several if isinstance(several, list) else [typed], said, strict=False))
    for text, meant in pairs:
        if text in labels and text != meant:
            tell(f"{text} is the option {name_shown(meant)}")


def show_permission(placet: Placet, hold: Hold, *, stderr: bool) -> str:
    """Print the whole view of a permission, and return its digest."""
    view = fetch_view(placet, hold)
    print_view(hold, view, stderr=stderr)
    return view.view_digest


def confirm_permission(hold: Hold, said: Any, yes: bool) -> None:
    """Ask for confirmation of an answer that may give a permission; see `session.confirm`."""
    confirm(_granting(hold, said), yes)


def _granting(hold: Hold, said: Any) -> str:
    told = safe.escaped(json.dumps(said, ensure_ascii=False))
    if len(told) > SHOWN_CHARS:
        # In the prompt it could go on in a row that looks like another.
        list_one(f"the answer: {told}")
        told = "as shown above"
    return f"Answer {told} to the permission with digest {hold.digest[:12]}?"


@dataclass
class _Asked:
    """A question at this terminal."""

    placet: Placet
    hold: Hold
    watch: Watch | None
    feedback: str
    _view_digest: str = ""
    # The variables that were typed and not refused.
    _given: dict[str, str] = field(default_factory=dict)

    @property
    def command(self) -> str:
        """How the question is answered later, or by somebody else."""
        return f"placet answer {self.hold.hold_id}"

    def show(self) -> None:
        """Show the question as far as the prompt for its answer needs it; a permission whole."""
        if asks_permission(self.hold):
            self._view_digest = show_permission(self.placet, self.hold, stderr=True)
        for line in answers(self.hold):
            list_one(line)

    def answer(self) -> Recorded:
        """Prompt for the answer once, and send it."""
        said = self._typed()
        if gives_permission(self.hold, said) and not agrees(_granting(self.hold, said), watch=self.watch):
            raise typer.BadParameter("it was not confirmed")
        return send_answer(self.placet, self.hold, said, self.feedback, self._view_digest)

    def forget(self, refused: Refused) -> None:
        """Forget the variables that were refused, which are asked for again; all, if the refusal names none."""
        paths = [str(one.get("path")) for one in refused.fields.get("errors") or () if isinstance(one, dict)]
        wrong = {path.rpartition(".")[2] for path in paths} & self._given.keys()
        for name in wrong or set(self._given):
            del self._given[name]
        for one in self.hold.raw.get("fields") or ():
            if name_of(one) in wrong and isinstance(one, dict) and one.get("pattern"):
                tell(f"{name_of(one)} must contain what fits the pattern {one['pattern']}")

    def _typed(self) -> Any:
        if self.hold.kind == "env_var":
            check_open(self.hold)
            return variables_of(self.hold, None, self._given, self.watch)
        typed = ask("answer", watch=self.watch)
        said = answer_to(self.hold, typed)
        tell_meaning(self.hold, typed, said)
        return said
