"""An agent's question in `placet chat`: asked at this terminal until it is answered, or cannot be answered here."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import typer

from placet.cli import safe
from placet.cli.answering import answer_to, may_be_several, named_by, offered, send_answer
from placet.cli.session import console
from placet.errors import NotAuthorised, Refused
from placet.models import Hold

if TYPE_CHECKING:
    from placet.sync import Placet

# The question is still open, and another answer may be accepted.
_ASKED_AGAIN = frozenset({"too_large", "malformed", "invalid", "invalid_arguments", "unknown_option"})


def ask_here(placet: Placet, hold: Hold) -> None:
    """Ask the person at this terminal, again after each answer that does not fit; it returns once nothing is to ask.

    A token that may not answer the question is told so, and what others can do: the question stays open.
    """
    _tell_offered(hold)
    while True:
        try:
            send_answer(placet, hold, _typed(hold))
            return
        except typer.BadParameter as wrong:
            tell(f"not accepted: {wrong.message}")
        except NotAuthorised as refused:
            tell(f"not accepted: {refused}")
            value = "" if hold.kind == "env_var" else " VALUE"
            tell(f"it waits for somebody who may answer it: placet answer {hold.hold_id}{value}")
            return
        except Refused as refused:
            tell(f"not accepted: {refused}")
            if refused.code not in _ASKED_AGAIN and refused.acts != "retry":
                return


def tell(text: str) -> None:
    """Print a line about the conversation, apart from what the agent says."""
    console(stderr=True).print(safe.text(f"[{text}]"), soft_wrap=True)


def _typed(hold: Hold) -> Any:
    if hold.kind == "env_var":
        return answer_to(hold, None)
    return answer_to(hold, typer.prompt("answer", err=True))


def _tell_offered(hold: Hold) -> None:
    found = ", ".join(map(_shown, hold.options)) if hold.options else offered(hold)
    if not found:
        return
    several = ""
    if may_be_several(hold):
        example = json.dumps([named_by(one) for one in hold.options[:2]], ensure_ascii=False)
        several = f" (several as a JSON list: {example})"
    console(stderr=True).print(safe.text(f"options: {found}{several}"), soft_wrap=True)


def _shown(option: Any) -> str:
    named = str(named_by(option))
    label = option.get("label") if isinstance(option, dict) else None
    return named if label in (None, "", named) else f"{named} ({label})"
