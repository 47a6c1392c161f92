"""The content of a message: a document for machines, and plain text for people.

Text from an agent is limited in length and shown without hidden characters. In the text for people it also has no
markup for any messenger: no mention of everybody, no link but ours, no heading.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from schemas.display.escape import revealed
from schemas.headers import rfc3339
from schemas.ids import derived_id
from services.processors.notifications.document import link_to
from services.processors.notifications.notice import ASKING, Notice

QUESTION_MAX_CHARS = 1_000
SHOWN_QUESTION_MAX_CHARS = 500
SHOWN_NAME_MAX_CHARS = 128
DIGEST_SHOWN = 20
DIGEST_DOCUMENTS = 100

# Their full-width forms look alike, but have no meaning to Slack, Teams, Discord, Markdown or HTML.
_FULL_WIDTH = 0xFEE0
_MARKUP = {ord(char): chr(ord(char) + _FULL_WIDTH) for char in "@<>&*~|#[]`"}
# Text that mail programs decode in a header (RFC 2047), that chat programs replace by a picture, and that Markdown
# reads as emphasis: an underscore at the edge of a word.
_ENCODED_WORD = re.compile(r"=(?=\?)|(?<=\?)=")
_EMOJI = re.compile(r":(?=[\w+-]{0,64}[^\W\d][\w+-]{0,64}:|[+-]\d{1,64}:)|(?<!\d):(?=\d{1,64}:)")
_EMPHASIS = re.compile(r"(?<![^\W_])_|_(?![^\W_])")
# Text that mail and chat programs turn into links: a scheme, and names joined by dots.
_SCHEME = re.compile(r":(?=//)")
_MAILTO = re.compile(r"(?i)(?<=mailto|script):")
# `tel:123`, `sms:1`: the form of a scheme (RFC 3986, 3.1) with text right after it. A time begins with digits.
_URI = re.compile(r"(?i)(?<![^\W_])([a-z][a-z0-9+.-]{0,63}):(?=\S)")
_DOT = re.compile(r"\.(?=[^\W\d_])")

_TITLES: Mapping[str, str] = {
    "hold_opened": "{what} waits for a decision",
    "hold_reminded": "{what} still waits for a decision",
    "hold_escalated": "{what} still waits: it was escalated to you",
    "hold_delegated": "{what} was delegated to {detail}",
    "hold_expired": "nobody decided on {what} in time",
    "hold_resolved": "{what} is decided: {detail}",
    "outcome_unknown": "it is unknown whether {what} had its effect",
}


class RenderedMessage(NamedTuple):
    """A message to be sent: `id` is the same at every try."""

    id: str
    title: str
    text: str
    document: Mapping[str, Any]


def plain(text: str, limit: int) -> str:
    """An agent's text as one line that every messenger shows as plain letters."""
    shown = revealed(_cut(text, limit)).translate(_MARKUP)
    for pattern in (_ENCODED_WORD, _EMOJI, _EMPHASIS, _SCHEME, _MAILTO, _DOT):
        shown = pattern.sub(_wide, shown)
    shown = _URI.sub("\\1\N{FULLWIDTH COLON}", shown)
    return _cut(shown, limit)


def _wide(found: re.Match[str]) -> str:
    return chr(ord(found[0]) + _FULL_WIDTH)


def single(notice: Notice, link_base: str) -> RenderedMessage:
    """The message of one notice."""
    what = _what(notice)
    title = _title(notice, what)
    lines = [f"{title[0].upper()}{title[1:]}.", *_details(notice), *_link_lines(notice, link_base)]
    return RenderedMessage(notice.id, f"Placet: {title}", "\n".join(lines), document(notice, link_base))


