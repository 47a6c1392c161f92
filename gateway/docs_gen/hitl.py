"""The tables of fields in docs/hitl, from the models of the bodies and resources; the text around them is kept.

A table stands below a line `<!-- fields: NAME -->`, and ends at the next empty line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from gateway import bodies as b
from gateway import resources as r
from gateway.actions.turns import SendMessage
from gateway.docs_gen.tables import kind_of
from gateway.rest.chat import Chat, RespondToRequest
from gateway.sockets.sse import HEARTBEAT_S
from schemas import commands as k
from schemas import limits
from schemas.command_rules import form_of

MARK = re.compile(r"^<!-- fields: (\w+) -->\n(?:(?!\n).+\n)*", re.MULTILINE)
MODELS: Mapping[str, type[BaseModel]] = {
    model.__name__: model
    for model in (
        b.RequestHumanInput,
        Chat,
        SendMessage,
        RespondToRequest,
        r.Message,
        r.ToolCall,
        r.Hold,
        r.Turn,
        r.Responded,
    )
}
# What JSON Schema calls a limit, and how a page says it.
BOUNDS = {
    "minLength": "not empty",
    "maxLength": "at most {:,} characters",
    "maxItems": "at most {:,}",
    "minimum": "at least {:,}",
    "exclusiveMinimum": "above {:,}",
    "maximum": "at most {:,}",
    "exclusiveMaximum": "below {:,}",
    "pattern": "{}",
}
# The forms of ids, in words.
FORMS = {
    form_of(k.ProposeToolCall, "call_id"): "of `A-Za-z0-9._:-`, neither `.` nor `..`",
    form_of(k.ConsumeGrant, "attempt_id"): "1 to 128 of `A-Za-z0-9._:-`",
}
CONVERSATIONS = "Conversations"
DAY_S = 86_400


def filled(page: str) -> str:
    """Return a page with its tables made anew.

    Raises:
        KeyError: a table is of a model that is not listed here.
    """
    return MARK.sub(lambda found: "\n".join([_mark(found[1]), *_table(found[1])]) + "\n", page)


def hitl_pages(directory: Path) -> Mapping[str, str]:
    """Return the pages with tables, by their names below `directory`, as they should be."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted((directory / "hitl").glob("*.md"))}
    return {
        str(path.relative_to(directory)): filled(text) for path, text in texts.items() if MARK.search(text)
    }


def _mark(name: str) -> str:
    return f"<!-- fields: {name} -->"


def _table(name: str) -> list[str]:
    if name == CONVERSATIONS:
        return ["| | |", "|---|---|", *(f"| {what} | {much} |" for what, much in _conversations())]
    model = MODELS[name]
    rows = list(_answered(model) if issubclass(model, r.Resource) else _given(model))
    head = "| field | kind |" if issubclass(model, r.Resource) else "| field | kind | default | limits | |"
    return [head, "|---" * (head.count("|") - 1) + "|", *rows]


def _answered(model: type[BaseModel]) -> Iterable[str]:
    schema = model.model_json_schema(mode="serialization")
    for name, part in schema["properties"].items():
        if name != "cursor":
            yield f"| `{name}` | {kind_of(part, schema.get('$defs', {}))} |"


def _given(model: type[BaseModel]) -> Iterable[str]:
    schema = model.model_json_schema()
    required = schema.get("required", ())
    for name, part in schema["properties"].items():
        default = "required" if name in required else _default(part.get("default", ""))
        said = " ".join(str(part.get("description", "")).split()).replace("|", "\\|")
        kind = kind_of(part, schema.get("$defs", {}))
        yield f"| `{name}` | {kind} | {default} | {'; '.join(_bounds(part))} | {said} |"


def _default(value: Any) -> str:
    """The default in a few characters; a list or an object is empty then, because its factory makes it."""
    return {None: "–", "": "empty", True: "true", False: "false"}.get(value, f"`{value}`")


def _bounds(part: Mapping[str, Any]) -> Iterable[str]:
    for one in (part, *part.get("anyOf", ())):
        for name, said in BOUNDS.items():
            if name in one:
                yield said.format(FORMS.get(one[name], one[name]))


def _conversations() -> Iterable[tuple[str, str]]:
    """What bounds a conversation, with its figure."""
    yield "a message, a reply, an error", f"at most {limits.TEXT_MAX_CHARS:,} characters"
    waiting = "messages of a conversation that wait for their answer"
    waiting += "; each sender leaves as many places free as it has, so that one alone has half"
    yield waiting, f"{limits.TURNS_OPEN_MAX}"
    yield "messages of a conversation", f"{limits.TURNS_MAX:,}"
    yield "subjects who send messages in a conversation", f"{limits.SENDERS_MAX}"
    yield "replies in one turn", f"{limits.REPLIES_MAX:,}"
    yield "a worker's lease without a sign of life", f"{limits.TURN_LEASE_MS // 1000} s"
    yield "lost workers in a row after which a turn has failed", f"{limits.TURN_LAPSES_MAX}"
    yield "calls and questions of a conversation that are open", f"{limits.OPEN_MAX}"
    yield "a comment on a quiet stream (keep-alive)", f"every {HEARTBEAT_S:g} s"
    yield (
        "a conversation in which nothing is open and nothing was done",
        (f"completed after {limits.CONVERSATION_IDLE_S // DAY_S} days"),
    )
    yield (
        "the execution that was opened for one question, likewise",
        (f"completed after {limits.QUESTION_IDLE_S // DAY_S} days"),
    )
    yield "a question of the tool `human_input`", f"{limits.TASK_TIMEOUT_S // DAY_S} days"
    yield "the longest deadline of a question", f"{limits.DEADLINE_MAX_S // DAY_S} days"
    yield "one extension of a deadline", f"{limits.EXTENSION_MAX_S // DAY_S} days"
