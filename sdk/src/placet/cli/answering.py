"""What a person types as the answer to a question, and the value that is sent for it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

from placet.canonical import MalformedJson, canonical, parse_strict
from placet.cli import safe
from placet.cli.inputs import variables_of
from placet.cli.standing_decision import decide, decided_already
from placet.errors import refusal
from placet.models import Hold, Recorded

if TYPE_CHECKING:
    from placet.sync import Placet

# The texts that answer a permission, beside its options.
_PERMISSION = {"yes": True, "true": True, "no": False, "false": False}
YES_OR_NO = "yes, no"
REMEMBERED = '{"granted": true, "remember": true}'
_CLOSED = {
    "resolved": {"code": "already_decided", "detail": "it was already decided"},
    "expired": {"code": "expired", "detail": "the deadline has passed"},
    "cancelled": {"code": "not_open", "detail": "it no longer waits for an answer"},
}


def answer_to(hold: Hold, text: str | None) -> Any:
    """The value of an answer as it was typed.

    Args:
        hold: the question.
        text: what was typed. None prompts for the variables of an env_var question, one by one.

    Raises:
        typer.BadParameter: it does not answer the question.
        Refused: it asked for variables, and is closed.
    """
    if hold.kind == "env_var":
        # Nobody should type a secret for nothing.
        check_open(hold)
        return variables_of(hold, text)
    said = _said(hold, text)
    _check_option(hold, said)
    return said


def check_open(hold: Hold) -> None:
    """Refuse to ask a person for what cannot be sent any more.

    Raises:
        Refused: the hold is closed.
    """
    if (closed := _CLOSED.get(hold.status)) is not None:
        raise refusal(409, {**closed, "detail": decided_already(hold) or closed["detail"]})


def send_answer(placet: Placet, hold: Hold, said: Any, feedback: str = "", view_digest: str = "") -> Recorded:
    """Answer a question; `view_digest` names what was shown.

    Raises:
        Refused: the answer was not accepted.
    """
    return decide(placet, hold, "respond", view_digest=view_digest, value=said, feedback=feedback)


def answer_value(hold: Hold, text: str) -> Any:
    """The value of an answer: an option by its id or label, a permission in words, else text or JSON.

    Of a question, a number, `true` or `null` is text as it was typed: a person who names a release 2.10 means no
    number. Objects, lists and texts in quotes are JSON. An answer that is one of several is a list.

    Raises:
        typer.BadParameter: it is the label of several options.
    """
    word = _PERMISSION.get(text.strip().lower()) if asks_permission(hold) else None
    # A person's no is never the label that an agent gave to another option.
    is_id = text in map(name_shown, hold.options)
    option = _chosen(hold, text) if word is None or is_id else word
    value = _read(hold, text) if option is None else option
    if not may_be_several(hold):
        return value
    return [_named(hold, one) for one in value] if isinstance(value, list) else [value]


def _read(hold: Hold, text: str) -> Any:
    if (hold.input_schema or {}).get("type") == "string":
        return text
    try:
        value = parse_strict(text)
    except MalformedJson:
        return text
    return value if hold.call_id or isinstance(value, dict | list | str) else text


def _chosen(hold: Hold, text: str) -> Any:
    """The option that a text names; None if it names none.

    An id goes before a label, because the agent chose both: a label can be the id of another option.

    Raises:
        typer.BadParameter: it is the label of several options.
    """
    names = [named_by(option) for option in hold.options]
    if text in names:
        return text
    by_id = [name for name in names if name_shown(name) == text]
    labelled = [named_by(option) for option in hold.options if label_of(option) == text]
    found = by_id or labelled
    if len({canonical(name) for name in found}) > 1:
        named = ", ".join(map(name_shown, found))
        detail = f"several options are called {safe.escaped(text)}: give the id ({safe.escaped(named)})"
        raise typer.BadParameter(detail, param_hint="VALUE")
    return found[0] if found else None


def label_of(option: Any) -> Any:
    """The label of an option; None if it has none."""
    return option.get("label") if isinstance(option, Mapping) else None


def _named(hold: Hold, one: Any) -> Any:
    option = _chosen(hold, one) if isinstance(one, str) else None
    return one if option is None else option


def may_be_several(hold: Hold) -> bool:
    """Returns True if the answer is a list of options."""
    return bool(asks_of(hold).get("multiple"))


def asks_of(hold: Hold) -> Mapping[str, Any]:
    """What a question's answer can be, and what a permission is for; empty for a call."""
    return hold.raw.get("asks") or {}


def named_by(option: Any) -> Any:
    """The answer that chooses an option: the option itself, or the id of an object."""
    return option.get("id") if isinstance(option, dict) else option


def offered(hold: Hold) -> str:
    """The answers that a question offers, separated by commas; empty if it takes a text."""
    if hold.raw.get("cause") == "outcome_unknown":
        # A call's options are its decisions; an answer replaces the tool's output.
        return "the call's output"
    words = (YES_OR_NO,) if asks_permission(hold) else ()
    found = safe.escaped(", ".join((*words, *map(name_shown, hold.options))))
    return f"{found}, or {REMEMBERED} for further times, too" if asks_of(hold).get("remember") else found


def name_shown(option: Any) -> str:
    """The name of an option as it is typed."""
    name = named_by(option)
    return name if isinstance(name, str) else json.dumps(name, ensure_ascii=False)


def asks_permission(hold: Hold) -> bool:
    """Returns True for a question for a permission; the hold of a call is none."""
    return hold.kind == "permission" and not hold.call_id


def gives_permission(hold: Hold, said: Any) -> bool:
    """Returns True if an answer may give a permission that a question asks for."""
    if not asks_permission(hold):
        return False
    return said is not False and not (isinstance(said, dict) and said.get("granted") is False)


def _said(hold: Hold, text: str | None) -> Any:
    if text is None:
        raise typer.BadParameter(f"give an answer{_offered(hold)}", param_hint="VALUE")
    if safe.is_blank(text):
        raise typer.BadParameter("an answer must not be blank: answer, or reject", param_hint="VALUE")
    return answer_value(hold, text)


def _check_option(hold: Hold, said: Any) -> None:
    """Refuse a value that does not answer a permission, before asking for confirmation.

    Raises:
        typer.BadParameter: it is neither yes, no nor one of the options.
    """
    if not asks_permission(hold):
        return
    # Python treats 1 and True as equal: compare the canonical text.
    known = {canonical(one) for one in (True, False, *map(named_by, hold.options))}
    may_be_remembered = bool(asks_of(hold).get("remember"))
    if canonical(said) not in known and not (may_be_remembered and isinstance(said, dict)):
        shown = safe.escaped(json.dumps(said, ensure_ascii=False))
        raise typer.BadParameter(f"{shown} is not one of the answers{_offered(hold)}", param_hint="VALUE")


def _offered(hold: Hold) -> str:
    found = offered(hold)
    return f": {found}" if found else ""