def digest(endpoint: str, notices: Sequence[Notice], link_base: str) -> RenderedMessage:
    """One message for several notices, in the order of the log."""
    waiting = {notice.hold_id for notice in notices if notice.type in ASKING}
    title = f"{len(waiting)} more holds wait" if waiting else f"{len(notices)} more messages"
    lines = [f"{title}. There were too many messages to send each of them separately.", ""]
    for notice in notices[:DIGEST_SHOWN]:
        lines.append(f"- {_title(notice, _what(notice))} {link_to(link_base, notice.hold_id)}")
    if len(notices) > DIGEST_SHOWN:
        lines.append(f"and {len(notices) - DIGEST_SHOWN} more")
    name = digest_id(endpoint, [notice.id for notice in notices])
    told = {
        "id": name,
        "type": "digest",
        "at": rfc3339(notices[-1].at_ms),
        "count": len(notices),
        "holds_waiting": len(waiting),
        "messages": [document(notice, link_base) for notice in notices[:DIGEST_DOCUMENTS]],
    }
    return RenderedMessage(name, f"Placet: {title}", "\n".join(lines), told)


def trial(endpoint: str, message_id: str, at_ms: int) -> RenderedMessage:
    """A test message that only shows that messages arrive."""
    text = (
        f"This is a test of the notification {plain(endpoint, SHOWN_NAME_MAX_CHARS)}. Nothing waits for you."
    )
    told = {"id": message_id, "type": "test", "at": rfc3339(at_ms), "endpoint": endpoint}
    return RenderedMessage(message_id, "Placet: a test message", text, told)


def digest_id(endpoint: str, event_ids: Sequence[str]) -> str:
    """The id of a digest of given events to an endpoint: the same at every try."""
    return derived_id("digest", endpoint, *event_ids)


def document(notice: Notice, link_base: str) -> dict[str, Any]:
    """The document for webhooks; it never contains the arguments: the link shows them to people who can see them."""
    hold = notice.hold
    return {
        "id": notice.id,
        "type": notice.type,
        "at": rfc3339(notice.at_ms),
        "tenant": notice.tenant,
        "project": notice.project,
        "hold_id": notice.hold_id,
        "execution_id": notice.execution_id,
        "call_id": hold.call_id or None,
        "kind": hold.kind,
        "agent": _name(hold.agent),
        "tool": _name(hold.tool),
        "risk": hold.risk or None,
        "roles": list(hold.roles),
        "question": revealed(_cut(hold.question, QUESTION_MAX_CHARS)),
        "deadline_at": None if hold.deadline_at_ms is None else rfc3339(hold.deadline_at_ms),
        "detail": _name(notice.detail),
        "link": link_to(link_base, notice.hold_id),
    }


def _name(text: str) -> str | None:
    return revealed(_cut(text, SHOWN_NAME_MAX_CHARS)) or None


def _what(notice: Notice) -> str:
    hold = notice.hold
    if hold.tool:
        return f"a call of {plain(hold.tool, SHOWN_NAME_MAX_CHARS)}"
    return f"a question ({hold.kind.replace('_', ' ')})"


def _title(notice: Notice, what: str) -> str:
    return _TITLES[notice.type].format(what=what, detail=plain(notice.detail, SHOWN_NAME_MAX_CHARS))


def _details(notice: Notice) -> list[str]:
    hold = notice.hold
    deadline = "" if hold.deadline_at_ms is None else rfc3339(hold.deadline_at_ms)
    found = {
        "Question": plain(hold.question, SHOWN_QUESTION_MAX_CHARS),
        "Agent": plain(hold.agent, SHOWN_NAME_MAX_CHARS),
        "Risk": hold.risk,
        "Asked": ", ".join(plain(role, SHOWN_NAME_MAX_CHARS) for role in hold.roles),
        "Tenant": f"{notice.tenant}, project {notice.project}",
        "Open until": deadline if notice.type in ASKING else "",
    }
    return [f"{name}: {text}" for name, text in found.items() if text]


def _link_lines(notice: Notice, link_base: str) -> list[str]:
    return ["", f"See it: {link_to(link_base, notice.hold_id)}", "Opening the link decides nothing."]


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "\N{HORIZONTAL ELLIPSIS}"
